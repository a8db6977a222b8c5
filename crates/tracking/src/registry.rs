//! Registry of trackers.

use anyhow::{Result, bail};

use super::tracker::TrackerEntry;
use super::{bridge, console, file, mlflow, tensorboard, wandb};
use burnish_registry::Choice;
use burnish_util::suggest::did_you_mean;

/// All trackers.
pub static TRACKERS: &[TrackerEntry] = &[
    console::TRACKER,
    file::TRACKER,
    tensorboard::TRACKER,
    wandb::TRACKER,
    mlflow::TRACKER,
    bridge::SWANLAB,
    bridge::TRACKIO,
    bridge::CLEARML,
    bridge::VEMLP_WANDB,
];

/// Returns the names that `trainer.logger` may hold, for the configuration.
pub fn choices() -> impl Iterator<Item = Choice> {
    TRACKERS.iter().map(|entry| Choice { reads: entry.reads.to_vec(), ..Choice::plain("trainer.logger", entry.name) })
}

/// Looks up the entries of `names`. The configuration's validation has already checked that each name is known.
pub(super) fn named(names: &[String]) -> Result<Vec<&'static TrackerEntry>> {
    let mut entries: Vec<&'static TrackerEntry> = Vec::new();
    for name in names {
        let Some(entry) = TRACKERS.iter().find(|entry| entry.name == name) else {
            bail!(
                "trainer.logger: no tracker is called '{name}'; {}",
                did_you_mean(name, TRACKERS.iter().map(|entry| entry.name))
            );
        };
        if entries.iter().any(|earlier| earlier.name == entry.name) {
            bail!("trainer.logger: '{name}' is named twice");
        }
        entries.push(entry);
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_names_are_refused_with_advice() {
        let error = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            named(&names).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(error(&["console", "file"]), "");
        assert!(error(&["tensorbord"]).contains("tensorboard"));
        assert!(error(&["file", "file"]).contains("twice"));
        assert!(TRACKERS.iter().all(|entry| !entry.doc.is_empty()));
    }
}
