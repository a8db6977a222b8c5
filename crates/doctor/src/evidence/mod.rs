//! Everything known about a run: the only input of a check.

mod facts;
mod made_up;
mod metric_names;
mod names;
mod of_run;
mod plan;
mod rows;

pub use facts::{Facts, KnownPrompt};
#[cfg(test)]
pub(crate) use made_up::Curve;
pub(crate) use metric_names::own_name;
pub use names::RunLibrary;
pub use of_run::Evidence;
pub use plan::{
    AnswerLengths, BeginTokens, ChangedRows, EndTokens, LengthenedResponses, PlanFacts, RatePlan, SampledGroups, SharedRows,
    ShownRow, TagInPrompts,
};
pub use rows::MetricRow;
pub(crate) use rows::RowsByStep;
pub(crate) use rows::{beginning, ending, first_streak, largest, last_streak, mean, median};
