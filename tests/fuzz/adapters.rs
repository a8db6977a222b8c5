//! LoRA adapters of other programs: they are read, attached to a model, used by it, and written again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

use burn::tensor::Device;
use burnish::model::lora::peft::{CONFIG, PeftAdapter, WEIGHTS};
use burnish::model::{CausalLm, Init, Sequence};
use burnish::rollout::{Engine, GenerationRequest, NativeEngine, Sampling};
use burnish::util::rng::Stream;
use serde_json::{Map, Value};

use crate::Target;
use crate::edits::NUMBERS;
use crate::scripted::NEXT;

const FAMILIES: [&str; 3] = ["llama", "gpt2", "gpt_neox"];
/// The limit of bytes of the tensors.
const LONGEST: usize = 32 << 20;
/// The tokens of the sequence that a model reads.
const IDS: [u32; 6] = [5, 9, 200, 17, 33, 4];

static MODELS: LazyLock<Vec<Mutex<CausalLm>>> = LazyLock::new(|| {
    let load = |name: &str| CausalLm::load(&golden("models").join(name), Init::Pretrained, &Device::flex()).unwrap();
    FAMILIES.iter().map(|name| Mutex::new(load(name))).collect()
});

fn golden(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(path)
}

fn parts(name: &str) -> Vec<u8> {
    parts_with(name, "", &[0.02, -0.01, 0.3, 0.0, -0.2])
}

/// The configuration, the header of the weights, and the values that fill their tensors. `alpha` replaces `lora_alpha`, unless it
/// is empty.
fn parts_with(name: &str, alpha: &str, values: &[f32]) -> Vec<u8> {
    let folder = golden("lora").join(name);
    let config = fs::read_to_string(folder.join(CONFIG)).unwrap();
    let config: Value = serde_json::from_str(&config).unwrap();
    let weights = fs::read(folder.join(WEIGHTS)).unwrap();
    let length = u64::from_le_bytes(weights[..8].try_into().unwrap()) as usize;
    let header = std::str::from_utf8(&weights[8..8 + length]).unwrap();
    let mut config = config.to_string();
    if !alpha.is_empty() {
        config = config.replace(r#""lora_alpha":16"#, &format!(r#""lora_alpha":{alpha}"#));
        assert!(config.contains(&format!(r#""lora_alpha":{alpha}"#)), "{config}");
    }
    let values = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    [format!("{config}{NEXT}{}{NEXT}", header.trim_end()).into_bytes(), values].concat()
}

/// Writes the files of an adapter: the tensors have as many bytes as the header says.
fn write(input: &[u8], folder: &Path) -> usize {
    let mut parts = input.splitn(3, |byte| *byte == NEXT.as_bytes()[0]);
    let [config, header, values] = [(); 3].map(|()| parts.next().unwrap_or_default());
    let named: Map<String, Value> = serde_json::from_slice(header).unwrap_or_default();
    let ends = named.values().filter_map(|tensor| tensor["data_offsets"][1].as_u64()?.try_into().ok());
    let length = ends.filter(|end: &usize| *end <= LONGEST).max().unwrap_or_default();
    let data = values.iter().copied().cycle().take(if values.is_empty() { 0 } else { length });
    let weights: Vec<u8> = (header.len() as u64).to_le_bytes().into_iter().chain(header.iter().copied()).chain(data).collect();
    fs::write(folder.join(CONFIG), config).unwrap();
    fs::write(folder.join(WEIGHTS), weights).unwrap();
    let text = String::from_utf8_lossy(config);
    FAMILIES.iter().rposition(|name| text.contains(&format!("models/{name}"))).unwrap_or_default()
}

/// Uses an adapter: its model reads a sequence and writes one.
fn run(input: &[u8], folder: &Path) -> Result<(), String> {
    let family = write(input, folder);
    let message = |error: anyhow::Error| format!("{error:#}");
    let adapter = PeftAdapter::read(folder).map_err(message)?;
    let base = MODELS[family].lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    let model = base.adapted(&adapter).map_err(message)?;

    let copy = folder.join("copy");
    let attached = model.adapter().expect("an adapter");
    assert_eq!(attached.factors, adapter.factors, "the factors change on their way through the model");
    attached.write(&copy).map_err(message)?;
    assert_eq!(PeftAdapter::read(&copy).map_err(message)?.factors, adapter.factors, "the factors change in a file");

    let log_probs = model.token_stats(&[Sequence::new(&IDS[..1], &IDS[1..])], 1.0, None).log_prob;
    let stream = |_: usize, _: usize| Stream::new(7, "rollout", &[]);
    let request = GenerationRequest {
        prompts: &[&IDS],
        n: 1,
        sampling: Sampling { max_tokens: 4, ..Sampling::default() },
        eos: &[],
        stops: None,
        rules: None,
        stream: &stream,
        finished: None,
        progress: None,
    };
    let mut engine = NativeEngine { max_num_seqs: 2, max_num_batched_tokens: 64, max_model_len: None, enforce_eager: false };
    let responses = engine.generate(&model, &request).map_err(message)?;
    // A training step, `trainer generate`, `chat` and `serve` refuse numbers that are not finite.
    let numbers = [&log_probs[..], &responses[0].rollout_log_probs];
    if numbers.concat().iter().all(|x| x.is_finite()) { Ok(()) } else { Err(format!("not finite: {numbers:?}")) }
}

pub(crate) fn adapters() -> Target {
    Target {
        name: "adapters",
        seeds: || FAMILIES.map(parts).to_vec(),
        words: &[
            NEXT,
            "\0\0\0\u{7f}",
            "\u{7f}\u{7f}\u{7f}\u{7f}",
            "\"r\":",
            "\"lora_alpha\":1e308,",
            "\"lora_alpha\":1e39,",
            "\"use_dora\":true,",
            "\"rank_pattern\":{\"q_proj\":2},",
            "\"modules_to_save\":[\"lm_head\"],",
            "\"shape\":[",
            "\"shape\":[4,64],",
            "\"data_offsets\":[0,16],",
            "\"dtype\":\"BF16\",",
            "\"F64\"",
            "lora_A",
            "lora_B",
            "lora_embedding_A",
            "base_model.model.lm_head.weight",
            "layers.99999",
            "\"x\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},",
            "null",
            "[",
            "]",
            "{",
            "}",
            ",",
            "\"",
            "..",
            "é",
        ],
        cases: 60,
        read: |input, folder| {
            let failed = run(input, folder).err();
            assert!(failed.is_none_or(|message| !message.is_empty()), "an error without a message");
        },
    }
}

/// The adapters without edits are right.
#[test]
fn adapters_are_used() {
    for family in FAMILIES {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(run(&parts(family), folder.path()), Ok(()), "{family}");
    }
}

/// Extreme scales and values: the numbers that the model computes are finite, or an error names what is not.
#[test]
fn extreme_adapters_are_used_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let values = [f32::MAX, 1e30, 1e20, 1e-45, -0.0, f32::NAN, f32::INFINITY];
    let alphas = NUMBERS.iter().map(|alpha| parts_with("llama", alpha, &[0.02, -0.01, 0.3]));
    for input in alphas.chain(values.iter().map(|value| parts_with("llama", "", &[*value]))) {
        let seen = run(&input, folder.path());
        assert!(seen.is_ok() || seen.is_err_and(|message| !message.is_empty()));
    }
}
