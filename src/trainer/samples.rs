//! TRL's table of samples: responses of a training step, with their rewards and advantages.

use anyhow::Result;

use super::Trainer;
use super::batch::Batch;
use crate::tracking::{Table, Tracker};
use crate::util::rng::Stream;

impl Trainer {
    /// Hands `trainer.log_completions` responses, drawn anew at each step, to the trackers.
    pub(super) fn show_completions(&mut self, batch: &Batch) -> Result<()> {
        let most = self.config.trainer.log_completions;
        if most == 0 {
            return Ok(());
        }
        let mut chosen: Vec<usize> = (0..batch.len()).collect();
        Stream::new(self.config.trainer.seed, "shown completions", &[self.step]).shuffle(&mut chosen);
        chosen.truncate(most);
        chosen.sort_unstable();
        self.trackers.table(self.step, &completions(batch, &chosen))
    }
}

/// The advantage is the mean over the tokens that are trained on; an estimator that compares responses gives all the same.
fn completions(batch: &Batch, chosen: &[usize]) -> Table {
    let advantage = |i: usize| {
        let trained: Vec<f32> = batch.tokens(i).filter(|&t| batch.mask[t] != 0.0).map(|t| batch.advantages[t]).collect();
        trained.iter().sum::<f32>() / trained.len().max(1) as f32
    };
    let number = |value: Option<f64>| value.map_or("none".to_owned(), |value| value.to_string());
    let row = |&i: &usize| {
        let mut row = vec![batch.prompt(i).text.clone(), batch.texts[i].clone()];
        row.extend(batch.components.iter().map(|component| number(component.values[i])));
        row.push(format!("{:.4}", advantage(i)));
        row
    };
    let mut columns = vec!["prompt".to_owned(), "completion".to_owned()];
    columns.extend(batch.components.iter().map(|component| component.name.clone()));
    columns.push("advantage".to_owned());
    Table { name: "completions", columns, rows: chosen.iter().map(row).collect() }
}
