//! Reads config.json of a Hugging Face folder into a [`DecoderConfig`], in the spelling of transformers 4 (`rope_theta`,
//! `rope_scaling`, `torch_dtype`) and 5 (`rope_parameters`, `dtype`). Unsupported settings are errors that name the key. Unread
//! keys are errors too, since they may change the model; null and false are allowed, because they switch a feature off.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};

use super::bare_infinity::with_infinity;
use super::config::DecoderConfig;
use super::families::{FAMILIES, reason};
use super::hf_reader::{DROPOUTS, HfReader};
use super::nf4::FourBit;
use super::untied_head::has_untied_head;
use super::weight_tensor::is_fp8;
use super::weights::WeightFiles;

use burnish_util::foreign;
use burnish_util::model_below::models_below;

/// A parsed config.json.
#[derive(Clone)]
pub struct HfConfig {
    pub json: Map<String, Value>,
    /// True if the files hold a head that differs from the embedding. The head is then not tied, even if config.json ties it.
    untied_head: bool,
}

/// The kind of labels of a classifier: per token or per sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classifier {
    Tokens,
    Sequences,
}

impl HfConfig {
    /// Returns the config of a folder without weights.
    pub fn from_json(json: Map<String, Value>) -> Self {
        Self { json, untied_head: false }
    }

    /// Reads config.json. If it ties the head to the embedding, also checks whether the weight files hold a different head.
    pub fn read(folder: &Path) -> Result<Self> {
        Self::read_overridden(folder, [])
    }

    /// Reads config.json with other [values](Self::overridden).
    pub fn read_overridden(folder: &Path, values: impl IntoIterator<Item = (String, Value)>) -> Result<Self> {
        let path = folder.join("config.json");
        let text = foreign::read_text(&path, foreign::SETTINGS)
            .with_context(|| format!("no model at {}{}", folder.display(), models_below(folder)))?;
        let json =
            serde_json::from_str(&with_infinity(&text)).with_context(|| format!("{} is not a JSON object", path.display()))?;
        let hf = Self::from_json(text_part(json)).overridden(values);
        // The error of an unreadable file is reported where its weights are loaded.
        let untied_head = hf.decoder().is_ok_and(|config| config.tie_word_embeddings && holds_untied_head(folder, &config));
        Ok(Self { untied_head, ..hf })
    }

    /// True if the head is not tied although config.json ties it; see [`super::untied_head`].
    pub(super) fn is_untied(&self) -> bool {
        self.untied_head
    }

    /// Returns the config for weights other than the folder's.
    pub(super) fn without_weights(self) -> Self {
        Self { untied_head: false, ..self }
    }

    /// Returns this config with other values, like verl's `update_model_config`: mappings are merged, other values are replaced.
    pub fn overridden(mut self, values: impl IntoIterator<Item = (String, Value)>) -> Self {
        replace(&mut self.json, values);
        self
    }

    /// Returns this config for weights that are put into 4 bits when they are loaded.
    ///
    /// # Errors
    /// If it says that the weights are quantised already.
    pub fn quantised(mut self, to: FourBit) -> Result<Self> {
        let is = self.json.get("quantization_config").is_some_and(|config| !config.is_null());
        ensure!(!is, "config.json: the weights are quantised already (`quantization_config`); write load_in_4bit=false");
        self.json.insert("quantization_config".to_owned(), to.to_json());
        Ok(self)
    }

    /// Returns the text of this config for weights of `dtype`, a dtype in torch's spelling.
    pub fn with_dtype(&self, dtype: &str) -> Result<String> {
        // Written weights are numbers.
        let mut json = self.json.clone();
        json.remove("quantization_config");
        Self { json, ..self.clone() }.of_frozen_weights(dtype)
    }

    /// Does what [`with_dtype`](Self::with_dtype) does, for weights that are not written but read again from their own files.
    pub(crate) fn of_frozen_weights(&self, dtype: &str) -> Result<String> {
        let mut json = self.json.clone();
        let key = if json.contains_key("dtype") { "dtype" } else { "torch_dtype" };
        json.insert(key.to_owned(), dtype.into());
        if self.untied_head {
            json.insert("tie_word_embeddings".to_owned(), false.into());
        }
        Ok(serde_json::to_string_pretty(&json)? + "\n")
    }

