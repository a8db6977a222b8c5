//! Counts the elements that a model's passes hold at once, from its shape. Every element is an f32, on every device.
//!
//! The counts follow the code: tensors that the operations of [`super::ops`] keep for their backward passes, tensors of a running
//! block, and one chunk of the head. Small tensors are not counted: rotations, indices, log-sums of attention.

use anyhow::{Result, bail};

use super::config::{DecoderConfig, HeadKind, Positions, QkNorm, Residual};
use super::experts::MixtureConfig;
use super::latent_shape::LatentShape;
use super::layer_shape::AttentionShape;
use super::linear_attention::RecurrentKind;
use super::ops::{BLOCK, CHUNK, attention::QUERIES, head};
use burnish_util::machine::amount;
use burnish_util::sizes::largest;

/// A count of elements. Model sizes and batch lengths are each below 2^64, so that no product of them overflows.
pub type ElementCount = u128;

/// Bytes of an f32.
pub const BYTES: ElementCount = 4;

/// The largest supported number of parameters; the largest published models have 2^41.
const MAX_PARAMETERS: ElementCount = 1 << 46;

/// The typical name of a matrix of attention over latent keys.
const LATENT_MATRIX: &str = "model.layers.0.latent_attn.kv_b_proj.weight";

/// The largest batch of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LargestBatch {
    /// Tokens that go through the trunk. A prompt counts once for all its responses.
    pub rows: usize,
    /// Tokens whose log-probabilities are computed.
    pub predicted: usize,
    /// Tokens of the longest sequence.
    pub longest: usize,
}

impl LargestBatch {
    fn rows(self) -> ElementCount {
        self.rows as ElementCount
    }

    fn predicted(self) -> ElementCount {
        self.predicted as ElementCount
    }
}

impl DecoderConfig {
    /// The number of parameters of the network.
    pub fn num_parameters(&self) -> usize {
        usize::try_from(self.parameters()).unwrap_or(usize::MAX)
    }

    /// The number of parameters that one token uses: of a mixture, the router, its chosen experts and the shared one.
    pub fn active_parameters(&self) -> usize {
        let idle = |mixture: &MixtureConfig| {
            (mixture.experts - mixture.top_k) as ElementCount * self.expert(mixture) * mixture.count() as ElementCount
        };
        usize::try_from(self.parameters() - self.mixture.as_ref().map_or(0, idle)).unwrap_or(usize::MAX)
    }

    /// Refuses sizes beyond any model.
    ///
    /// # Errors
    /// If there would be too many parameters. The message has their number, their memory, and the largest size.
    pub(crate) fn check_size(&self) -> Result<()> {
        let parameters = self.parameters();
        if parameters <= MAX_PARAMETERS {
            return Ok(());
        }
        let sizes = [
            ("the vocabulary", self.vocab_size),
            ("the hidden size", self.hidden_size),
            ("the intermediate size", self.intermediate_size),
            ("the number of layers", self.num_hidden_layers),
            ("the number of experts", self.mixture.as_ref().map_or(0, |mixture| mixture.experts)),
            ("the size of an expert", self.mixture.as_ref().map_or(0, |mixture| mixture.intermediate_size)),
            ("the number of attention heads", self.num_attention_heads),
            ("the number of heads of keys and values", self.num_key_value_heads),
            ("the size of a head", self.head_dim),
            ("the number of positions", if self.positions == Positions::Learned { self.max_position_embeddings } else { 0 }),
        ];
        let largest = largest(&sizes);
        let size = sizes.iter().find(|(name, _)| *name == largest).map_or(0, |(_, size)| *size);
        bail!(
            "config.json: the model would have {parameters} parameters, which take {} as float32; {largest} is {size}",
            amount(parameters * BYTES)
        )
    }

