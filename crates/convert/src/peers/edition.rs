//! The edition of a command: the release of the library whose defaults apply to options that the command does not set.

use super::names::{Meaning, meaning};
use super::options::PeerOptions;
use super::peer::Peer;
use super::trainer::PeerTrainer;
use burnish_hydra::Problem;

/// The options that a message names at most.
const SHOWN: usize = 4;

/// The edition of a command.
#[derive(Debug)]
pub(super) struct Edition {
    pub(super) index: usize,
    /// The reason for the choice, such as `the newest release that has --vllm_device`.
    pub(super) why: String,
    /// Description of the options that the edition lacks.
    pub(super) mixture: Option<String>,
}

/// Chooses the edition that has most of the options of the command, and the newest of several; or takes the requested edition.
///
/// # Errors
/// If the requested edition is not known.
pub(super) fn choose(peer: &Peer, trainer: &PeerTrainer, requested: Option<&str>, names: &[&str]) -> Result<Edition, Problem> {
    let options = (peer.options)();
    let editions: Vec<usize> = options.editions(trainer.name).collect();
    let lacks = |edition: usize| -> Vec<&str> {
        let is_lacking = |name: &&&str| meaning(options, trainer.name, name, edition) == Meaning::OfOtherEditions;
        names.iter().filter(is_lacking).copied().collect()
    };
    let index = match requested {
        Some(requested) => options.edition_of(requested).filter(|index| editions.contains(index)).ok_or_else(|| {
            let message = format!("`{requested}` is not a known edition of {} {}", peer.name, trainer.name);
            let ends = (editions.first(), editions.last());
            match ends {
                (Some(first), Some(last)) => Problem::new("", message).help(format!(
                    "known are the releases from {} to {}",
                    options.first_release(*first),
                    options.release(*last)
                )),
                _ => Problem::new("", message),
            }
        })?,
        None => editions.iter().rev().copied().min_by_key(|edition| lacks(*edition).len()).unwrap_or(0),
    };
    let lacking = lacks(index);
    let newest = editions.last() == Some(&index);
    let newer = editions.iter().copied().filter(|edition| *edition > index);
    let mut deciding: Vec<&str> = vec![];
    for edition in newer {
        let lost = lacks(edition);
        if !lost.iter().any(|name| deciding.contains(name)) {
            deciding.extend(lost.into_iter().find(|name| !lacking.contains(name)));
        }
    }
    let newest_of_all = options.last();
    let why = match (requested, newest, lacking.is_empty()) {
        (Some(_), ..) => "which was asked for".to_string(),
        (None, true, true) if newest_of_all == index => "the newest release that is known here".to_string(),
        (None, true, true) => format!("the newest release that has {}", trainer.name),
        (None, _, true) => format!("the newest release that has {}", listed(&deciding)),
        (None, ..) => {
            format!("the newest release that has most of the options ({} of {})", names.len() - lacking.len(), names.len())
        }
    };
    let mixture = (!lacking.is_empty()).then(|| {
        let lifetimes: Vec<String> = lacking.iter().map(|name| lifetime(options, trainer.name, name)).collect();
        format!(
            "the options are of several releases: {} {} does not have {}; each option has the meaning of the newest release with it",
            peer.name,
            options.release(index),
            lifetimes.join(", ")
        )
    });
    Ok(Edition { index, why, mixture })
}

/// Lists the names of options.
fn listed(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("--{name}")).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(" and "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Returns the name of an option with the releases that have it, such as `--vllm_mode (since 0.18.0)`.
fn lifetime(options: &PeerOptions, trainer: &str, name: &str) -> String {
    let Some(option) = options.find(trainer, name) else { return format!("--{name}") };
    let editions: Vec<usize> = option.editions().collect();
    let newest = options.editions(trainer).next_back();
    format!("--{name} ({})", range(options, editions.first(), editions.last(), newest))
}

/// Describes the releases of an option: `since 0.18.0`, or `0.14.0 to 0.17.0`. `newest` is the newest edition of the command.
pub(super) fn range(options: &PeerOptions, first: Option<&usize>, last: Option<&usize>, newest: Option<usize>) -> String {
    let (Some(first), Some(last)) = (first, last) else { return String::new() };
    let from = options.first_release(*first);
    if Some(*last) == newest { format!("since {from}") } else { format!("{from} to {}", options.release(*last)) }
}
