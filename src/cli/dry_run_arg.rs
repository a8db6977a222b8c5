//! `--dry-run` of the commands that train.

use clap::{Args, ValueEnum};

/// The flag of the commands that train.
#[derive(Args, Clone, Copy, Default)]
pub(crate) struct DryRunArg {
    /// Check everything, print the plan, the memory and the time of the run, and stop; `plan` leaves out the weights and the time
    #[arg(
        long = "dry-run",
        value_name = "PARTS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "measure",
        hide_possible_values = true
    )]
    parts: Option<DryRunParts>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum DryRunParts {
    Measure,
    Plan,
}

impl DryRunArg {
    /// Returns true if nothing is trained.
    pub(crate) fn is_set(self) -> bool {
        self.parts.is_some()
    }

    /// Returns true if small steps are measured.
    pub(crate) fn measures(self) -> bool {
        self.parts == Some(DryRunParts::Measure)
    }
}
