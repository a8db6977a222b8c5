//! Selects the projections that an adapter changes, by PEFT's rules over the names in files. A name selects every module whose
//! path is that name or ends in `.name`. A regular expression selects every module whose whole path it matches. `all-linear`
//! selects all modules except the head.

use anyhow::{Result, bail};
use regex::Regex;

use super::settings::LoraSettings;
use crate::config::DecoderConfig;
use crate::naming::TensorLocation;
use burnish_util::suggest::did_you_mean;

/// A linear layer that can have an adapter: one matrix in the files.
#[derive(Clone, Debug, PartialEq)]
pub struct LoraTarget {
    /// The path of the layer in files.
    pub path: String,
    /// The path of the layer in the decoder; `self_attn.qkv_proj` for a matrix that holds q, k and v, `mlp.gate_up_proj` for one
    /// that holds gate and up.
    pub name: String,
    pub input: usize,
    pub output: usize,
}

impl LoraTarget {
    /// The location of the layer's matrix in files.
    pub fn weight(&self, config: &DecoderConfig) -> TensorLocation {
        config.naming.place(&format!("{}.weight", self.name))
    }
}

/// The projection of embedded tokens to the inputs of all layers.
pub(crate) const LAYER_INPUTS: &str = "model.per_layer_model_projection";

/// All linear layers of a model except the head, in the order of the network.
pub(crate) fn linears(config: &DecoderConfig) -> Vec<LoraTarget> {
    let of_layer = |layer: usize| {
        let mut targets: Vec<LoraTarget> = Vec::new();
        for (name, input, output) in projections(config, layer) {
            let name = format!("model.layers.{layer}.{name}");
            let name = config.naming.fused(&name).map_or(name, |(_, whole)| whole);
            match targets.last_mut().filter(|last| last.name == name) {
                Some(whole) => whole.output += output,
                None => {
                    let weight = config.naming.place(&format!("{name}.weight")).name;
                    targets.push(LoraTarget { path: weight.trim_end_matches(".weight").to_owned(), name, input, output });
                }
            }
        }
        targets
    };
    let of_model = config.layer_inputs.map(|_| {
        let name = LAYER_INPUTS.to_owned();
        LoraTarget { path: name.clone(), name, input: config.hidden_size, output: config.layer_inputs_width() }
    });
    (0..config.num_hidden_layers).flat_map(of_layer).chain(of_model).collect()
}

/// The matrices of all linear layers except the head: the names of their parameters, and [out, in].
pub(crate) fn matrices(config: &DecoderConfig) -> Vec<(String, [usize; 2])> {
    let of_layer = |layer: usize| {
        let matrices = projections(config, layer).into_iter();
        matrices.map(move |(name, input, output)| (format!("model.layers.{layer}.{name}.weight"), [output, input]))
    };
    let of_model = config.layer_inputs.map(|_| {
        let shape = [config.layer_inputs_width(), config.hidden_size];
        (format!("{LAYER_INPUTS}.weight"), shape)
    });
    (0..config.num_hidden_layers).flat_map(of_layer).chain(of_model).collect()
}