    /// Returns the shapes of the parameters, each with a typical name and the number of parameters that have it. All parameters that are
    /// not matrices are counted as vectors of the hidden size.
    pub fn shapes(&self) -> Vec<(&'static str, Vec<usize>, ElementCount)> {
        let (h, into) = (self.hidden_size, if self.gated { 2 } else { 1 });
        let head = usize::from(self.head == HeadKind::Language && !self.tie_word_embeddings) * self.vocab_size;
        let positions = if self.positions == Positions::Learned { self.max_position_embeddings } else { 0 };
        let mut shapes = vec![
            ("model.embed_tokens.weight", vec![self.vocab_size, h], 1),
            ("model.embed_positions.weight", vec![positions, h], 1),
            ("lm_head.weight", vec![head, h], 1),
        ];
        for (shape, layers) in self.attention_shapes() {
            let layers = layers as ElementCount;
            if let Some(latent) = self.latent {
                let linears = latent.linears(h, self.num_attention_heads).into_iter();
                shapes.extend(linears.map(|(_, input, output, _)| (LATENT_MATRIX, vec![output, input], layers)));
                continue;
            }
            let q = shape.queries();
            let queries = if self.output_gate { 2 * q } else { q };
            let kv = shape.kv_projections() as ElementCount * layers;
            shapes.extend([
                ("model.layers.0.self_attn.q_proj.weight", vec![queries, h], layers),
                ("model.layers.0.self_attn.k_proj.weight", vec![shape.keys(), h], kv),
                ("model.layers.0.self_attn.o_proj.weight", vec![h, q], layers),
            ]);
        }
        for (i, layers) in self.mlp_widths() {
            shapes.extend([
                ("model.layers.0.mlp.up_proj.weight", vec![i, h], into * layers),
                ("model.layers.0.mlp.down_proj.weight", vec![h, i], layers),
            ]);
        }
        if let Some(inputs) = self.layer_inputs {
            let all = self.layer_inputs_width();
            shapes.extend([
                ("model.embed_tokens_per_layer.weight", vec![inputs.vocab_size, all], 1),
                ("model.per_layer_model_projection.weight", vec![all, h], 1),
                ("model.layers.0.per_layer_input_gate.weight", vec![inputs.width, h], self.layers()),
                ("model.layers.0.per_layer_projection.weight", vec![h, inputs.width], self.layers()),
            ]);
        }
        shapes.extend(self.mixture.iter().flat_map(|mixture| mixture_shapes(mixture, h)));
        if let Some(recurrent) = &self.recurrent_layers {
            let linears = recurrent.kind.linears(h);
            let count = self.recurrent_count() as ElementCount;
            shapes.extend(
                linears.into_iter().map(|(_, input, output)| ("model.layers.0.out_proj.weight", vec![output, input], count)),
            );
        }
        shapes.retain(|(_, shape, count)| !shape.contains(&0) && *count > 0);
        let size = |shape: &[usize]| shape.iter().map(|size| *size as ElementCount).product::<ElementCount>();
        let matrices: ElementCount = shapes.iter().map(|(_, shape, count)| size(shape) * count).sum();
        let vectors = self.parameters().saturating_sub(matrices);
        let norms = [(vec![h], vectors / h.max(1) as ElementCount), (vec![(vectors % h.max(1) as ElementCount) as usize], 1)];
        shapes.extend(norms.map(|(shape, count)| ("model.norm.weight", shape, count)));
        shapes
    }

