//! Hugging Face folders of every family: weights are written as the files had them, in any layout.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burnish::model::config::Positions;
use burnish::model::hf_config::HfConfig;
use burnish::model::weights::{file_tensors, read_safetensors};
use burnish::model::{CausalLm, FAMILIES, Init};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};

use crate::device::device;
use crate::transformers::{model_folders, module_name};

fn goldens() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The golden model of this name, of either folder.
fn golden(name: &str) -> PathBuf {
    let found = model_folders(&goldens()).into_iter().find(|folder| folder.ends_with(name));
    found.unwrap_or_else(|| panic!("no golden model {name}"))
}

fn load(folder: &Path) -> anyhow::Result<CausalLm> {
    CausalLm::load(folder, Init::Pretrained, &device())
}

fn config(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("config.json")).unwrap()).unwrap()
}

/// The names, shapes and values of tensors.
type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

fn tensors(folder: &Path) -> Tensors {
    let bytes = std::fs::read(folder.join("model.safetensors")).unwrap();
    let shapes = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let values = read_safetensors(&folder.join("model.safetensors")).unwrap();
    values.into_iter().map(|(name, x)| (name.clone(), (shapes.tensor(&name).unwrap().shape().to_vec(), x))).collect()
}

fn own(model: &CausalLm) -> Tensors {
    file_tensors(&model.net, &model.config).into_iter().map(|t| (t.name.clone(), (t.shape.clone(), t.values()))).collect()
}

fn write(path: &Path, tensors: &Tensors, dtype: Dtype, encode: &dyn Fn(f32) -> Vec<u8>) {
    let bytes: Vec<Vec<u8>> = tensors.values().map(|(_, x)| x.iter().flat_map(|x| encode(*x)).collect()).collect();
    let views = tensors
        .iter()
        .zip(&bytes)
        .map(|((name, (shape, _)), bytes)| (name.clone(), TensorView::new(dtype, shape.clone(), bytes).unwrap()));
    safetensors::serialize_to_file(views, None, path).unwrap();
}

#[test]
fn every_family_writes_the_files_it_read() {
    let mut seen = Vec::new();
    for folder in model_folders(&goldens()) {
        let scalar = HfConfig::read(&folder).unwrap().classifier().is_some();
        let model = match scalar {
            true => CausalLm::load_scalar(&folder, Init::Pretrained, None, &device()).unwrap(),
            false => load(&folder).unwrap(),
        };
        let copy = tempfile::tempdir().unwrap();
        model.save(copy.path()).unwrap();
        assert_eq!(tensors(copy.path()), tensors(&folder), "{}", folder.display());
        // Written weights are numbers.
        let mut of_numbers = config(&folder);
        of_numbers.as_object_mut().unwrap().remove("quantization_config");
        assert_eq!(config(copy.path()), of_numbers, "{}", folder.display());
        assert_eq!(model.num_parameters(), model.config.num_parameters(), "{}", folder.display());
        seen.push(config(&folder)["model_type"].as_str().unwrap().to_owned());
    }
    let mut missing = FAMILIES.iter().map(|family| family.model_type).collect::<Vec<_>>();
    missing.retain(|family| !seen.iter().any(|name| name == family));
    assert!(missing.is_empty(), "families without a golden model: {missing:?}");
}