    /// Returns the decoder that this config describes.
    ///
    /// # Errors
    /// If the family or a key is unknown, a switch is not supported by the decoder, or sizes are inconsistent.
    pub fn decoder(&self) -> Result<DecoderConfig> {
        let names = || FAMILIES.iter().map(|f| f.model_type).collect::<Vec<_>>().join(", ");
        let Some(model_type) = self.json.get("model_type").and_then(Value::as_str) else {
            bail!("config.json has no `model_type`; supported are {}", names());
        };
        let Some(family) = FAMILIES.iter().find(|f| f.model_type == model_type) else {
            let because = reason(model_type).map(|reason| format!(", because {reason}")).unwrap_or_default();
            bail!("config.json: model_type `{model_type}` is not supported{because}; supported are {}", names());
        };
        let quantization = self.four_bit()?;
        let reader = HfReader::new(&self.json);
        reader.unused(&["quantization_config"]);
        reader.only("is_encoder_decoder", false.into())?;
        let mut config = (family.read)(&reader)
            .and_then(|config| reader.all_read().map(|()| config))
            .with_context(|| format!("config.json of a {model_type} model"))?;
        let scales_queries = |key: &&str| self.json.get(*key).is_some_and(|rope| rope.get("llama_4_scaling_beta").is_some());
        if let Some(key) =
            ["rope_parameters", "rope_scaling"].into_iter().find(scales_queries).filter(|_| config.query_scaling.is_none())
        {
            bail!(
                "config.json of a {model_type} model: `{key}`: `llama_4_scaling_beta` is not supported; this family has no such factor"
            );
        }
        // Set here for all families: for longer sequences a scaling may use other frequencies.
        let longest: Vec<usize> = config.ropes().filter_map(|(rope, _)| rope.longest()).collect();
        config.max_position_embeddings = longest.last().copied().unwrap_or(config.max_position_embeddings);
        config.tie_word_embeddings &= !self.untied_head;
        config.quantization = quantization;
        check(&config)?;
        config.check_size()?;
        Ok(config)
    }

    /// The form of the matrices of linear layers, if it is not float32.
    fn four_bit(&self) -> Result<Option<FourBit>> {
        let quantization = self.json.get("quantization_config").filter(|value| !value.is_null());
        let Some(quantization) = quantization.filter(|_| !self.is_mxfp4()) else { return Ok(None) };
        if quantization.as_object().map(is_fp8).transpose().context("config.json: `quantization_config`")? == Some(true) {
            return Ok(None);
        }
        let four_bit =
            quantization.as_object().map(FourBit::of_json).transpose().context("config.json: `quantization_config`")?;
        match four_bit.flatten() {
            Some(four_bit) => Ok(Some(four_bit)),
            None => bail!("config.json: `quantization_config` is not supported; save the model unquantised"),
        }
    }

    /// True for a model whose experts are packed in a format that is read.
    fn is_mxfp4(&self) -> bool {
        let is = |value: Option<&Value>, name: &str| value.and_then(Value::as_str) == Some(name);
        let method = self.json.get("quantization_config").and_then(|quantization| quantization.get("quant_method"));
        is(self.json.get("model_type"), "gpt_oss") && is(method, "mxfp4")
    }

    /// The kind of classifier, from the suffix of the architecture's name; `None` if the model is not a classifier.
    pub fn classifier(&self) -> Option<Classifier> {
        let name = self.json.get("architectures")?.as_array()?.first()?.as_str()?;
        [("ForTokenClassification", Classifier::Tokens), ("ForSequenceClassification", Classifier::Sequences)]
            .into_iter()
            .find_map(|(end, kind)| name.ends_with(end).then_some(kind))
    }

