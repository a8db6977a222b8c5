//! The kinds of configuration, with verl's files for each kind.

use super::table::{EVALUATION, EVERYWHERE, GENERATION, GENERATION_ENGINE, KeyTreatment, RL, RL_ENGINE, SFT};

/// A kind of configuration. A new kind is a variant and a line of `KINDS`, in the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Rl,
    Sft,
    Rm,
    Dpo,
    Distill,
    Generation,
    Evaluation,
}

/// The facts about a kind.
struct KindFacts {
    kind: Kind,
    /// The heading in `docs/from-verl.md`.
    title: &'static str,
    /// The built-in file with all its defaults.
    default_file: &'static str,
    /// verl's files of this kind.
    verl_files: &'static [&'static str],
    /// The rows for verl's keys, in order of precedence; the rows for every kind follow them.
    rows: [&'static [(&'static str, KeyTreatment)]; 2],
}

const KINDS: [KindFacts; 7] = [
    KindFacts {
        kind: Kind::Rl,
        title: "Reinforcement learning: `trainer`",
        default_file: "ppo_trainer",
        verl_files: &["ppo_trainer", "ppo_megatron_trainer"],
        rows: [RL, RL_ENGINE],
    },
    KindFacts {
        kind: Kind::Sft,
        title: "Supervised fine-tuning: `trainer sft`",
        default_file: "sft_trainer",
        verl_files: &["sft_trainer", "sft_trainer_engine"],
        rows: [SFT, &[]],
    },
    KindFacts {
        kind: Kind::Rm,
        title: "Reward models: `trainer rm`",
        default_file: "rm_trainer",
        verl_files: &[],
        rows: [&[], &[]],
    },
    KindFacts {
        kind: Kind::Dpo,
        title: "Preference optimisation: `trainer dpo`",
        default_file: "dpo_trainer",
        verl_files: &[],
        rows: [&[], &[]],
    },
    KindFacts {
        kind: Kind::Distill,
        title: "Distillation on given texts: `trainer distill`",
        default_file: "distill_trainer",
        verl_files: &[],
        rows: [&[], &[]],
    },
    KindFacts {
        kind: Kind::Generation,
        title: "Generation: `trainer generate`",
        default_file: "generation",
        verl_files: &["generation"],
        rows: [GENERATION, GENERATION_ENGINE],
    },
    KindFacts {
        kind: Kind::Evaluation,
        title: "Evaluation: `trainer eval`",
        default_file: "evaluation",
        verl_files: &["evaluation"],
        rows: [EVALUATION, &[]],
    },
];

// An entry whose index differs from that of its variant does not compile.
const _: () = {
    let mut index = 0;
    while index < KINDS.len() {
        assert!(KINDS[index].kind as usize == index, "KINDS has the order of the variants of Kind");
        index += 1;
    }
};

impl Kind {
    /// Returns every kind.
    pub fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|facts| facts.kind)
    }

    /// Returns the kind of one of verl's files; reinforcement learning for an unknown file.
    pub fn of_verl_file(name: &str) -> Self {
        KINDS.iter().find(|facts| facts.verl_files.contains(&name)).map_or(Self::Rl, |facts| facts.kind)
    }

    /// Returns verl's files of this kind.
    pub(crate) fn verl_files(self) -> &'static [&'static str] {
        KINDS[self as usize].verl_files
    }

    /// Returns the built-in file with the defaults of this kind.
    pub const fn default_file(self) -> &'static str {
        KINDS[self as usize].default_file
    }

    /// Returns the heading of this kind in the documentation.
    pub fn title(self) -> &'static str {
        KINDS[self as usize].title
    }

    /// Returns the rows of only this kind, in order of precedence.
    pub(crate) fn rows_of_kind(self) -> impl Iterator<Item = &'static (&'static str, KeyTreatment)> {
        KINDS[self as usize].rows.into_iter().flatten()
    }

    /// Returns the rows of this kind and then the rows of every kind, in order of precedence.
    pub fn rows(self) -> impl Iterator<Item = &'static (&'static str, KeyTreatment)> {
        self.rows_of_kind().chain(EVERYWHERE)
    }
}
