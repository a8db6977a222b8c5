//! The scores of a batch, by name and by function.

use std::collections::HashMap;

use super::Batch;
use burnish_algorithm::advantage::Component;
use burnish_reward::FunctionReward;

/// verl's names for the score itself.
const SCORE: [&str; 4] = ["seq_reward", "seq_final_reward", "reward", "score"];

impl Batch {
    /// Returns the score of each trajectory, if it has one.
    pub(crate) fn trajectory_scores(&self) -> Vec<Option<f64>> {
        self.scores.iter().map(|score| score.score.map(f64::from)).collect()
    }

    /// Returns true for each trajectory that has a score.
    pub fn scored(&self) -> Vec<bool> {
        self.scores.iter().map(|score| score.score.is_some()).collect()
    }

    /// Returns the mask of the trajectories that have a score.
    pub(crate) fn counted_mask(&self) -> Vec<f32> {
        self.mask_of(&self.scored())
    }

    /// Returns the rewards in the scores, one entry per reward function.
    pub fn components(&self) -> Vec<Component> {
        let first = self.scores.first().map_or(&[][..], |score| &score.components);
        let component = |(k, of): (usize, &FunctionReward)| Component {
            name: of.name.clone(),
            weight: of.weight,
            values: self.scores.iter().map(|score| score.components[k].reward).collect(),
        };
        first.iter().enumerate().map(component).collect()
    }

    /// Returns the values logged with the scores: each name, in order of appearance, and its value for each trajectory; `None`
    /// for a trajectory without it.
    pub(crate) fn extras(&self) -> Vec<(&str, Vec<Option<f64>>)> {
        let (mut all, mut places) = (Vec::new(), HashMap::new());
        for (i, score) in self.scores.iter().enumerate() {
            for (name, value) in &score.extras {
                let place = *places.entry(name.as_str()).or_insert_with(|| {
                    all.push((name.as_str(), vec![None; self.scores.len()]));
                    all.len() - 1
                });
                all[place].1[i] = Some(*value);
            }
        }
        all
    }

    /// Returns for each trajectory the value of this name: its score, a reward function's, or one that a scorer reports; `None`
    /// if no response of this batch has one. A missing `acc` is the score, as in verl.
    pub fn number(&self, name: &str) -> Option<Vec<Option<f64>>> {
        if SCORE.contains(&name) {
            return Some(self.trajectory_scores());
        }
        if let Some(component) = self.components().into_iter().find(|component| component.name == name) {
            return Some(component.values);
        }
        let values: Vec<Option<f64>> = self.scores.iter().map(|score| score.extra(name)).collect();
        match name {
            "acc" => Some(values.into_iter().zip(self.trajectory_scores()).map(|(acc, score)| acc.or(score)).collect()),
            _ => values.iter().any(Option::is_some).then_some(values),
        }
    }

    /// Returns the names that [`Self::number`] accepts.
    pub(crate) fn number_names(&self) -> Vec<&str> {
        let components = self.scores.iter().take(1).flat_map(|score| &score.components).map(|component| component.name.as_str());
        let extras = self.extras().into_iter().map(|(name, _)| name).filter(|name| *name != "acc");
        [SCORE[0], "acc"].into_iter().chain(components).chain(extras).collect()
    }
}