    /// The number of labels of a classifier; transformers' default is 2.
    pub fn num_labels(&self) -> usize {
        let named = self.json.get("id2label").and_then(Value::as_object).map(Map::len);
        named.or(self.json.get("num_labels").and_then(|n| n.as_u64().map(|n| n as usize))).unwrap_or(2)
    }

    /// The nonzero dropouts of this config, as `name: value`.
    pub fn dropouts(&self) -> Vec<String> {
        let is_positive = |key: &&&str| self.json.get(**key).and_then(Value::as_f64).is_some_and(|p| p > 0.0);
        DROPOUTS.iter().filter(is_positive).map(|key| format!("{key}: {}", self.json[*key])).collect()
    }
}

/// A model of images and text, whose language model is read.
pub struct TextPart {
    /// The `model_type` of the whole.
    pub whole: &'static str,
    /// The `model_type` and the class of the language model.
    pub model_type: &'static str,
    class: &'static str,
    /// Sizes that transformers assumes where the config of the language model lacks them, as published files of Gemma 3 do.
    defaults: &'static [(&'static str, usize)],
}

/// All models of images and text whose language model is read.
pub static TEXT_PARTS: &[TextPart] = &[
    TextPart {
        whole: "gemma4",
        model_type: "gemma4_text",
        class: "Gemma4ForCausalLM",
        defaults: &[
            ("vocab_size", 262_144),
            ("num_attention_heads", 8),
            ("num_key_value_heads", 4),
            ("head_dim", 256),
            ("max_position_embeddings", 131_072),
        ],
    },
    TextPart { whole: "qwen3_5", model_type: "qwen3_5_text", class: "Qwen3_5ForCausalLM", defaults: &[] },
    TextPart { whole: "qwen3_5_moe", model_type: "qwen3_5_moe_text", class: "Qwen3_5MoeForCausalLM", defaults: &[] },
    TextPart {
        whole: "gemma3",
        model_type: "gemma3_text",
        class: "Gemma3ForCausalLM",
        defaults: &[
            ("vocab_size", 262_208),
            ("num_attention_heads", 8),
            ("num_key_value_heads", 4),
            ("head_dim", 256),
            ("max_position_embeddings", 131_072),
        ],
    },
];

/// Returns the text of the config.json of a model of images and text, for language weights of `dtype` in torch's spelling.
///
/// # Errors
/// If the folder holds another model.
pub fn whole_with_dtype(folder: &Path, dtype: &str) -> Result<String> {
    let text = foreign::read_text(&folder.join("config.json"), foreign::SETTINGS)?;
    let mut json: Map<String, Value> =
        serde_json::from_str(&text).with_context(|| format!("{}/config.json", folder.display()))?;
    let model_type = json.get("model_type").and_then(Value::as_str).unwrap_or_default();
    if !TEXT_PARTS.iter().any(|part| part.whole == model_type) {
        let known: Vec<&str> = TEXT_PARTS.iter().map(|part| part.whole).collect();
        bail!(
            "{}/config.json: `{model_type}` is not a model of images and text whose text part is trained; these are {}",
            folder.display(),
            known.join(", ")
        );
    }
    let set = |json: &mut Map<String, Value>| {
        for key in ["dtype", "torch_dtype"] {
            json.entry(key).and_modify(|value| *value = dtype.into());
        }
    };
    set(&mut json);
    json.get_mut("text_config").and_then(Value::as_object_mut).map(set);
    Ok(serde_json::to_string_pretty(&json)? + "\n")
}