    fn parameters(&self) -> ElementCount {
        let h = self.hidden();
        let bias = |has: bool, count: ElementCount| if has { count } else { 0 };
        let norm_of = |width: ElementCount| bias(self.norm.has_weight(), width) + bias(self.norm.has_bias(), width);
        let attention = |shape: AttentionShape| {
            if let Some(latent) = self.latent {
                return self.latent_parameters(latent);
            }
            let (q, kv) = (shape.queries() as ElementCount, shape.keys() as ElementCount);
            let projections = shape.kv_projections() as ElementCount;
            let qk_norms = match self.qk_norm {
                QkNorm::None => 0,
                QkNorm::PerHead | QkNorm::AfterRotation => (1 + projections.min(1)) * norm_of(shape.head_dim as ElementCount),
                QkNorm::AllHeads => norm_of(q + kv),
            } + bias(self.attention_sinks, self.heads());
            let (queries, kv) = (if self.output_gate { 2 * q } else { q }, projections * kv);
            queries * h + q * h + kv * h + bias(self.qkv_bias, queries + kv) + bias(self.o_bias, h) + qk_norms
        };
        let attentions: ElementCount =
            self.attention_shapes().into_iter().map(|(shape, layers)| layers as ElementCount * attention(shape)).sum();
        let mixing = attentions + self.recurrent_count() as ElementCount * self.recurrent_parameters();
        let mlps: ElementCount = self.mlp_widths().into_iter().map(|(i, layers)| layers * self.mlp_parameters(i)).sum();
        let norm = norm_of(h);
        let norms = norm * self.residual.norms() as ElementCount;
        let head = match self.head {
            HeadKind::Classifier { bias: has, labels, .. } => (h + bias(has, 1)) * labels as ElementCount,
            HeadKind::Language if self.tie_word_embeddings => 0,
            HeadKind::Language => self.vocabulary() * h,
        };
        let positions = if self.positions == Positions::Learned { self.max_position_embeddings as ElementCount * h } else { 0 };
        let mixtures = self.mixture.as_ref().map_or(0, |mixture| self.of_mixture(mixture) * mixture.count() as ElementCount);
        let inputs = self.layer_inputs.map_or(0, |inputs| {
            let (all, width) = (self.layer_inputs_width() as ElementCount, inputs.width as ElementCount);
            (inputs.vocab_size as ElementCount + h) * all + norm_of(width) + self.layers() * (2 * width * h + norm)
        });
        let others = inputs + bias(self.layer_scalars, self.layers());
        self.vocabulary() * h + head + positions + mixing + self.layers() * norms + mlps + mixtures + norm + others
    }

    /// The different shapes of attention, each with its number of layers.
    fn attention_shapes(&self) -> Vec<(AttentionShape, usize)> {
        let mut shapes: Vec<(AttentionShape, usize)> = Vec::new();
        for layer in (0..self.num_hidden_layers).filter(|layer| self.has_attention(*layer)) {
            let shape = self.attention(layer);
            match shapes.iter_mut().find(|(other, _)| *other == shape) {
                Some((_, layers)) => *layers += 1,
                None => shapes.push((shape, 1)),
            }
        }
        shapes
    }

    /// The different widths of MLPs, each with its number of layers.
    fn mlp_widths(&self) -> Vec<(usize, ElementCount)> {
        let wide = if self.double_wide { self.shared_layers as ElementCount } else { 0 };
        vec![(self.intermediate_size, self.dense_layers() - wide), (2 * self.intermediate_size, wide)]
    }

    /// The parameters of one layer of attention over latent keys.
    fn latent_parameters(&self, latent: LatentShape) -> ElementCount {
        let (h, heads) = (self.hidden_size, self.num_attention_heads);
        let product = |(_, input, output, _)| input as ElementCount * output as ElementCount;
        let matrices = latent.linears(h, heads).into_iter().map(product).sum::<ElementCount>();
        matrices + latent.other_parameters(h, heads, self.qkv_bias) as ElementCount
    }

    /// The number of layers that have an MLP.
    fn dense_layers(&self) -> ElementCount {
        self.layers() - self.mixture.as_ref().map_or(0, |mixture| mixture.count() as ElementCount)
    }

    /// The parameters of an MLP of this width.
    fn mlp_parameters(&self, intermediate: usize) -> ElementCount {
        let (h, i, into) = (self.hidden(), intermediate as ElementCount, if self.gated { 2 } else { 1 });
        (into + 1) * i * h + if self.mlp_bias { into * i + h } else { 0 }
    }

    /// The parameters of one expert.
    fn expert(&self, mixture: &MixtureConfig) -> ElementCount {
        let (h, i) = (self.hidden(), mixture.intermediate_size as ElementCount);
        3 * h * i + if mixture.bias { 2 * i + h } else { 0 }
    }

