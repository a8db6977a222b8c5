//! The columns of a batch: one `f32` per response token, or per response, without padding.
//!
//! [`Column`] is their only table. A new column is one entry there, a phase that writes it and a phase that reads it: selecting,
//! appending, the search for NaN and its report all walk the table.

use std::ops::{Index, IndexMut, Range};

use burnish_algorithm::{gather, gather_offsets};

/// The number of values of a column for a trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// One value per token of its response.
    Token,
    /// One value.
    Trajectory,
}

macro_rules! columns {
    ($($(#[doc = $doc:literal])* $column:ident { name: $name:literal, per: $per:ident, unit: $unit:literal, from: $from:literal })*) => {
        /// The name of a column.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Column {
            $($(#[doc = $doc])* #[doc = ""] #[doc = concat!("Unit: ", $unit, ". Written by ", $from, ".")] $column,)*
        }

        impl Column {
            /// Every column, in the order of checks and reports.
            pub const ALL: &'static [Self] = &[$(Self::$column,)*];

            /// Name in messages and files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$column => $name,)*
                }
            }

            /// Number of values for a trajectory.
            pub fn per(self) -> Per {
                match self {
                    $(Self::$column => Per::$per,)*
                }
            }

            /// The phase that writes it.
            pub fn written_by(self) -> &'static str {
                match self {
                    $(Self::$column => $from,)*
                }
            }
        }
    };
}

columns! {
    /// 1 for a trained token, 0 for a token that a tool or a user wrote or that is excluded.
    Mask { name: "mask", per: Token, unit: "0 or 1", from: "generation, `mask_truncated_completions` and rollout correction" }
    /// Log-prob reported by generation (`rollout.logprobs_mode`).
    RolloutLogProb { name: "rollout_log_prob", per: Token, unit: "nats", from: "phase `gen`" }
    /// Log-prob under the policy that generated, as in training: at its temperature, over the whole vocabulary.
    SampledLogProb { name: "sampled_log_prob", per: Token, unit: "nats", from: "phase `gen`" }
    /// Log-prob under the policy before the update. Absent if the old policy is the current one and no phase needs it.
    OldLogProb { name: "old_log_prob", per: Token, unit: "nats", from: "phase `old_log_prob`" }
    /// Log-prob under the reference.
    RefLogProb { name: "ref_log_prob", per: Token, unit: "nats", from: "phase `ref`" }
    /// Log-prob under the teacher, if the distillation loss reads only the sampled tokens.
    TeacherLogProb { name: "teacher_log_prob", per: Token, unit: "nats", from: "phase `teacher`" }
    /// 1 for a token in the teacher's loss, if that loss leaves out responses or the start of each.
    TeacherMask { name: "teacher_mask", per: Token, unit: "0 or 1", from: "phases `teacher` and `update_actor`" }
    /// Weight of a token in the teacher's loss of a mini-batch, with `teacher_mask`.
    TeacherWeights { name: "teacher_weights", per: Token, unit: "share of the loss", from: "phase `update_actor`" }
    /// The critic's value of the state before each token.
    Values { name: "values", per: Token, unit: "reward", from: "phase `values`" }
    /// KL(π ‖ π_ref) over the vocabulary, for a KL term of kind `full` in the rewards.
    FullKl { name: "full_kl", per: Token, unit: "nats", from: "phase `ref`" }
    /// Σ π² over the vocabulary, if an estimator or a metric reads it.
    SumPiSquared { name: "sum_pi_squared", per: Token, unit: "probability", from: "phase `old_log_prob`" }
    /// Importance weights of the rollout correction.
    RolloutIsWeights { name: "rollout_is_weights", per: Token, unit: "ratio", from: "phase `adv`" }
    /// Score of the greedy response to the prompt, or its value, for estimators that compare with it.
    RewardBaselines { name: "reward_baselines", per: Trajectory, unit: "reward", from: "phases `gen_max` and `prompt_values`" }
    /// Scores, minus the KL term if the run has one.
    Rewards { name: "rewards", per: Token, unit: "reward", from: "phase `adv`" }
    /// Factor of the ratio in the policy loss.
    Advantages { name: "advantages", per: Token, unit: "reward, or no unit if normalised", from: "phase `adv`" }
    /// Target of the critic.
    Returns { name: "returns", per: Token, unit: "reward", from: "phase `adv`" }
    /// Weight of a token in the policy or value loss of a mini-batch.
    LossWeights { name: "loss_weights", per: Token, unit: "share of the loss", from: "phases `update_actor` and `update_critic`" }
    /// Weight of a token in the entropy and KL terms of a mini-batch.
    PenaltyWeights { name: "penalty_weights", per: Token, unit: "share of the loss", from: "phase `update_actor`" }
    /// Weight of a token that the environment wrote (`algorithm.echo`); 0 for others.
    EchoWeights { name: "echo_weights", per: Token, unit: "share of the mean likelihood", from: "phase `adv`" }
    /// Factor that a policy loss computes from the whole mini-batch.
    LossFactor { name: "loss_factor", per: Token, unit: "none", from: "phase `update_actor`" }
    /// 1 for tokens in the entropy term, for losses that choose tokens from the whole mini-batch.
    EntropyMask { name: "entropy_mask", per: Token, unit: "0 or 1", from: "phase `update_actor`" }
}