/// The config of the language model in a model of images and text; any other config unchanged. Such a model is trained and saved as
/// its language model.
fn text_part(json: Map<String, Value>) -> Map<String, Value> {
    let whole = json.get("model_type").and_then(Value::as_str).unwrap_or_default();
    let part = TEXT_PARTS.iter().find(|part| part.whole == whole);
    let (Some(part), Some(text)) = (part, json.get("text_config").and_then(Value::as_object)) else { return json };
    let mut text = text.clone();
    text.insert("model_type".to_owned(), part.model_type.into());
    text.insert("architectures".to_owned(), vec![part.class].into());
    for (key, value) in part.defaults {
        text.entry(*key).or_insert_with(|| (*value).into());
    }
    // transformers reads these from the whole model's config.
    for key in ["tie_word_embeddings", "transformers_version", "quantization_config"] {
        text.extend(json.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    text
}

/// True if the weights of a folder can be read and their head differs from the embedding.
fn holds_untied_head(folder: &Path, config: &DecoderConfig) -> bool {
    let Ok(files) = WeightFiles::open(folder) else { return false };
    files.tensors().is_ok_and(|tensors| has_untied_head(&tensors, config.naming))
}

fn replace(json: &mut Map<String, Value>, values: impl IntoIterator<Item = (String, Value)>) {
    for (key, value) in values {
        match (json.get_mut(&key), value) {
            (Some(Value::Object(inside)), Value::Object(values)) => replace(inside, values),
            (_, value) => _ = json.insert(key, value),
        }
    }
}

fn check(config: &DecoderConfig) -> Result<()> {
    let sizes = [config.vocab_size, config.hidden_size, config.intermediate_size, config.head_dim];
    if sizes.contains(&0) {
        bail!("config.json: vocab_size, hidden_size, intermediate_size and head_dim must be above 0, not {sizes:?}");
    }
    if config.num_key_value_heads == 0 || !config.num_attention_heads.is_multiple_of(config.num_key_value_heads) {
        bail!(
            "config.json: num_attention_heads {} must be a multiple of num_key_value_heads {}",
            config.num_attention_heads,
            config.num_key_value_heads
        );
    }
    for (rope, head_dim) in config.ropes() {
        let rotated = rope.rotated(head_dim);
        if rotated == 0 || rotated > head_dim || !rotated.is_multiple_of(2) {
            bail!(
                "config.json: {rotated} of the head's {head_dim} dimensions rotate; it must be an even number of them, and not 0"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(changes: Value) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/arithmetic/model");
        let mut config = HfConfig::read(&path).unwrap();
        config.json.extend(changes.as_object().unwrap().clone());
        config.decoder().map_or_else(|error| format!("{error:#}"), |_| String::new())
    }

    #[test]
    fn overrides_replace_values_and_change_mappings_inside() {
        let map = |json: Value| json.as_object().unwrap().clone();
        let json = map(serde_json::json!({"a": 1, "rope_parameters": {"rope_type": "default", "rope_theta": 2}}));
        let changed = HfConfig::from_json(json)
            .overridden(map(serde_json::json!({"a": null, "b": [1], "rope_parameters": {"rope_theta": 3}})));
        let expected = serde_json::json!({"a": null, "rope_parameters": {"rope_type": "default", "rope_theta": 3}, "b": [1]});
        assert_eq!(Value::Object(changed.json), expected);
    }

    #[test]
    fn switches_are_refused_by_name_and_nothing_is_dropped_in_silence() {
        for (changes, message) in [
            (serde_json::json!({"model_type": "mamba"}), "model_type `mamba` is not supported, because it has state-space"),
            (serde_json::json!({"logit_scale": 0.5}), "`logit_scale: 0.5` is not supported"),
            (serde_json::json!({"hidden_act": "quick_gelu"}), "`hidden_act: quick_gelu` is not supported; supported are silu,"),
            (
                serde_json::json!({"one": 1, "no": false, "two": [2]}),
                "`one: 1`, `two: [2]` are not supported; if they do not change what the model computes, set each to null by",
            ),
            (serde_json::json!({"quantization_config": {}}), "`quantization_config` is not supported"),
            (serde_json::json!({"rope_scaling": {"rope_type": "new", "factor": 2.0}}), "rope type `new` is not supported"),
            (serde_json::json!({"num_attention_heads": 0}), "`num_attention_heads` is 0"),
            (serde_json::json!({"partial_rotary_factor": 0.5}), "`partial_rotary_factor: 0.5` is not supported"),
            (
                serde_json::json!({"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}}),
                "`partial_rotary_factor: 0.5` is not supported",
            ),
        ] {
            assert!(error(changes.clone()).contains(message), "{message}: {}", error(changes));
        }
        assert_eq!(error(serde_json::json!({"partial_rotary_factor": 1.0})), "");
        assert_eq!(error(serde_json::json!({"logit_scale": null, "use_mrope": false, "_name_or_path": "x"})), "");
    }

    /// For every family: with longrope, a longer sequence would be rotated by other frequencies.
    #[test]
    fn longrope_ends_at_its_original_length_in_every_family() {
        let rope = |heads: usize| {
            serde_json::json!({"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": vec![1.0; heads], "long_factor": vec![2.0; heads],
                               "factor": 4.0, "original_max_position_embeddings": 8})
        };
        for family in FAMILIES.iter().filter(|family| family.model_type != "gpt2") {
            let frequencies = match family.model_type {
                "gpt_neox" | "qwen3_5_text" | "qwen3_5_moe_text" | "qwen3_next" => 2,
                "glm" | "glm4" | "glm4_moe" => 4,
                "deepseek_v2" | "deepseek_v3" => 32,
                _ => 8,
            };
            let mut rope = match family.model_type {
                "gemma3_text" | "gemma4_text" | "olmo3" => {
                    serde_json::json!({"full_attention": rope(frequencies), "sliding_attention": rope(frequencies)})
                }
                _ => rope(frequencies),
            };
            if family.model_type == "ministral3" {
                rope["llama_4_scaling_beta"] = 0.1.into();
            }
            let json = serde_json::json!({
                "model_type": family.model_type, "vocab_size": 20, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1,
                "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 16, "max_position_embeddings": 32, "rope_parameters": rope,
                "sliding_window": null, "tie_word_embeddings": true,
            });
            let mut json = json.as_object().unwrap().clone();
            if matches!(family.model_type, "gpt_oss" | "gemma4_text") {
                json.insert("sliding_window".to_owned(), 8.into());
            }
            if family.model_type == "gemma4_text" {
                json.insert("global_head_dim".to_owned(), 16.into());
            }
            if family.model_type == "phi3" {
                json.insert("original_max_position_embeddings".to_owned(), 8.into());
            }
            let of_experts = ["num_experts", "moe_intermediate_size", "shared_expert_intermediate_size", "n_routed_experts"];
            match family.model_type {
                "granitemoehybrid" => json
                    .extend([("num_local_experts".to_owned(), 0.into()), ("position_embedding_type".to_owned(), "rope".into())]),
                "mixtral" | "gpt_oss" => json.extend([("num_local_experts".to_owned(), 4.into())]),
                "qwen2_moe" | "qwen3_5_moe_text" => json.extend(of_experts[..3].iter().map(|key| ((*key).to_owned(), 4.into()))),
                "qwen3_moe" | "lfm2_moe" => json.extend(of_experts[..2].iter().map(|key| ((*key).to_owned(), 4.into()))),
                "olmoe" => json.extend([("num_experts".to_owned(), 4.into())]),
                "glm4_moe" | "deepseek_v2" => {
                    json.extend([(of_experts[1].to_owned(), 4.into()), (of_experts[3].to_owned(), 4.into())])
                }
                "deepseek_v3" => json.extend([(of_experts[1].to_owned(), 4.into()), (of_experts[3].to_owned(), 16.into())]),
                _ => {}
            }
            if json.keys().any(|key| key.contains("experts")) {
                json.insert("num_experts_per_tok".to_owned(), 2.into());
            }
            if family.model_type == "lfm2_moe" {
                json.insert("layer_types".to_owned(), vec!["full_attention"].into());
            }
            if family.model_type == "qwen3_next" {
                json.insert("num_experts".to_owned(), 0.into());
            }
            if family.model_type == "gpt_neox" {
                json.retain(|key, _| !["num_key_value_heads", "head_dim", "sliding_window"].contains(&key.as_str()));
            }
            let decoder = HfConfig::from_json(json).decoder();
            assert_eq!(
                decoder.map(|decoder| decoder.max_position_embeddings).map_err(|e| format!("{e:#}")),
                Ok(8),
                "{}",
                family.model_type
            );
        }
    }
}