    /// The parameters of one mixture.
    fn of_mixture(&self, mixture: &MixtureConfig) -> ElementCount {
        let (h, count) = (self.hidden(), mixture.experts as ElementCount);
        let biases = [mixture.router.bias, mixture.router.choice_bias].map(ElementCount::from);
        let router = count * (h + biases.iter().sum::<ElementCount>());
        let shared = mixture
            .shared
            .as_ref()
            .map_or(0, |shared| self.mlp_parameters(shared.intermediate_size) + if shared.gated { h } else { 0 });
        count * self.expert(mixture) + router + shared
    }

    /// Elements that a row of a mixture keeps: gathered inputs and outputs of its experts (2 h each), gate, up and their product;
    /// logits, probabilities and weights; gate, up, product and output of the shared expert. 0 without mixtures.
    fn mixture_row(&self) -> ElementCount {
        let Some(mixture) = &self.mixture else { return 0 };
        let (h, i) = (self.hidden(), mixture.intermediate_size as ElementCount);
        let shared = mixture.shared.as_ref().map_or(0, |shared| 3 * shared.intermediate_size as ElementCount + h);
        mixture.top_k as ElementCount * (3 * i + 2 * h + 4) + 2 * mixture.experts as ElementCount + shared
    }

    /// The number of parameters of a recurrent layer, without MLP and norms of the block.
    fn recurrent_parameters(&self) -> ElementCount {
        let Some(recurrent) = &self.recurrent_layers else { return 0 };
        let linears = recurrent.kind.linears(self.hidden_size).into_iter();
        let matrices = linears.map(|(_, input, output)| input as ElementCount * output as ElementCount).sum::<ElementCount>();
        matrices + recurrent.kind.other_parameters(self.hidden_size) as ElementCount
    }

    /// Elements per row that a recurrent layer keeps for its backward pass. Delta net: the inputs and outputs of the convolution
    /// and of its activation, gates, outputs before and after the norm, z, and a share of the states before chunks. Short
    /// convolution: its projections, the product before it and the result. Mamba-2: the projection, inputs and outputs of the
    /// convolution and of its activation, outputs before and after the gate and the norm, and a share of the states before chunks.
    fn recurrent_activations(&self) -> ElementCount {
        let Some(recurrent) = &self.recurrent_layers else { return 0 };
        match recurrent.kind {
            RecurrentKind::DeltaNet(shape) => {
                let heads = shape.heads;
                let states = heads.states().div_ceil(CHUNK);
                (2 * heads.width() + 4 * heads.values() + 2 * heads.value_heads + states) as ElementCount
            }
            RecurrentKind::ShortConv { .. } => 6 * self.hidden(),
            RecurrentKind::Mamba(shape) => {
                let scan = shape.scan;
                let states = scan.states().div_ceil(CHUNK);
                (shape.projected() + 3 * scan.width() + 4 * scan.values() + scan.heads + states) as ElementCount
            }
        }
    }

    fn hidden(&self) -> ElementCount {
        self.hidden_size as ElementCount
    }

    /// The width of the widest MLP.
    fn widest_mlp(&self) -> usize {
        self.intermediate_size * if self.double_wide && self.shared_layers > 0 { 2 } else { 1 }
    }

    fn vocabulary(&self) -> ElementCount {
        self.vocab_size as ElementCount
    }

    fn layers(&self) -> ElementCount {
        self.num_hidden_layers as ElementCount
    }

    fn heads(&self) -> ElementCount {
        self.num_attention_heads as ElementCount
    }