/// The projections of a layer, in the order of the network: name in the block, input and output. Experts have no adapters.
fn projections(config: &DecoderConfig, layer: usize) -> Vec<(String, usize, usize)> {
    let (h, i, shape) = (config.hidden_size, config.mlp_width(layer), config.attention(layer));
    let (q, kv) = (shape.queries(), shape.keys());
    let queries = if config.output_gate { 2 * q } else { q };
    let mut mixing: Vec<(String, usize, usize)> = match (config.has_attention(layer), config.latent) {
        (true, Some(latent)) => {
            let named = |(name, input, output, _)| (format!("latent_attn.{name}"), input, output);
            latent.linears(h, config.num_attention_heads).into_iter().map(named).collect()
        }
        (true, None) => {
            let keys = [("k_proj", h, kv), ("v_proj", h, kv)].into_iter().take(shape.kv_projections());
            let attention = [("q_proj", h, queries)].into_iter().chain(keys).chain([("o_proj", q, h)]);
            attention.map(|(name, input, output)| (format!("self_attn.{name}"), input, output)).collect()
        }
        (false, _) => Vec::new(),
    };
    if let Some(kind) = config.recurrent(layer) {
        let named = |(name, input, output)| (format!("{}.{name}", kind.name()), input, output);
        mixing.extend(kind.linears(h).into_iter().map(named));
    }
    let in_mlp = |(name, input, output): (&str, usize, usize)| (format!("mlp.{name}"), input, output);
    let Some(mixture) = config.mixture.as_ref().filter(|mixture| mixture.layers[layer]) else {
        let gate = config.gated.then_some(("gate_proj", h, i));
        let mlp = gate.into_iter().chain([("up_proj", h, i), ("down_proj", i, h)]).map(in_mlp);
        let inputs = config.layer_inputs.map(|inputs| {
            [("per_layer_input_gate".to_owned(), h, inputs.width), ("per_layer_projection".to_owned(), inputs.width, h)]
        });
        return mixing.into_iter().chain(mlp).chain(inputs.into_iter().flatten()).collect();
    };
    let shared = mixture.shared.as_ref().map(|shared| {
        let i = shared.intermediate_size;
        let gate = shared.gated.then_some(("shared_expert_gate", h, 1));
        let matrices = [("shared_expert.gate_proj", h, i), ("shared_expert.up_proj", h, i), ("shared_expert.down_proj", i, h)];
        matrices.into_iter().chain(gate)
    });
    mixing.into_iter().chain(shared.into_iter().flatten().map(in_mlp)).collect()
}

/// Returns the linear layers that `target_modules` selects and `exclude_modules` does not.
///
/// # Errors
/// If a target name or expression matches no layer, or all layers are excluded.
pub fn select(config: &DecoderConfig, settings: &LoraSettings) -> Result<Vec<LoraTarget>> {
    let all = linears(config);
    let key = format!("{}.target_modules", settings.group);
    let mut chosen = vec![false; all.len()];
    for pattern in &settings.target_modules {
        let pattern_fits = Pattern::new(pattern, &key)?;
        let fitting: Vec<bool> = all.iter().map(|target| pattern_fits.fits(&target.path)).collect();
        if !fitting.contains(&true) {
            bail!("{}", unknown(&key, pattern, config, &all));
        }
        chosen.iter_mut().zip(fitting).for_each(|(chosen, fits)| *chosen |= fits);
    }
    let exclude = format!("{}.exclude_modules", settings.group);
    for pattern in &settings.exclude_modules {
        let fits = Pattern::new(pattern, &exclude)?;
        if !all.iter().any(|target| fits.fits(&target.path)) {
            tracing::warn!("{exclude}: `{pattern}` excludes nothing: no linear layer has such a path");
        }
        chosen.iter_mut().zip(&all).for_each(|(chosen, target)| *chosen &= !fits.fits(&target.path));
    }
    let selected: Vec<LoraTarget> = all.into_iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(target, _)| target).collect();
    if selected.is_empty() {
        bail!("{key} and {exclude} leave no module to adapt");
    }
    Ok(selected)
}

enum Pattern<'a> {
    All,
    /// Text that is tried as a name and as an expression for whole paths. No module's name is an expression for another path.
    Name(&'a str, Regex),
}

impl<'a> Pattern<'a> {
    fn new(text: &'a str, key: &str) -> Result<Self> {
        if text.eq_ignore_ascii_case("all-linear") {
            return Ok(Self::All);
        }
        match Regex::new(&format!("^(?:{text})$")) {
            Ok(regex) => Ok(Self::Name(text, regex)),
            Err(error) => bail!("{key}: `{text}` is neither a name nor a regular expression: {error}"),
        }
    }