#[test]
fn files_of_other_dtypes_in_shards_or_without_a_prefix() {
    let source = golden("gpt2");
    let whole = tensors(&source);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::copy(source.join("config.json"), at("config.json")).unwrap();
    let f32s = |x: f32| x.to_le_bytes().to_vec();
    let bf16 = |x: f32| ((x.to_bits() >> 16) as u16).to_le_bytes().to_vec();

    // Two shards, one of them bfloat16, which keeps the upper half of a float.
    let (first, second): (Tensors, Tensors) = whole.clone().into_iter().partition(|(name, _)| name.contains(".h.0."));
    write(&at("model-00001-of-00002.safetensors"), &first, Dtype::F32, &f32s);
    write(&at("model-00002-of-00002.safetensors"), &second, Dtype::BF16, &bf16);
    let file = |tensors: &Tensors, file: &str| tensors.keys().map(|name| (name.clone(), json!(file))).collect::<Vec<_>>();
    let map = [file(&first, "model-00001-of-00002.safetensors"), file(&second, "model-00002-of-00002.safetensors")].concat();
    let index = json!({"weight_map": map.into_iter().collect::<serde_json::Map<_, _>>()});
    std::fs::write(at("model.safetensors.index.json"), index.to_string()).unwrap();
    let truncated = |x: f32| f32::from_bits(x.to_bits() & 0xffff_0000);
    let loaded = own(&load(folder.path()).unwrap());
    assert_eq!(loaded["transformer.h.0.mlp.c_fc.weight"], whole["transformer.h.0.mlp.c_fc.weight"]);
    let wte: Vec<f32> = whole["transformer.wte.weight"].1.iter().map(|x| truncated(*x)).collect();
    assert_eq!(loaded["transformer.wte.weight"].1, wte);

    // Like the first published GPT-2: a bare model with its masks, in float16.
    for file in ["model.safetensors.index.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"] {
        std::fs::remove_file(at(file)).unwrap();
    }
    let mut bare: Tensors =
        whole.iter().map(|(name, x)| (name.strip_prefix("transformer.").unwrap().to_owned(), x.clone())).collect();
    bare.insert("h.0.attn.bias".to_owned(), (vec![1, 1, 2, 2], vec![1.0; 4]));
    let half = |x: f32| burn::tensor::f16::from_f32(x).to_le_bytes().to_vec();
    write(&at("model.safetensors"), &bare, Dtype::F16, &half);
    let loaded = own(&load(folder.path()).unwrap());
    let (got, expected) = (&loaded["transformer.h.1.attn.c_attn.weight"].1, &whole["transformer.h.1.attn.c_attn.weight"].1);
    assert!(got.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-3 * b.abs().max(0.1)), "float16");

    // One tensor too many, one too few, and a pickle.
    let error = || format!("{:#}", load(folder.path()).err().unwrap());
    bare.insert("h.7.ln_1.weight".to_owned(), (vec![64], vec![1.0; 64]));
    write(&at("model.safetensors"), &bare, Dtype::F32, &f32s);
    assert!(error().contains("tensor `h.7.ln_1.weight` has no place in this model"), "{}", error());
    bare.retain(|name, _| !name.contains("h.7") && name != "ln_f.bias");
    write(&at("model.safetensors"), &bare, Dtype::F32, &f32s);
    assert!(error().contains("tensor `transformer.ln_f.bias` is missing"), "{}", error());
    std::fs::rename(at("model.safetensors"), at("pytorch_model.bin")).unwrap();
    assert!(error().contains("pytorch_model.bin, a Python pickle, which is not read here"), "{}", error());
}

