//! The meaning of an option's name in a command, like `argparse` and transformers' `HfArgumentParser`.

use super::options::{OptionRow, OptionSyntax, PeerOptions};
use burnish_hydra::suggest::closest;

/// The meaning of a name in one edition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The edition has such an option.
    Known,
    /// Only other editions have such an option.
    OfOtherEditions,
    /// No edition has such an option.
    Unknown,
}

/// Returns the meaning of a name in an edition.
pub(super) fn meaning(options: &'static PeerOptions, trainer: &'static str, name: &str, edition: usize) -> Meaning {
    if in_edition(options, trainer, name, edition).is_some() {
        return Meaning::Known;
    }
    match find(options, trainer, name, edition) {
        Some(_) => Meaning::OfOtherEditions,
        None => Meaning::Unknown,
    }
}

/// Finds an option by its name, with dashes for underscores, with `no_` before a flag, or by a prefix that is unambiguous in one
/// edition. The edition of the command comes first, then the newest. The bool is true for a negated flag.
pub(super) fn find(
    options: &'static PeerOptions,
    trainer: &'static str,
    name: &str,
    edition: usize,
) -> Option<(&'static OptionRow, bool)> {
    let plain = name.replace('-', "_");
    let exact = exact(options, trainer, name, &plain);
    let newest_first = || options.editions(trainer).rev();
    exact
        .or_else(|| in_edition(options, trainer, name, edition))
        .or_else(|| newest_first().find_map(|edition| begun(options, trainer, &plain, edition)))
}

/// Finds an option of a file, whose names are whole.
pub(super) fn find_exact(options: &'static PeerOptions, trainer: &'static str, name: &str) -> Option<&'static OptionRow> {
    options.find(trainer, name).or_else(|| options.find(trainer, &name.replace('-', "_")))
}

fn exact(options: &'static PeerOptions, trainer: &'static str, name: &str, plain: &str) -> Option<(&'static OptionRow, bool)> {
    let exact = options.find(trainer, name).or_else(|| options.find(trainer, plain)).map(|option| (option, false));
    let negated = || {
        let option = plain.strip_prefix("no_").and_then(|name| options.find(trainer, name))?;
        (option.syntax == OptionSyntax::Flag).then_some((option, true))
    };
    exact.or_else(negated)
}

/// Finds an option of one edition.
fn in_edition(
    options: &'static PeerOptions,
    trainer: &'static str,
    name: &str,
    edition: usize,
) -> Option<(&'static OptionRow, bool)> {
    let plain = name.replace('-', "_");
    match exact(options, trainer, name, &plain) {
        Some((option, negated)) => option.has(edition).then_some((option, negated)),
        None => begun(options, trainer, &plain, edition),
    }
}

/// Finds the only option of an edition whose name begins like this.
fn begun(
    options: &'static PeerOptions,
    trainer: &'static str,
    plain: &str,
    edition: usize,
) -> Option<(&'static OptionRow, bool)> {
    let only = |start: &str, is_flag: bool| {
        let starts = |option: &&OptionRow| {
            option.name.starts_with(start) && (!is_flag || option.syntax == OptionSyntax::Flag) && option.has(edition)
        };
        let mut found = options.of(trainer).filter(starts);
        let first = found.next().filter(|_| !start.is_empty());
        first.filter(|_| found.next().is_none())
    };
    let negated = || Some((only(plain.strip_prefix("no_")?, true)?, true));
    only(plain, false).map(|option| (option, false)).or_else(negated)
}

/// Returns the message about an option that no edition has, with the most similar one.
pub(super) fn unknown_option(options: &'static PeerOptions, trainer: &'static str, name: &str, peer: &str) -> String {
    let bare = name.trim_start_matches('-');
    let message = format!("no release of {peer} that is known here has this option of {trainer}");
    match closest(bare, options.of(trainer).map(|option| option.name)) {
        Some(suggestion) => format!("{message}; did you mean --{suggestion}?"),
        None => message,
    }
}
