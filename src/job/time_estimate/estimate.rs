//! The phases of a step, and the time that they take on a card.

use super::cards::{Card, Kind};
use super::costs::Costs;
use super::tokens::{Generation, Tokens};
use super::work::Work;
use burnish_optim::Optimizer;

/// What one process does in a step, phase by phase.
pub struct TimeEstimate {
    /// What is estimated: a step, or a batch.
    pub(super) of: &'static str,
    bfloat16: bool,
    /// The processes of the run.
    pub(super) ranks: usize,
    /// Tokens that are sampled.
    pub(super) sampled: f64,
    pub(super) phases: Vec<Phase>,
}

/// The part of a step that a phase belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part {
    Generation,
    Passes,
    Update,
}

pub struct Phase {
    pub part: Part,
    pub name: String,
    pub kind: Kind,
    /// With products in f32, and as the run asks for them.
    work: [Work; 2],
}

/// Bytes of a bfloat16 and of an f32.
const WIDTHS: [f64; 2] = [2.0, 4.0];

impl TimeEstimate {
    /// Of a step or a batch, in one of `ranks` processes. `bfloat16`: products are asked for in bfloat16, which not every card has.
    pub fn new(of: &'static str, bfloat16: bool, ranks: usize) -> Self {
        Self { of, bfloat16, ranks, sampled: 0.0, phases: vec![] }
    }

    fn add(&mut self, part: Part, name: String, kind: Kind, work: impl Fn(f64) -> Work) {
        let [narrow, wide] = WIDTHS.map(work);
        self.phases.push(Phase { part, name, kind, work: [wide, if self.bfloat16 { narrow } else { wide }] });
    }

    /// A generation; `name` is that of its time in the metrics.
    pub fn generation(&mut self, name: &str, costs: &Costs, generation: Generation) {
        self.add(Part::Generation, format!("{name}, prefill"), Kind::Forward, |width| costs.prefill(generation, width));
        self.add(Part::Generation, format!("{name}, decode"), Kind::Decode, |width| costs.decode(generation, width));
        self.sampled += generation.sampled();
    }

    /// Passes without gradient over a batch, before the update.
    pub fn pass(&mut self, name: &str, costs: &Costs, tokens: Tokens) {
        self.add(Part::Passes, name.to_owned(), Kind::Forward, |width| costs.forward(tokens, width));
    }

    /// So many updates, each of which reads these tokens. `beside`: models that pass over the same tokens without gradient, with their
    /// names.
    pub fn update(
        &mut self,
        name: &str,
        costs: &Costs,
        tokens: Tokens,
        updates: usize,
        optimizer: &Optimizer,
        beside: &[(&str, &Costs)],
    ) {
        let times = updates as f64;
        for (model, costs) in beside {
            self.add(Part::Update, format!("{name}, {model}"), Kind::Forward, |width| costs.forward(tokens, width) * times);
        }
        self.add(Part::Update, format!("{name}, forward"), Kind::Training, |width| costs.forward(tokens, width) * times);
        self.add(Part::Update, format!("{name}, backward"), Kind::Training, |width| costs.backward(tokens, width) * times);
        let ranks = self.ranks;
        self.add(Part::Update, format!("{name}, optimizer"), Kind::Update, |_| costs.update(optimizer, ranks) * times);
    }

    /// True if products are computed in bfloat16 on this card.
    pub(super) fn is_bfloat16(&self, card: &Card) -> bool {
        self.bfloat16 && card.bfloat16.is_some()
    }

    pub(super) fn work(&self, phase: &Phase, card: &Card) -> Work {
        phase.work[usize::from(self.is_bfloat16(card))]
    }

    /// Seconds of the phases that `which` chooses.
    pub(super) fn seconds(&self, card: &Card, which: impl Fn(&Phase) -> bool) -> f64 {
        let of = |phase: &&Phase| which(phase);
        let bfloat16 = self.is_bfloat16(card);
        self.phases.iter().filter(of).map(|phase| card.seconds(self.work(phase, card), phase.kind, bfloat16).0).sum()
    }
}
