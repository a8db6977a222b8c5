//! Adapters over weights in 4 bits: the same function and gradients as over the dequantised weights, in less memory, on the CPU and
//! on the test device, and the refusal of what cannot work.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use burnish::model::hf_config::HfConfig;
use burnish::model::lora::peft::PeftAdapter;
use burnish::model::nf4::FourBit;
use burnish::model::rounded_files::RoundedFiles;
use burnish::model::token_stats::TokenGrads;
use burnish::model::weights::{WeightFiles, read_safetensors, trained_shapes};
use burnish::model::{CausalLm, Gradients, Init, Sequence};
use burnish::rollout::{Engine, GenerationRequest, NativeEngine, Sampling};
use burnish::util::rng::Stream;
use serde_json::Value;

use crate::device::{cases, device, named_device, on_cpu};
use crate::lora::largest;
use crate::transformers::{FOLDERS, model_folders};

const FAMILIES: [&str; 5] = ["llama", "gpt_neox", "gpt2", "qwen3_5_text", "lfm2"];

fn golden(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(path)
}

fn folder(name: &str) -> PathBuf {
    FOLDERS.map(|models| golden(models).join(name)).into_iter().find(|folder| folder.exists()).expect("a golden model")
}

fn quantised(folder: &Path, double_quant: bool, device: &Device) -> CausalLm {
    let hf = HfConfig::read(folder).unwrap().quantised(FourBit { double_quant }).unwrap();
    CausalLm::load_as(folder, hf, Init::Pretrained, device).unwrap()
}

fn log_probs(model: &CausalLm, tokens: &[u32]) -> Vec<f32> {
    model.token_stats(&[Sequence::new(&tokens[..2], &tokens[2..])], 1.0, None).log_prob
}

fn gradients(model: &CausalLm, tokens: &[u32]) -> Gradients {
    let mut gradients = Gradients::default();
    let weights: Vec<f32> = (2..tokens.len()).map(|t| (1.9 * t as f32).cos()).collect();
    model.backward(&[Sequence::new(&tokens[..2], &tokens[2..])], 1.0, None, &mut gradients, |_| {
        let entropy = vec![0.0; weights.len()];
        TokenGrads { log_prob: weights, entropy, full_kl: Vec::new() }
    });
    gradients
}

/// Log-probabilities and the gradients of adapters are those of a float32 model with the dequantised weights. A saved model and
/// the matrices rounded in the files hold these weights.
#[test]
fn adapters_over_4_bits_are_those_over_the_dequantised_model() {
    let device = device();
    for (name, double) in FAMILIES.into_iter().zip([false, true].into_iter().cycle()) {
        let folder = folder(name);
        let adapter = PeftAdapter::read(&golden("lora").join(name)).unwrap();
        let base = quantised(&folder, double, &device);
        let tokens: Vec<u32> = (0..24).map(|i| (i * 37 + 5) % base.config.vocab_size as u32).collect();
        let saved = tempfile::tempdir().unwrap();
        base.save(saved.path()).unwrap();
        let dequantised = CausalLm::load(saved.path(), Init::Pretrained, &device).unwrap();
        let original = CausalLm::load(&folder, Init::Pretrained, &device).unwrap();
        assert_eq!(base.num_parameters(), original.num_parameters(), "{name}");
        assert!(base.config.weight_bytes() < original.config.weight_bytes(), "{name}");
        assert!(largest(&log_probs(&base, &tokens), &log_probs(&original, &tokens)) > 1e-4, "{name}: nothing was rounded");

        let files = WeightFiles::open(&folder).unwrap();
        let rounded = RoundedFiles::new(&base.config, &files).unwrap();
        let written = read_safetensors(&saved.path().join("model.safetensors")).unwrap();
        for (tensor, view) in files.parameters(&base.config).unwrap() {
            let mut values = view.values().unwrap();
            rounded.round(&tensor, &mut values);
            assert!(written.get(&tensor).is_none_or(|written| *written == values), "{name}: {tensor}");
        }

        let (ours, theirs) = (base.adapted(&adapter).unwrap().trainable(), dequantised.adapted(&adapter).unwrap().trainable());
        let apart = largest(&log_probs(&ours, &tokens), &log_probs(&theirs, &tokens));
        assert!(apart < 1e-5, "{name}: log-probabilities differ by {apart}");
        assert!(trained_shapes(&ours.net).keys().all(|parameter| parameter.contains("lora")), "{name}");
        let (ours, theirs) = (gradients(&ours, &tokens), gradients(&theirs, &tokens));
        assert_eq!(ours.0.keys().collect::<Vec<_>>(), theirs.0.keys().collect::<Vec<_>>(), "{name}");
        let norm = theirs.norm();
        assert!(norm > 1e-3, "{name}: the gradient vanishes");
        let apart = ours.0.iter().map(|(key, g)| (g.clone() - theirs.0[key].clone()).square().sum().into_scalar::<f32>());
        let apart = f64::from(apart.sum::<f32>()).sqrt() / norm;
        assert!(apart < rounding(name), "{name}: gradients differ by {apart} of their norm {norm}");
    }
}