/// The config format of transformers 4 describes the same model as the format of version 5.
#[test]
fn older_spellings_of_config_json() {
    for (name, changes) in [
        (
            "llama3_rope_tied",
            json!({"rope_parameters": null, "rope_theta": 500000.0, "torch_dtype": "float32", "rope_scaling": {
            "type": "llama3", "factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 64}}),
        ),
        ("gpt_neox", json!({"rope_parameters": null, "rotary_emb_base": 10000, "rotary_pct": 0.25})),
        ("gemma2", json!({"rope_parameters": null, "layer_types": null, "rope_theta": 10000.0})),
        (
            "gemma3_text",
            json!({"rope_parameters": null, "layer_types": null, "rope_theta": 1e6, "rope_local_base_freq": 1e4,
                   "sliding_window_pattern": 2}),
        ),
        ("olmo3", json!({"rope_parameters": null, "rope_theta": 500000})),
        ("glm", json!({"rope_parameters": null, "rope_theta": 10000.0, "partial_rotary_factor": 0.5})),
        (
            "granitemoehybrid",
            json!({"rope_parameters": null, "rope_theta": 10000, "rope_scaling": null, "position_embedding_type": "nope",
                   "time_step_limit": null, "layer_types": ["mamba", "attention", "mamba", "mamba"], "mamba_d_head": "auto",
                   "init_method": "mup", "normalization_function": "rmsnorm", "num_experts_per_tok": 0}),
        ),
        ("phi3", json!({"rope_parameters": null, "rope_scaling": null, "rope_theta": 10000.0})),
        ("cohere2", json!({"rope_parameters": null, "layer_types": null, "rope_theta": 10000, "sliding_window_pattern": 2})),
        ("exaone4", json!({"rope_parameters": null, "layer_types": null, "sliding_window_pattern": 2})),
        ("smollm3", json!({"rope_parameters": null, "layer_types": null, "no_rope_layers": null})),
        ("gemma", json!({"hidden_act": "gelu", "hidden_activation": null, "rope_parameters": null})),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut older = config(&golden(name));
        older.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        std::fs::write(folder.path().join("config.json"), older.to_string()).unwrap();
        let read = |folder: &Path| CausalLm::load(folder, Init::Random { seed: 0 }, &device()).unwrap().config;
        assert_eq!(read(folder.path()), read(&golden(name)), "{name}");
    }
}

/// Every kind of rope scaling against transformers (scripts/goldens/golden_rope.py).
#[test]
fn golden_rope() {
    let golden: Value = serde_json::from_str(include_str!("../golden/rope.json")).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let folder = tempfile::tempdir().unwrap();
        let mut json = config(&self::golden("llama"));
        json["rope_parameters"] = case["rope_parameters"].clone();
        json["head_dim"] = golden["head_dim"].clone();
        json["max_position_embeddings"] = golden["max_position_embeddings"].clone();
        std::fs::write(folder.path().join("config.json"), json.to_string()).unwrap();
        let decoder = HfConfig::read(folder.path()).unwrap().decoder().unwrap();
        let Positions::Rotary(rope) = &decoder.positions else { panic!("llama rotates") };
        let kind = &case["rope_parameters"]["rope_type"];
        let near = |got: f64, expected: &Value| {
            let expected = expected.as_f64().unwrap();
            assert!((got - expected).abs() <= 1e-6 * expected, "{kind}: {got}, transformers has {expected}");
        };
        let (got, expected) = (rope.inverse_frequencies(decoder.head_dim), case["frequencies"].as_array().unwrap());
        assert_eq!(got.len(), expected.len());
        got.iter().zip(expected).for_each(|(got, expected)| near(f64::from(*got), expected));
        near(rope.attention_factor, &case["factor"]);
    }
}

/// A published folder of Qwen3.5 holds a model of images and text, with layers that predict further tokens. Its text part is read,
/// and saved as a language model.
#[test]
fn the_text_part_of_a_model_of_images_and_text() {
    text_part("qwen3_5_text", "qwen3_5", "Qwen3_5");
    text_part("qwen3_5_moe_text", "qwen3_5_moe", "Qwen3_5Moe");
}

/// Writes a golden model as the text part of a model of images and text, as published: experts of a layer share two tensors.
pub(crate) fn write_whole(folder: &Path, golden_model: &str, whole: &str, class: &str) {
    let source = golden(golden_model);
    let mut text = config(&source);
    let inner = text.as_object_mut().unwrap();
    inner.remove("architectures");
    inner.insert("mtp_num_hidden_layers".to_owned(), json!(1));
    let rope = inner["rope_parameters"].as_object_mut().unwrap();
    rope.extend([("mrope_section".to_owned(), json!([1, 0, 0])), ("mrope_interleaved".to_owned(), json!(true))]);
    let whole = json!({
        "model_type": whole, "architectures": [format!("{class}ForConditionalGeneration")], "text_config": text,
        "vision_config": {"depth": 2}, "image_token_id": 7, "tie_word_embeddings": false,
    });
    std::fs::write(folder.join("config.json"), whole.to_string()).unwrap();
    let renamed = |name: String| match name.strip_prefix("model.") {
        Some(rest) => format!("model.language_model.{rest}"),
        None => name,
    };
    let mut all = Tensors::new();
    // The order of names is the order of experts up to 10 experts, and of gate before up.
    for (name, (shape, x)) in tensors(&source) {
        let module = module_name(&name);
        if module == name {
            all.insert(renamed(name), (shape, x));
            continue;
        }
        let (joined, values) = all.entry(renamed(module)).or_insert((vec![8, 0, shape[1]], Vec::new()));
        values.extend(x);
        joined[1] = values.len() / (8 * shape[1]);
    }
    all.insert("model.visual.blocks.0.norm1.weight".to_owned(), (vec![4], vec![1.0; 4]));
    all.insert("mtp.norm.weight".to_owned(), (vec![32], vec![1.0; 32]));
    write(&folder.join("model.safetensors"), &all, Dtype::F32, &|x| x.to_le_bytes().to_vec());
}

fn text_part(golden_model: &str, whole: &str, class: &str) {
    let folder = tempfile::tempdir().unwrap();
    write_whole(folder.path(), golden_model, whole, class);
    let model = load(folder.path()).unwrap();
    let copy = tempfile::tempdir().unwrap();
    model.save(copy.path()).unwrap();
    assert_eq!(tensors(copy.path()), tensors(&golden(golden_model)));
    let saved = config(copy.path());
    let language_model = (json!(golden_model), json!([format!("{class}ForCausalLM")]));
    assert_eq!((saved["model_type"].clone(), saved["architectures"].clone()), language_model);
    assert_eq!(load(copy.path()).unwrap().config, model.config);
}

/// A published folder of Gemma 3 names its tensors in another way, and lacks sizes that transformers assumes.
#[test]
fn the_text_part_of_gemma_3() {
    let source = golden("gemma3_text");
    let folder = tempfile::tempdir().unwrap();
    let whole = json!({
        "model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"], "text_config": config(&source),
        "vision_config": {"hidden_size": 2}, "mm_tokens_per_image": 256, "image_token_index": 7,
    });
    std::fs::write(folder.path().join("config.json"), whole.to_string()).unwrap();
    let mut all: Tensors = tensors(&source).into_iter().map(|(name, x)| (format!("language_model.{name}"), x)).collect();
    all.insert("vision_tower.vision_model.post_layernorm.bias".to_owned(), (vec![4], vec![1.0; 4]));
    all.insert("multi_modal_projector.mm_soft_emb_norm.weight".to_owned(), (vec![4], vec![1.0; 4]));
    write(&folder.path().join("model.safetensors"), &all, Dtype::F32, &|x| x.to_le_bytes().to_vec());
    let copy = tempfile::tempdir().unwrap();
    load(folder.path()).unwrap().save(copy.path()).unwrap();
    assert_eq!(tensors(copy.path()), tensors(&source));
    let published = json!({
        "model_type": "gemma3", "text_config": {
            "hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024,
        },
    });
    std::fs::write(folder.path().join("config.json"), published.to_string()).unwrap();
    let decoder = HfConfig::read(folder.path()).unwrap().decoder().unwrap();
    assert_eq!((decoder.vocab_size, decoder.num_attention_heads, decoder.head_dim), (262_208, 8, 256));
}

/// A published folder of Gemma 4 has parts that see images and hear sound, and names the sizes of layers without a window in
/// another way than transformers 5.24 writes them.
#[test]
fn the_text_part_of_gemma_4() {
    for (model, keys) in [
        ("gemma4_text_shared", json!({"global_head_dim": 16})),
        ("gemma4_text_keys", json!({"global_head_dim": 16, "num_global_key_value_heads": 1})),
    ] {
        let source = golden(model);
        let folder = tempfile::tempdir().unwrap();
        let mut text = config(&source);
        let inner = text.as_object_mut().unwrap();
        inner.remove("per_layer_config");
        inner.extend(keys.as_object().unwrap().clone());
        let whole = json!({
            "model_type": "gemma4", "architectures": ["Gemma4ForConditionalGeneration"], "text_config": text,
            "vision_config": {"hidden_size": 2}, "audio_config": {"hidden_size": 2}, "image_token_id": 7,
        });
        std::fs::write(folder.path().join("config.json"), whole.to_string()).unwrap();
        let in_whole = |name: String| format!("model.language_model.{}", name.strip_prefix("model.").unwrap());
        let mut all: Tensors = tensors(&source).into_iter().map(|(name, x)| (in_whole(name), x)).collect();
        for other in ["vision_tower.std_bias", "audio_tower.output_proj.bias", "embed_vision.embedding_projection.weight"] {
            all.insert(format!("model.{other}"), (vec![4], vec![1.0; 4]));
        }
        write(&folder.path().join("model.safetensors"), &all, Dtype::F32, &|x| x.to_le_bytes().to_vec());
        let read = load(folder.path()).unwrap();
        assert_eq!(read.config, load(&source).unwrap().config, "{model}");
        let copy = tempfile::tempdir().unwrap();
        read.save(copy.path()).unwrap();
        assert_eq!(tensors(copy.path()), tensors(&source), "{model}");
    }
}

/// The numbers of parameters that transformers counts for the published sizes of Gemma 4, and the factors of its layers.
#[test]
fn published_sizes_of_gemma_4() {
    let types = |layers: usize, every: usize| -> Vec<&str> {
        let kind = |layer| if (layer + 1) % every == 0 { "full_attention" } else { "sliding_attention" };
        (0..layers).map(kind).collect()
    };
    let rope = json!({
        "full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1e6, "rope_type": "proportional"},
        "sliding_attention": {"rope_theta": 1e4, "rope_type": "default"},
    });
    let e2b = json!({
        "hidden_size": 1536, "intermediate_size": 6144, "num_hidden_layers": 35, "num_key_value_heads": 1, "sliding_window": 512,
        "num_kv_shared_layers": 20, "use_double_wide_mlp": true, "layer_types": types(35, 5), "num_global_key_value_heads": null,
    });
    let largest = json!({
        "hidden_size": 5376, "intermediate_size": 21504, "num_hidden_layers": 60, "num_attention_heads": 32, "sliding_window": 1024,
        "num_key_value_heads": 16, "num_global_key_value_heads": 4, "attention_k_eq_v": true, "hidden_size_per_layer_input": 0,
        "layer_types": types(60, 6),
    });
    for (mut text, parameters) in [(e2b, 4_628_569_344 + 35), (largest, 30_697_345_280 + 60)] {
        let folder = tempfile::tempdir().unwrap();
        text["rope_parameters"] = rope.clone();
        let whole = json!({"model_type": "gemma4", "text_config": text});
        std::fs::write(folder.path().join("config.json"), whole.to_string()).unwrap();
        let decoder = HfConfig::read(folder.path()).unwrap().decoder().unwrap();
        assert_eq!((decoder.num_parameters(), decoder.head_dim, decoder.vocab_size), (parameters, 256, 262_144));
    }
}

/// The numbers of parameters that transformers counts for sizes of Granite 4.0 as published: hybrids, dense and with experts, and a
/// model of attention alone, whose file has the keys of Mamba-2 too.
#[test]
fn published_sizes_of_granite_4() {
    let types = |layers: usize, attention: &[usize]| -> Vec<&str> {
        (0..layers).map(|layer| if attention.contains(&layer) { "attention" } else { "mamba" }).collect()
    };
    let published = json!({
        "architectures": ["GraniteMoeHybridForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
        "attention_multiplier": 0.015625, "bos_token_id": 100_257, "embedding_multiplier": 12, "eos_token_id": 100_257,
        "hidden_act": "silu", "init_method": "mup", "initializer_range": 0.1, "logits_scaling": 3, "mamba_chunk_size": 256,
        "mamba_conv_bias": true, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_n_groups": 1, "mamba_proj_bias": false,
        "max_position_embeddings": 32_768, "model_type": "granitemoehybrid", "normalization_function": "rmsnorm",
        "output_router_logits": false, "pad_token_id": 100_256, "position_embedding_type": "nope", "residual_multiplier": 0.246,
        "rms_norm_eps": 1e-5, "rope_scaling": null, "rope_theta": 10_000, "router_aux_loss_coef": 0.01, "tie_word_embeddings": true,
        "transformers_version": "4.57.0", "use_cache": true, "vocab_size": 100_352,
    });
    let small = json!({
        "hidden_size": 768, "num_hidden_layers": 32, "mamba_n_heads": 48, "mamba_d_head": 32, "mamba_d_state": 128,
        "num_attention_heads": 12, "num_key_value_heads": 4, "intermediate_size": 2048, "shared_intermediate_size": 2048,
        "num_local_experts": 0, "num_experts_per_tok": 0, "layer_types": types(32, &[10, 13, 17, 27]),
    });
    let mixture = json!({
        "hidden_size": 1536, "num_hidden_layers": 40, "mamba_n_heads": 48, "mamba_d_head": 64, "mamba_d_state": 128,
        "num_attention_heads": 12, "num_key_value_heads": 4, "intermediate_size": 512, "shared_intermediate_size": 1024,
        "num_local_experts": 64, "num_experts_per_tok": 6, "layer_types": types(40, &[5, 15, 25, 35]),
    });
    let attention = json!({
        "hidden_size": 2560, "num_hidden_layers": 40, "mamba_n_heads": 128, "mamba_d_head": 40, "mamba_d_state": 256,
        "num_attention_heads": 40, "num_key_value_heads": 8, "intermediate_size": 8192, "shared_intermediate_size": 8192,
        "num_local_experts": 0, "num_experts_per_tok": 0, "layer_types": types(40, &(0..40).collect::<Vec<_>>()),
        "position_embedding_type": "rope",
    });
    let read = |changes: &Value| {
        let mut json = published.as_object().unwrap().clone();
        json.extend(changes.as_object().unwrap().clone());
        HfConfig::from_json(json).decoder()
    };
    for (size, parameters, active, recurrent) in [
        (&small, 340_332_224, 340_332_224, 28),
        (&mixture, 6_939_037_248, 1_465_470_528, 36),
        (&attention, 3_402_836_480, 3_402_836_480, 0),
    ] {
        let decoder = read(size).unwrap();
        assert_eq!((decoder.num_parameters(), decoder.active_parameters()), (parameters, active));
        assert_eq!((0..decoder.num_hidden_layers).filter(|layer| decoder.recurrent(*layer).is_some()).count(), recurrent);
        assert!(decoder.rotates.iter().all(|rotates| *rotates == (recurrent == 0)));
    }
    for (change, message) in [
        (json!({"position_embedding_type": "alibi"}), "`position_embedding_type: \"alibi\"` is not supported"),
        (json!({"time_step_limit": [1.0, 0.5]}), "`time_step_limit` must be the smallest and the largest time step"),
        (
            json!({"mamba_d_head": 31}),
            "`mamba_n_heads` 48 times `mamba_d_head` 31 must be `mamba_expand` times the hidden size, 1536",
        ),
        (json!({"mamba_n_groups": 5}), "`mamba_n_heads` 48 must be a multiple of `mamba_n_groups` 5"),
        (json!({"layer_types": types(31, &[])}), "`layer_types` must list the kind of each of the 32 layers"),
    ] {
        let mut changed = small.as_object().unwrap().clone();
        changed.extend(change.as_object().unwrap().clone());
        let error = format!("{:#}", read(&Value::Object(changed)).unwrap_err());
        assert!(error.contains(message), "{message}: {error}");
    }
    let open = json!({"time_step_limit": [0.0, {"__float__": "Infinity"}]});
    let mut limits = small.as_object().unwrap().clone();
    limits.extend(open.as_object().unwrap().clone());
    assert_eq!(read(&Value::Object(limits)).unwrap(), read(&small).unwrap());
}

/// The number of parameters that transformers counts for the smallest Falcon-H1 as published, with Python's spelling of infinity, and
/// factors that biases exclude.
#[test]
fn published_sizes_of_falcon_h1() {
    let published = r#"{
        "architectures": ["FalconH1ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "attention_in_multiplier": 1.0,
        "attention_out_multiplier": 0.9375, "attn_layer_indices": null, "bos_token_id": 1, "embedding_multiplier": 5.656854249492381,
        "eos_token_id": 11, "head_dim": 64, "hidden_act": "silu", "hidden_size": 1024, "initializer_range": 0.02,
        "intermediate_size": 2048, "key_multiplier": 0.390625, "lm_head_multiplier": 0.0390625, "mamba_chunk_size": 128,
        "mamba_conv_bias": true, "mamba_d_conv": 4, "mamba_d_head": 64, "mamba_d_ssm": 1536, "mamba_d_state": 128,
        "mamba_expand": 2, "mamba_n_groups": 1, "mamba_n_heads": 24, "mamba_norm_before_gate": false, "mamba_proj_bias": false,
        "mamba_rms_norm": false, "mamba_use_mlp": true, "max_position_embeddings": 16384, "mlp_bias": false,
        "mlp_expansion_factor": 8, "mlp_multipliers": [0.8838834764831844, 0.5859375], "model_type": "falcon_h1",
        "num_attention_heads": 8, "num_hidden_layers": 36, "num_key_value_heads": 2, "num_logits_to_keep": 1, "pad_token_id": 0,
        "projectors_bias": false, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 100000000000.0,
        "ssm_in_multiplier": 1.25, "ssm_multipliers": [0.35, 0.25, 0.35, 0.5, 0.35], "ssm_out_multiplier": 0.23,
        "tie_word_embeddings": false, "time_step_floor": 0.0001, "time_step_limit": [0.0, Infinity], "time_step_max": 0.1,
        "time_step_min": 0.001, "time_step_rank": "auto", "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 32784
    }"#;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config.json"), published).unwrap();
    let decoder = HfConfig::read(folder.path()).unwrap().decoder().unwrap();
    assert_eq!((decoder.num_parameters(), decoder.mlp_factors), (521_411_104, Some([0.883_883_5, 0.585_937_5])));
    assert_eq!(decoder.attention_scale, Some(0.390625 / 8.0));
    for (change, message) in [
        (json!({"attention_bias": true}), "`attention_bias` with `attention_in_multiplier` or `key_multiplier` is not supported"),
        (json!({"mamba_proj_bias": true}), "`ssm_in_multiplier: 1.25` with `mamba_proj_bias` is not supported"),
        (json!({"mlp_multipliers": [1.0]}), "`mlp_multipliers` must be 2 numbers, not [1.0]"),
        (json!({"mamba_use_mlp": false}), "`mamba_use_mlp: false` is not supported"),
    ] {
        let changed = HfConfig::read(folder.path()).unwrap().overridden(change.as_object().unwrap().clone());
        let error = format!("{:#}", changed.decoder().unwrap_err());
        assert!(error.contains(message), "{message}: {error}");
    }
}