    /// Elements that a forward pass keeps for its backward pass. Per row and layer: inputs of two norms and of the projections
    /// after each (4 h; 2 h more for the other norms of a sandwich), rotated queries and the attention's output (2 q), rotated
    /// keys and values (2 kv), gate, up and their product (3 i; 2 i without a gate), log-sums (one per head). In addition: the
    /// input and output of the last norm, and the rows that predict a token. With gradient checkpointing, a pass keeps the input
    /// of each block and all of one block, and the keys and values that later layers read.
    pub fn activations(&self, widest: LargestBatch, checkpointing: bool) -> ElementCount {
        let h = self.hidden();
        let norms = if self.residual == Residual::Sandwich { 6 * h } else { 4 * h };
        let mlp = |i: usize| if self.gated { 3 } else { 2 } * i as ElementCount;
        let attention = |shape: AttentionShape| {
            let (q, kv) = (shape.queries() as ElementCount, shape.keys() as ElementCount);
            let gates = if self.output_gate { 3 * q } else { 0 };
            let own = if shape.source.is_some() { 0 } else { 2 * kv };
            let plain = 2 * q + own + self.heads() + gates;
            self.latent.map_or(plain, |latent| latent.activations(self.num_attention_heads) as ElementCount)
        };
        let recurrent = self.recurrent_activations();
        let count = self.recurrent_count() as ElementCount;
        let mixtures = self.layers() - self.dense_layers();
        let shapes = self.attention_shapes();
        let layers = match checkpointing {
            true => {
                let largest = shapes.iter().map(|(shape, _)| attention(*shape)).max().unwrap_or(0);
                let sources = (0..self.num_hidden_layers).filter(|layer| self.is_source(*layer));
                let shared: usize = sources.map(|layer| 2 * self.attention(layer).keys()).sum();
                let row = mlp(self.widest_mlp()).max(self.mixture_row());
                let mixers = if self.parallel.is_some() { largest + recurrent } else { largest.max(recurrent) };
                self.layers() * h + norms + mixers + row + shared as ElementCount
            }
            false => {
                let attentions: ElementCount =
                    shapes.into_iter().map(|(shape, layers)| layers as ElementCount * attention(shape)).sum();
                let mlps: ElementCount = self.mlp_widths().into_iter().map(|(i, layers)| layers * mlp(i)).sum();
                self.layers() * norms + attentions + count * recurrent + mlps + mixtures * self.mixture_row()
            }
        };
        // The rows of the second table, the projection and the inputs; per layer the gate, the product and the projection.
        let inputs = self.layer_inputs.map_or(0, |inputs| self.layers() * (5 * inputs.width as ElementCount + 2 * h));
        widest.rows() * (layers + 2 * h + inputs) + widest.predicted() * h
    }

    /// Elements that a backward pass holds at its peak, in addition to [`activations`](Self::activations) and gradients. The peak
    /// is the last block's MLP or the head.
    pub fn backward(&self, widest: LargestBatch, on_cpu: bool) -> ElementCount {
        let (h, i) = (self.hidden(), self.widest_mlp() as ElementCount);
        let head = self.vocabulary_chunk(widest, on_cpu) + widest.predicted() * h;
        let mlp = widest.rows() * (2 * i + 5 * h).max(self.mixture_row());
        head.max(mlp).max(self.scores(widest, on_cpu))
    }

    /// Elements that a forward pass without gradients holds at its peak: a block's MLP, or the head.
    pub fn forward(&self, widest: LargestBatch, on_cpu: bool) -> ElementCount {
        let (h, i) = (self.hidden(), self.widest_mlp() as ElementCount);
        let mlp = widest.rows() * (3 * i + 2 * h).max(self.mixture_row() + h);
        let head = widest.rows() * h + 2 * widest.predicted() * h + self.vocabulary_chunk(widest, on_cpu);
        mlp.max(head).max(self.scores(widest, on_cpu))
    }

    /// Elements of one tile of logits, or of `copies` copies of the logits of one chunk of tokens.
    fn logits(&self, widest: LargestBatch, copies: Option<ElementCount>) -> ElementCount {
        if let HeadKind::Classifier { labels, .. } = self.head {
            return widest.predicted() * labels as ElementCount;
        }
        let (rows, columns) = head::tile(widest.predicted, self.vocab_size);
        let (rows, columns) = (rows as ElementCount, columns as ElementCount);
        copies.map_or(rows * columns, |copies| copies * widest.predicted.min(head::GPU_CHUNK) as ElementCount * self.vocabulary())
    }

    /// Logits of one tile. On a GPU, logits of one chunk of tokens, which become their gradients in place, and of the previous
    /// chunk, whose memory may not be free yet.
    pub fn vocabulary_chunk(&self, widest: LargestBatch, on_cpu: bool) -> ElementCount {
        self.logits(widest, if on_cpu { None } else { Some(2) })
    }