    fn fits(&self, path: &str) -> bool {
        match self {
            Self::All => true,
            Self::Name(name, regex) => {
                path.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')) || regex.is_match(path)
            }
        }
    }
}

/// Names of the parts of mixtures that are not linear layers in transformers 5.
const OF_EXPERTS: &[&str] = &["gate_proj", "up_proj", "down_proj", "gate_up_proj", "experts", "gate", "router", "w1", "w2", "w3"];

/// verl's names of Megatron's layers, and the names of the same layers in Hugging Face models.
const OF_MEGATRON: &[(&str, &str)] = &[
    ("linear_qkv", "q_proj, k_proj and v_proj"),
    ("linear_proj", "o_proj"),
    ("linear_fc1", "gate_proj and up_proj"),
    ("linear_fc2", "down_proj"),
];

/// The error message for a name that matches no layer: the reason, and the available layers.
fn unknown(key: &str, pattern: &str, config: &DecoderConfig, all: &[LoraTarget]) -> String {
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let mut names: Vec<String> = all.iter().map(|target| last(&target.path)).collect();
    names.sort();
    names.dedup();
    let [head, embedding] = ["lm_head.weight", "model.embed_tokens.weight"].map(|parameter| config.naming.place(parameter).name);
    let why = if [head, embedding].iter().any(|name| last(name.trim_end_matches(".weight")) == last(pattern)) {
        "the embedding and the head cannot have adapters here".to_owned()
    } else if config.mixture.is_some() && OF_EXPERTS.contains(&last(pattern).as_str()) {
        "the experts of a mixture and their router cannot have adapters here; they are trained without an adapter".to_owned()
    } else {
        "the model has no such module".to_owned()
    };
    let hint = match OF_MEGATRON.iter().find(|(name, _)| *name == pattern) {
        Some((_, names)) => format!(" In Llama's names this is {names}."),
        None => did_you_mean(pattern, names.iter().map(String::as_str)),
    };
    format!("{key}: `{pattern}`: {why}; available are {}, or all-linear for all of them.{hint}", names.join(", "))
}

/// Returns B [out, r] of a module with its rows in the order of the network instead of the files.
pub(crate) fn in_our_order(target: &LoraTarget, config: &DecoderConfig, rank: usize, b: &[f32]) -> Vec<f32> {
    parts(target, config, rank).iter().flat_map(|(part, shape)| part.from_file(b.to_vec(), shape, config)).collect()
}

/// The inverse of [`in_our_order`].
pub(crate) fn in_their_order(target: &LoraTarget, config: &DecoderConfig, rank: usize, b: &[f32]) -> Vec<f32> {
    let mut theirs = vec![0.0; b.len()];
    let mut rest = b;
    for (part, shape) in parts(target, config, rank) {
        let (values, others) = rest.split_at(shape[0] * shape[1]);
        part.into_file(values, &shape, config, &mut theirs);
        rest = others;
    }
    theirs
}

/// The locations of a module's projections in its B, and the shape of each.
fn parts(target: &LoraTarget, config: &DecoderConfig, rank: usize) -> Vec<(TensorLocation, [usize; 2])> {
    if target.name == LAYER_INPUTS {
        let place = TensorLocation { transposed: false, ..target.weight(config) };
        return vec![(place, [target.output, rank])];
    }
    let block = target.name.split('.').take(3).collect::<Vec<_>>().join(".");
    let layer = target.name.split('.').nth(2).and_then(|layer| layer.parse().ok()).unwrap_or(0);
    let inside = projections(config, layer).into_iter().filter_map(|(name, _, output)| {
        let name = format!("{block}.{name}");
        let is_inside = name == target.name || config.naming.fused(&name).is_some_and(|(_, whole)| whole == target.name);
        let place = || TensorLocation { transposed: false, ..config.naming.place(&format!("{name}.weight")) };
        is_inside.then(|| (place(), [output, rank]))
    });
    inside.collect()
}
