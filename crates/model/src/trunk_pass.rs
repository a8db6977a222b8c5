//! Forward and backward passes of everything between embedded tokens and hidden states, with all activations held or with
//! gradient checkpointing.

use std::sync::Arc;

use burn::tensor::{Gradients as Graph, Tensor};

use super::causal_lm::CausalLm;
use super::decoder::Pass;
use super::experts::{RoutedLayer, RouterTerms};
use super::gradients::Gradients;
use super::ops::Packed;
use super::residual_stream::ResidualStream;
use super::shared_keys::SharedKeys;
use super::token_mixer::PackedMixer;
use super::token_stats::Layout;

impl CausalLm {
    /// The routing of the mixtures that ran since the last call.
    fn routed(&self) -> Vec<RoutedLayer> {
        self.router.as_ref().map(|router| router.log.take()).unwrap_or_default()
    }

    /// The terms that the backward pass adds for mixtures that routed in this way.
    fn router_terms(&self, routed: &[RoutedLayer]) -> Option<RouterTerms> {
        let (config, pass) = (self.config.mixture.as_ref()?, self.router.as_ref()?);
        Some(RouterTerms::new(routed, &config.router, pass))
    }

    /// Runs the trunk's forward pass and keeps what its backward pass needs.
    pub(super) fn trunk_pass(&self, embedded: Tensor<2>, layout: &Layout) -> TrunkPass {
        self.routed();
        if !self.gradient_checkpointing {
            let input = leaf(embedded);
            let output = self.hidden(input.clone(), &layout.packed);
            let routed = self.routed();
            return TrunkPass { terms: self.router_terms(&routed), kept: Kept::Graph { input, output, routed } };
        }
        let model = self.frozen();
        let pass = model.pass(&layout.packed.positions());
        let layer_inputs = model.net.layer_inputs(&embedded, &pass);
        let (mut inputs, mut shared) = (vec![model.net.residual_columns(embedded.clone())], SharedKeys::default());
        for layer in 0..model.net.model.layers.len() {
            let x = inputs[layer].clone();
            let layer_input = layer_inputs.as_ref().and_then(|inputs| pass.input_of(layer, inputs));
            inputs.push(model.block(layer, x, &Pass { layer_input, ..pass.clone() }, &layout.packed, &mut shared));
        }
        let output = model.net.last_norm(inputs[inputs.len() - 1].clone(), &pass);
        let layer_inputs = layer_inputs.map(|inputs| LayerInputPass { embedded, inputs });
        TrunkPass { terms: self.router_terms(&self.routed()), kept: Kept::Checkpoints { inputs, output, layer_inputs, shared } }
    }

    fn block(&self, layer: usize, x: Tensor<2>, pass: &Pass, packed: &Arc<Packed>, shared: &mut SharedKeys) -> Tensor<2> {
        let pass = &pass.at_layer(layer);
        let mut x = ResidualStream::new(if layer == 0 { self.net.first_input(x, pass) } else { x });
        self.net.model.layers[layer].forward(&mut x, pass, layer, &mut PackedMixer { packed, config: &self.config }, shared);
        x.value(pass)
    }
}

/// The hidden states of a trunk, and the inputs of its backward pass.
pub(super) struct TrunkPass {
    terms: Option<RouterTerms>,
    kept: Kept,
}

#[expect(clippy::large_enum_variant, reason = "one value per pass: its size does not matter")]
enum Kept {
    /// All activations are held.
    Graph { input: Tensor<2>, output: Tensor<2>, routed: Vec<RoutedLayer> },
    /// Only the inputs of each block and of the last norm are held, and what several blocks read: their own inputs, shared keys and
    /// values. The rest is recomputed, block by block.
    Checkpoints { inputs: Vec<Tensor<2>>, output: Tensor<2>, layer_inputs: Option<LayerInputPass>, shared: SharedKeys },
}

/// Embedded tokens and the inputs of all layers that were made of them.
struct LayerInputPass {
    embedded: Tensor<2>,
    inputs: Tensor<2>,
}

impl TrunkPass {
    /// Final hidden states [rows, h], outside any graph.
    pub(super) fn hidden(&self) -> Tensor<2> {
        match &self.kept {
            Kept::Graph { output, .. } => output.clone().inner(),
            Kept::Checkpoints { output, .. } => output.clone(),
        }
    }

    /// Returns the gradient of the embedded tokens from the gradient of the hidden states. The parameters' gradients are added to
    /// `gradients`.
    pub(super) fn backward(self, model: &CausalLm, layout: &Layout, d_hidden: Tensor<2>, gradients: &mut Gradients) -> Tensor<2> {
        let mut step = |loss: Tensor<1>, routed: &[RoutedLayer]| {
            let mut graph = self.terms.as_ref().map_or(loss.clone(), |terms| terms.add_to(loss, routed)).backward();
            gradients.add_backward(&model.net, &mut graph);
            graph
        };
        let (inputs, layer_inputs, shared) = match self.kept {
            Kept::Graph { input, output, routed } => return gradient(&input, &mut step(product(output, d_hidden), &routed)),
            Kept::Checkpoints { inputs, layer_inputs, shared, .. } => (inputs, layer_inputs, shared),
        };
        let (pass, layers) = (model.pass(&layout.packed.positions()), model.net.model.layers.len());
        let (mut d, mut d_shared, mut d_inputs) = (d_hidden, SharedKeys::default(), Vec::new());
        for (layer, input) in inputs.into_iter().enumerate().rev() {
            let input = leaf(input);
            if layer == layers {
                let output = model.net.last_norm(input.clone(), &pass);
                d = gradient(&input, &mut step(product(output, d), &model.routed()));
                continue;
            }
            let layer_input = layer_inputs.as_ref().and_then(|all| pass.input_of(layer, &all.inputs)).map(leaf);
            let own = Pass { layer_input: layer_input.clone(), ..pass.clone() };
            let leaves = shared.leaves_for(layer, &model.config);
            let mut keys = leaves.clone();
            let loss = product(model.block(layer, input.clone(), &own, &layout.packed, &mut keys), d);
            // Keys and values that later layers read have a second gradient, the sum of those of the later layers.
            let of_keys = keys.dot(&d_shared).filter(|_| model.config.is_source(layer));
            let loss = of_keys.map_or(loss.clone(), |of_keys| loss + of_keys);
            let mut graph = step(loss, &model.routed());
            d = gradient(&input, &mut graph);
            d_shared.add_gradients(&leaves, &mut graph);
            d_inputs.extend(layer_input.map(|input| gradient(&input, &mut graph)));
        }
        let Some(LayerInputPass { embedded, .. }) = layer_inputs else { return d };
        d_inputs.reverse();
        let embedded = leaf(embedded);
        let inputs = model.net.layer_inputs(&embedded, &pass).expect("the model has inputs of layers");
        let d_embedded = gradient(&embedded, &mut step(product(inputs, Tensor::cat(d_inputs, 1)), &[]));
        let rows = model.net.row_columns(&d_embedded).expect("the model has inputs of layers");
        Tensor::cat(vec![d + model.net.residual_columns(d_embedded), rows], 1)
    }
}

fn leaf(x: Tensor<2>) -> Tensor<2> {
    Tensor::from_inner(x).require_grad()
}

fn gradient(leaf: &Tensor<2>, graph: &mut Graph) -> Tensor<2> {
    leaf.grad_remove(graph).expect("the input is a leaf of this graph")
}

/// The loss whose gradient with respect to `output` is `d`.
fn product(output: Tensor<2>, d: Tensor<2>) -> Tensor<1> {
    (output * Tensor::from_inner(d)).sum()
}
