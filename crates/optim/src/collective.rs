//! Collective operations of a learner: an update, and a checkpoint.

use serde::{Deserialize, Serialize};

use super::gradient_sum::GradientSum;
use super::learner::{Learner, Update};
use super::reduce::reduce;
use super::rule::Slot;
use super::sharded_update::gather_weights;
use super::shards::Shards;
use burnish_model::decoder::Decoder;

/// A state tensor whose elements rank 0 requests from the other ranks, to write them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatePart {
    /// [`Learner::name`]
    pub learner: String,
    pub parameter: String,
    /// [`Slot::kind`]
    pub kind: String,
}

impl Learner {
    /// Returns the division of the trained parameters among the ranks.
    pub(super) fn shards(&self) -> Shards {
        self.optimizer.shards(&self.model.net, &self.model.config, self.ranks.size())
    }

    /// Makes an update in which each rank updates its own elements of the tensors that the optimizer sees. Collective.
    pub(super) fn update_together(&mut self, gradients: GradientSum, lr: f64) -> Update {
        let shards = self.shards();
        let gradients = reduce(gradients, &shards, &self.ranks);
        let names = shards.parameters.iter().map(|sharded| sharded.name.as_str());
        let update = Update::from_squares(names.zip(&gradients).filter_map(|(name, g)| Some((name, g.as_ref()?.squares))));
        if !update.applied {
            return update;
        }
        let has_gradient: Vec<bool> = gradients.iter().map(Option::is_some).collect();
        let elements = gradients.into_iter().map(|gradient| gradient.map(|reduced| reduced.elements)).collect();
        let (rank, scale) = (self.ranks.rank(), self.scale(&update));
        let elements = self.optimizer.update_shard(&self.model.net, (&shards, rank), elements, lr, scale);
        let net = std::mem::replace(&mut self.model.net, Decoder::empty(&self.model.device));
        self.model.net = gather_weights(net, elements, &shards, &has_gradient, &self.ranks);
        update
    }

    /// Returns all elements of a state tensor, on rank 0, which has `own` of them. It requests the others, within
    /// [`Ranks::lead`](burnish_distributed::Ranks::lead).
    pub(super) fn all_numbers(&self, shards: &Shards, parameter: &str, slot: &Slot, own: Vec<f32>) -> Vec<f32> {
        let Some(sharded) = shards.find(parameter).filter(|_| !self.ranks.is_alone()) else { return own };
        let count = |rank| slot.range_of(&sharded.range_of(rank), sharded.size()).len();
        let question = StatePart { learner: self.name.to_owned(), parameter: parameter.to_owned(), kind: slot.kind.to_owned() };
        self.ranks.ask(question, &own, (0..self.ranks.size()).map(count).collect())
    }

    /// Returns the reply of a rank other than 0 to a request of [`save`](Self::save).
    pub fn state_part(&self, part: &StatePart) -> Vec<f32> {
        self.optimizer.local_elements(&part.parameter, &part.kind)
    }

    /// Returns the bytes of the optimizer's state that this rank stores.
    #[cfg(test)]
    pub(super) fn optimizer_bytes(&self) -> usize {
        self.optimizer.stored_bytes()
    }
}