    /// Logits that the CPU keeps for a loss that reads each token separately.
    pub fn stored_logits(&self, widest: LargestBatch) -> ElementCount {
        (head::tokens_at_once(widest.predicted, self.vocab_size) * self.vocab_size) as ElementCount
    }

    /// Elements that the divergence from a reference of this shape adds to the head: the rows that predict a token and one tile
    /// of logits. On a GPU, as many logits as the policy's.
    pub fn reference_chunk(&self, widest: LargestBatch, on_cpu: bool) -> ElementCount {
        self.logits(widest, if on_cpu { None } else { Some(2) }) + widest.predicted() * self.hidden()
    }

    /// Attention scores of a range of queries, in the composed operation only: scores, their exponentials, and both gradients.
    fn scores(&self, widest: LargestBatch, on_cpu: bool) -> ElementCount {
        if on_cpu { 0 } else { 4 * widest.rows() * widest.longest.min(QUERIES) as ElementCount * self.heads() }
    }

    /// Keys and values of `slots` concurrent sequences of `prompts` prompts, plus the quarter by which the cache grows. In the
    /// worst case these are the last responses of all prompts.
    pub fn kv_cache(&self, slots: usize, prompts: usize, prompt: usize, response: usize) -> ElementCount {
        // The beginning of a response shares a block with the end of its prompt. Each response has its own copy of that block.
        let [slots, prompts, prompt, response] = [slots, prompts, prompt, response].map(|count| count as ElementCount);
        let block = BLOCK as ElementCount;
        let blocks = slots.min(prompts) * prompt.div_ceil(block) + slots * (response + block).div_ceil(block);
        let recurrent = self.recurrent_count() as ElementCount;
        let state =
            self.recurrent_layers.as_ref().map_or(0, |layers| layers.kind.state_elements(self.hidden_size)) as ElementCount;
        let states = recurrent * ((slots + slots.min(prompts)) * 5 / 4 + 4) * state;
        let own = (0..self.num_hidden_layers).filter(|layer| self.keeps_keys(*layer));
        let keys: usize = own.map(|layer| self.attention(layer).keys()).sum();
        2 * (blocks * block * 5 / 4) * keys as ElementCount + states
    }

    /// Elements that generation holds in addition to the cache: the logits of every sequence (on a GPU three copies), and one
    /// prefill pass over prompts of `prompt` tokens. In bfloat16, also the bfloat16 copy of the parameters.
    pub fn decoding(&self, slots: usize, (prefill, prompt): (usize, usize), on_cpu: bool, bfloat16: bool) -> ElementCount {
        // A recorded step has a power of two of rows.
        let (copies, slots) = if on_cpu { (1, slots) } else { (3, slots.next_power_of_two()) };
        let widest = LargestBatch { rows: prefill, predicted: 0, longest: prompt };
        let narrow = if bfloat16 { self.parameters() / 2 } else { 0 };
        copies * slots as ElementCount * self.vocabulary() + self.forward(widest, on_cpu) + narrow
    }
}

/// The matrices of mixtures: a typical name, the shape, and the number of parameters that have it.
fn mixture_shapes(mixture: &MixtureConfig, h: usize) -> Vec<(&'static str, Vec<usize>, ElementCount)> {
    let (count, i, mixtures) = (mixture.experts, mixture.intermediate_size, mixture.count() as ElementCount);
    let shared = mixture.shared.as_ref().map_or(0, |shared| shared.intermediate_size);
    vec![
        ("model.layers.0.mlp.gate.weight", vec![count, h], mixtures),
        ("model.layers.0.mlp.experts.gate_proj", vec![count, i, h], 2 * mixtures),
        ("model.layers.0.mlp.experts.down_proj", vec![count, h, i], mixtures),
        ("model.layers.0.mlp.shared_expert.up_proj.weight", vec![shared, h], 2 * mixtures),
        ("model.layers.0.mlp.shared_expert.down_proj.weight", vec![h, shared], mixtures),
    ]
}