/// The columns written so far, and the offsets that cut token columns into trajectories.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchColumns {
    /// Trajectory i has the response tokens `offsets[i]..offsets[i + 1]`.
    offsets: Vec<usize>,
    /// Values in the order of [`Column::ALL`].
    values: [Option<Vec<f32>>; Column::ALL.len()],
}

impl BatchColumns {
    /// Returns a table without columns, for responses of these lengths.
    pub fn new(lengths: impl Iterator<Item = usize>) -> Self {
        let mut offsets = vec![0];
        for length in lengths {
            offsets.push(offsets[offsets.len() - 1] + length);
        }
        Self { offsets, values: Default::default() }
    }

    /// Boundaries of trajectories in a token column, `[trajectories + 1]`.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Number of trajectories.
    pub fn trajectories(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of response tokens.
    pub fn tokens(&self) -> usize {
        self.offsets[self.trajectories()]
    }

    /// Returns the range of a trajectory's values in a column.
    fn range(&self, column: Column, trajectory: usize) -> Range<usize> {
        match column.per() {
            Per::Token => self.offsets[trajectory]..self.offsets[trajectory + 1],
            Per::Trajectory => trajectory..trajectory + 1,
        }
    }

    /// Returns a column, `[tokens]` or `[trajectories]`, if it has been written.
    pub fn get(&self, column: Column) -> Option<&[f32]> {
        self.values[column as usize].as_deref()
    }

    /// Writes a column.
    ///
    /// # Panics
    /// If it does not have one value per token, or per trajectory.
    pub fn set(&mut self, column: Column, values: Vec<f32>) {
        let count = match column.per() {
            Per::Token => self.tokens(),
            Per::Trajectory => self.trajectories(),
        };
        assert_eq!(values.len(), count, "values of the column `{}`", column.name());
        self.values[column as usize] = Some(values);
    }

    /// Columns that have been written.
    fn written(&self) -> impl Iterator<Item = (Column, &[f32])> {
        Column::ALL.iter().filter_map(|&column| Some((column, self.get(column)?)))
    }

    /// Returns the values of a trajectory in every written column.
    pub(crate) fn of_trajectory(&self, trajectory: usize) -> impl Iterator<Item = (Column, &[f32])> {
        self.written().map(move |(column, values)| (column, &values[self.range(column, trajectory)]))
    }

    /// Sets all values of a trajectory to 0.
    pub fn clear(&mut self, trajectory: usize) {
        for &column in Column::ALL {
            let range = self.range(column, trajectory);
            if let Some(values) = &mut self.values[column as usize] {
                values[range].fill(0.0);
            }
        }
    }

    /// Returns trajectories in the given order, with repetitions.
    pub fn select(&self, trajectories: &[usize]) -> Self {
        let mut selected = Self { offsets: gather_offsets(&self.offsets, trajectories), values: Default::default() };
        for (column, values) in self.written() {
            let own = match column.per() {
                Per::Token => gather(values, &self.offsets, trajectories),
                Per::Trajectory => trajectories.iter().map(|&i| values[i]).collect(),
            };
            selected.set(column, own);
        }
        selected
    }

    /// Appends other trajectories.
    ///
    /// # Panics
    /// If one table has a column that the other lacks, since no value could fill the gap.
    pub fn append(&mut self, other: Self) {
        let tokens = self.tokens();
        self.offsets.extend(other.offsets[1..].iter().map(|end| end + tokens));
        for ((&column, own), others) in Column::ALL.iter().zip(&mut self.values).zip(other.values) {
            match (own, others) {
                (Some(own), Some(others)) => own.extend(others),
                (None, None) => {}
                _ => panic!("only one of two batches has the column `{}`, from {}", column.name(), column.written_by()),
            }
        }
    }
}

impl Index<Column> for BatchColumns {
    type Output = [f32];