/// Values of transformers, PEFT and bitsandbytes (`golden/nf4/log-probs.json`).
#[test]
fn golden_log_probabilities_are_those_of_bitsandbytes() {
    let given = std::env::var_os("BURNISH_GOLDENS").map(|root| PathBuf::from(root).join("nf4/log-probs.json"));
    let file = given.filter(|file| file.exists()).unwrap_or_else(|| golden("nf4/log-probs.json"));
    let text = std::fs::read_to_string(file).unwrap();
    let cases: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
    let mut count = 0;
    for (name, case) in cases.iter().filter(|(_, case)| case["log_probs"].is_array()) {
        let adapter = PeftAdapter::read(&golden("lora").join(name)).unwrap();
        let base = quantised(&folder(name), case["double_quant"].as_bool().unwrap(), &device());
        let tokens: Vec<u32> = (0..24).map(|i| (i * 37 + 5) % base.config.vocab_size as u32).collect();
        let theirs: Vec<f32> = case["log_probs"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap() as f32).collect();
        let apart = largest(&log_probs(&base.adapted(&adapter).unwrap(), &tokens), &theirs);
        assert!(apart < 1e-4, "{name}: log-probabilities differ by {apart}");
        count += 1;
    }
    assert!(count > 0, "no case");
}

/// The relative difference of gradients that rounding to float32 explains. For such weights, gradients of transformers in float32
/// differ from those in float64 by 4e-6 (llama) and 1.2e-4 (qwen3_5_text, where a norm divides by outputs near 0).
fn rounding(name: &str) -> f64 {
    if name == "qwen3_5_text" { 5e-4 } else { 1e-4 }
}

/// No matrix that is in 4 bits gets lost in counts and checkpoints.
#[test]
fn every_family_has_matrices_in_4_bits() {
    let mut count = 0;
    for folder in cases(model_folders(&golden("")), 4) {
        let Ok(original) = CausalLm::load(&folder, Init::Pretrained, &device()) else { continue };
        if HfConfig::read(&folder).unwrap().json.contains_key("quantization_config") {
            continue;
        }
        let (base, name) = (quantised(&folder, true, &device()), folder.display());
        count += 1;
        assert_eq!(base.num_parameters(), original.num_parameters(), "{name}");
        assert!(base.config.weight_bytes() < original.config.weight_bytes(), "{name}");
        assert_eq!(original.config.dequantised_part(), 0, "{name}");
        assert!((1..base.num_parameters() as u128).contains(&base.config.dequantised_part()), "{name}");
        let tokens: Vec<u32> = (0..12).map(|i| (i * 5 + 3) % base.config.vocab_size as u32).collect();
        assert!(largest(&log_probs(&base, &tokens), &log_probs(&original, &tokens)) > 1e-5, "{name}: nothing was rounded");
    }
    assert!(count > if on_cpu() { 30 } else { 0 }, "{count} models");
}

/// Generation, the log-probabilities of training, the checksum and saved values, with few rows and with many. A later step of a long
/// response is replayed.
#[test]
fn a_model_in_4_bits_on_the_test_device_is_that_of_the_cpu() {
    let Some(device) = named_device("weights in 4 bits as on the CPU") else { return };
    for double in [false, true] {
        let adapter = PeftAdapter::read(&golden("lora/llama")).unwrap();
        let [here, there] = [Device::flex(), device.clone()].map(|device| quantised(&folder("llama"), double, &device));
        assert_eq!(here.fingerprint(), there.fingerprint());
        let models = [here, there].map(|base| base.adapted(&adapter).unwrap());
        let saved = models.each_ref().map(|model| {
            let folder = tempfile::tempdir().unwrap();
            model.save(folder.path()).unwrap();
            read_safetensors(&folder.path().join("model.safetensors")).unwrap()
        });
        assert!(saved[0] == saved[1], "merged weights differ");
        for (n, greedy) in [(2, true), (5, false)] {
            let temperature = if greedy { 0.0 } else { 1.0 };
            let request = GenerationRequest {
                prompts: &[&[5, 9, 100, 17], &[33, 4, 90, 8, 71]],
                n,
                sampling: Sampling { max_tokens: 10, temperature, ..Sampling::PLAIN },
                eos: &[],
                stops: None,
                rules: None,
                stream: &|prompt, sample| Stream::new(3, "rollout", &[prompt as u64, sample as u64]),
                finished: None,
                progress: None,
            };
            let [here, there] = models.each_ref().map(|model| {
                let mut engine =
                    NativeEngine { max_num_seqs: 16, max_num_batched_tokens: 64, max_model_len: None, enforce_eager: false };
                engine.generate(model, &request).unwrap()
            });
            for (index, (here, there)) in here.iter().zip(&there).enumerate() {
                assert_eq!(here.ids, there.ids, "{n} responses, number {index}");
                let sequence = Sequence::new(request.prompts[index / n], &there.ids);
                let trained = models[1].token_stats(&[sequence], 1.0, None).log_prob;
                let apart = largest(&there.log_probs, &trained);
                assert!(greedy || apart < 2e-5, "{n} responses, number {index}: {apart} between generation and training");
            }
        }
    }
}

#[test]
fn weights_that_are_quantised_already_are_refused() {
    let once = HfConfig::read(&folder("llama")).unwrap().quantised(FourBit { double_quant: false }).unwrap();
    let error = once.clone().quantised(FourBit { double_quant: true }).err().unwrap().to_string();
    assert!(error.contains("quantised already") && error.contains("load_in_4bit=false"), "{error}");
    let mut other = once;
    other.json["quantization_config"]["bnb_4bit_quant_type"] = "fp4".into();
    let error = format!("{:#}", other.decoder().unwrap_err());
    assert!(error.contains("quantization_config") && error.contains("nf4"), "{error}");
}
