//! Decode steps that run ahead of the host, recorded and replayed, sample the same tokens as steps that are launched one by one.

use std::path::Path;

use burn::tensor::Device;
use burnish::model::{CausalLm, Init};
use burnish::rollout::{Engine, GenerationRequest, Logprobs, NativeEngine, Response, Sampling};
use burnish::util::rng::Stream;

use crate::device::named_device;

const FAMILIES: [&str; 4] = ["qwen2", "gpt2", "gemma2", "qwen3"];

/// Generates twelve responses to three prompts, at most `sequences` of them together. Some end at an end token.
fn generate(model: &CausalLm, sequences: usize, sampling: Sampling, enforce_eager: bool) -> Vec<Response> {
    let prompts: [Vec<u32>; 3] = [5, 17, 31].map(|length| (0..length).map(|i| (length * 31 + i * 17) % 256).collect());
    let eos: Vec<u32> = (0..256).step_by(11).collect();
    let request = GenerationRequest {
        prompts: &prompts.each_ref().map(Vec::as_slice),
        n: 4,
        sampling,
        eos: &eos,
        stops: None,
        rules: None,
        stream: &|prompt, sample| Stream::new(11, "rollout", &[prompt as u64, sample as u64]),
        finished: None,
        progress: None,
    };
    let mut engine = NativeEngine { max_num_seqs: sequences, max_num_batched_tokens: 64, max_model_len: None, enforce_eager };
    engine.generate(model, &request).unwrap()
}

fn model(family: &str, device: &Device) -> CausalLm {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/models").join(family);
    CausalLm::load(&folder, Init::Pretrained, device).unwrap()
}

#[test]
fn steps_that_run_ahead_draw_what_the_cpu_draws() {
    let Some(device) = named_device("steps_that_run_ahead_draw_what_the_cpu_draws") else { return };
    let plain = Sampling { max_tokens: 20, ..Sampling::PLAIN };
    // Rows that the next sequence reuses, steps without look-ahead at first, and filters.
    let cases = [
        (12, plain),
        (5, plain),
        (5, Sampling { min_tokens: 6, ..plain }),
        (3, Sampling { temperature: 0.7, top_k: 40, top_p: 0.9, logprobs: Logprobs::Raw, ..plain }),
        (1, Sampling { temperature: 0.0, ..plain }),
    ];
    for (i, family) in FAMILIES.into_iter().enumerate() {
        let (on_gpu, on_cpu) = (model(family, &device), model(family, &Device::flex()));
        for (sequences, sampling) in cases.into_iter().take(if i == 0 { cases.len() } else { 2 }) {
            let expected = generate(&on_cpu, sequences, sampling, false);
            for enforce_eager in [false, true] {
                let got = generate(&on_gpu, sequences, sampling, enforce_eager);
                for (got, expected) in got.iter().zip(&expected) {
                    let label = format!("{family}, {sequences} together, {sampling:?}, enforce_eager={enforce_eager}");
                    assert_eq!((&got.ids, got.finish), (&expected.ids, expected.finish), "{label}");
                    let columns = [(&got.log_probs, &expected.log_probs), (&got.rollout_log_probs, &expected.rollout_log_probs)];
                    let close = |(a, b): (&f32, &f32)| (a - b).abs() < 2e-5 * (1.0 + b.abs());
                    assert!(columns.iter().all(|(a, b)| a.iter().zip(*b).all(close)), "{label}: {columns:?}");
                }
            }
        }
    }
}