    /// # Panics
    /// If the column has not been written.
    fn index(&self, column: Column) -> &[f32] {
        self.get(column).unwrap_or_else(|| panic!("{}", lacks(column)))
    }
}

impl IndexMut<Column> for BatchColumns {
    /// # Panics
    /// If the column has not been written.
    fn index_mut(&mut self, column: Column) -> &mut [f32] {
        self.values[column as usize].as_deref_mut().unwrap_or_else(|| panic!("{}", lacks(column)))
    }
}

fn lacks(column: Column) -> String {
    format!("the batch lacks the column `{}`: {} writes it", column.name(), column.written_by())
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use proptest::prelude::*;

    use super::*;

    /// Trajectories of these lengths with the columns of `written`; all values differ.
    fn table(lengths: &[usize], written: &[bool], first: f32) -> BatchColumns {
        let mut columns = BatchColumns::new(lengths.iter().copied());
        for (place, &column) in Column::ALL.iter().enumerate().filter(|(place, _)| written[*place]) {
            let count = if column.per() == Per::Token { columns.tokens() } else { columns.trajectories() };
            columns.set(column, (0..count).map(|i| first + (place * 1000 + i) as f32).collect());
        }
        columns
    }

    /// All values of a table, trajectory by trajectory.
    fn rows(columns: &BatchColumns) -> Vec<Vec<(Column, Vec<f32>)>> {
        let row = |i| columns.of_trajectory(i).map(|(column, values)| (column, values.to_vec())).collect();
        (0..columns.trajectories()).map(row).collect()
    }

    fn lengths() -> impl Strategy<Value = Vec<usize>> {
        prop::collection::vec(0usize..4, 1..5)
    }

    fn written() -> impl Strategy<Value = Vec<bool>> {
        prop::collection::vec(any::<bool>(), Column::ALL.len())
    }

    proptest! {
        #[test]
        fn selected_trajectories_keep_every_column(lengths in lengths(), written in written(), chosen in prop::collection::vec(0usize..64, 0..7)) {
            let all = table(&lengths, &written, 0.0);
            let chosen: Vec<usize> = chosen.into_iter().map(|i| i % lengths.len()).collect();
            let selected = all.select(&chosen);
            let of_all = rows(&all);
            prop_assert_eq!(rows(&selected), chosen.iter().map(|&i| of_all[i].clone()).collect::<Vec<_>>());
            for (place, &column) in Column::ALL.iter().enumerate() {
                prop_assert_eq!(selected.get(column).is_some(), written[place]);
            }
            let everything: Vec<usize> = (0..lengths.len()).collect();
            prop_assert_eq!(all.select(&everything), all);
        }

        #[test]
        fn appended_trajectories_keep_every_column(first in lengths(), second in lengths(), written in written()) {
            let (before, other) = (table(&first, &written, 0.0), table(&second, &written, 0.5));
            let mut both = before.clone();
            both.append(other.clone());
            prop_assert_eq!(rows(&both), [rows(&before), rows(&other)].concat());
            let (front, back): (Vec<usize>, Vec<usize>) = (0..both.trajectories()).partition(|&i| i < first.len());
            prop_assert_eq!((both.select(&front), both.select(&back)), (before, other));
        }

        #[test]
        fn a_column_is_never_dropped_by_appending(first in lengths(), written in written(), place in 0..Column::ALL.len()) {
            let mut others = written.clone();
            others[place] = !others[place];
            let (mut one, other) = (table(&first, &written, 0.0), table(&first, &others, 0.0));
            prop_assert!(catch_unwind(AssertUnwindSafe(|| one.append(other))).is_err());
        }

        #[test]
        fn what_is_cleared_is_one_trajectory(lengths in lengths(), written in written(), chosen in 0usize..64) {
            let mut all = table(&lengths, &written, 1.0);
            let (before, chosen) = (rows(&all), chosen % lengths.len());
            all.clear(chosen);
            for (i, (row, before)) in rows(&all).into_iter().zip(before).enumerate() {
                let right = if i == chosen { row.iter().all(|(_, x)| x.iter().all(|&x| x == 0.0)) } else { row == before };
                prop_assert!(right, "trajectory {}", i);
            }
        }
    }

    #[test]
    fn names_tell_columns_apart() {
        let names: std::collections::BTreeSet<&str> = Column::ALL.iter().map(|column| column.name()).collect();
        assert_eq!(names.len(), Column::ALL.len());
    }
}
