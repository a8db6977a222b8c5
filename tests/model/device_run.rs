//! The same work on the CPU and on the test device: training steps, and the tokens of each sampling method.

use std::path::Path;

use burn::backend::DispatchDevice;
use burn::tensor::Device;
use burn_cubecl::cubecl::MemoryScope;
use burnish::model::hf_config::HfConfig;
use burnish::model::nf4::FourBit;
use burnish::model::token_stats::TokenGrads;
use burnish::model::{CausalLm, Gradients, Init, Sequence};
use burnish::optim::{AdamWConfig, Learner, Optimizer, Schedule, schedule};
use burnish::rollout::{Engine, GenerationRequest, NativeEngine, Response, Sampling};
use burnish::util::rng::Stream;

use crate::device::named_device;

const PROMPTS: [&[u32]; 3] = [&[5, 9, 200, 17], &[33, 4, 90, 8, 71, 3, 66, 250, 1, 13, 14, 15, 16, 17, 18, 19, 20], &[7]];

/// A model of random weights.
fn model(device: &Device) -> CausalLm {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/models/qwen2");
    CausalLm::load(&folder, Init::Random { seed: 1 }, device).unwrap()
}

fn generate(model: &CausalLm, sampling: Sampling, step: u64) -> Vec<Response> {
    let request = GenerationRequest {
        prompts: &PROMPTS,
        n: 2,
        sampling,
        eos: &[],
        stops: None,
        rules: None,
        stream: &|prompt, sample| Stream::new(11, "rollout", &[step, prompt as u64, sample as u64]),
        finished: None,
        progress: None,
    };
    let mut engine = NativeEngine { max_num_seqs: 8, max_num_batched_tokens: 64, max_model_len: None, enforce_eager: false };
    engine.generate(model, &request).unwrap()
}

fn learner(device: &Device) -> Learner {
    Learner {
        name: "model",
        ranks: burnish::distributed::Ranks::alone(),
        model: model(device).trainable(),
        optimizer: Optimizer::adamw(AdamWConfig { beta1: 0.9, beta2: 0.99, eps: 1e-8, weight_decay: 0.1 }),
        schedule: Schedule::new(schedule::find("constant").unwrap(), 9),
        lr: 1e-3,
        grad_clip: 1.0,
    }
}

/// Samples, computes log-probabilities and gradients, and updates. Returns the tokens and the norm of the gradient.
fn step(learner: &mut Learner, step: u64) -> (Vec<Vec<u32>>, f64) {
    let responses = generate(&learner.model, Sampling { max_tokens: 6, ..Sampling::PLAIN }, step);
    let sequences: Vec<Sequence> =
        responses.iter().enumerate().map(|(i, response)| Sequence::new(PROMPTS[i / 2], &response.ids)).collect();
    let old = learner.model.token_stats(&sequences, 1.0, None).log_prob;
    let sampled = responses.iter().flat_map(|response| &response.log_probs);
    for (sampled, old) in sampled.zip(&old) {
        assert!((sampled - old).abs() < 2e-5, "{sampled} while sampling, {old} in training");
    }
    let mut gradients = Gradients::default();
    learner.model.backward(&sequences, 1.0, None, &mut gradients, |stats| {
        let advantages = (0..stats.log_prob.len()).map(|t| (t as f32 * 1.9).sin());
        let log_prob = advantages.zip(stats.log_prob.iter().zip(&old)).map(|(a, (new, old))| -a * (new - old).exp());
        TokenGrads { log_prob: log_prob.collect(), entropy: vec![-0.01; old.len()], full_kl: Vec::new() }
    });
    let update = learner.update(gradients, 1e-3).unwrap();
    assert!(update.applied, "{update:?}");
    (responses.into_iter().map(|response| response.ids).collect(), update.grad_norm)
}

/// Returns the bytes of this thread's tensors on the device; other threads, with other tests, have separate streams.
fn bytes_in_use(device: &Device) -> u64 {
    device.sync().unwrap();
    let DispatchDevice::Cube(cube) = device.as_dispatch() else { panic!("{device:?} is not a GPU") };
    cube.client().memory_report(MemoryScope::CurrentStream).streams.iter().map(|stream| stream.pools.usage().bytes_in_use).sum()
}

#[test]
fn training_steps_are_those_of_the_cpu_and_leave_no_memory_behind() {
    let Some(device) = named_device("training as on the CPU") else { return };
    let (mut on_cpu, mut on_gpu) = (learner(&Device::flex()), learner(&device));
    let mut bytes = Vec::new();
    for number in 1..=20 {
        let (ids, norm) = step(&mut on_gpu, number);
        bytes.push(bytes_in_use(&device));
        if number <= 3 {
            let (expected, expected_norm) = step(&mut on_cpu, number);
            println!("step {number}: gradient norm {norm}, on the CPU {expected_norm}; {} bytes", bytes.last().unwrap());
            assert_eq!(ids, expected, "the tokens of step {number}");
            assert!(
                (norm - expected_norm).abs() <= 1e-5 * expected_norm,
                "step {number}: norm {norm}, on the CPU {expected_norm}"
            );
        }
    }
    assert!(bytes[0] > 0, "nothing lies on the device");
    assert_eq!(bytes[19], bytes[1], "bytes in use after steps 20 and 2; all: {bytes:?}");
}

/// On the device lie the codes and scales of a model in 4 bits, and no matrix of its layers.
#[test]
fn weights_in_4_bits_take_their_bytes_of_the_device() {
    let Some(device) = named_device("the memory of weights in 4 bits") else { return };
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/models/qwen2/config.json");
    let mut config: serde_json::Value = serde_json::from_slice(&std::fs::read(golden).unwrap()).unwrap();
    (config["hidden_size"], config["intermediate_size"]) = (512.into(), 1024.into());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    for double_quant in [false, true] {
        let hf = HfConfig::read(folder.path()).unwrap().quantised(FourBit { double_quant }).unwrap();
        let before = bytes_in_use(&device);
        let model = CausalLm::load_as(folder.path(), hf, Init::Random { seed: 1 }, &device).unwrap();
        let (held, expected) = (bytes_in_use(&device) - before, model.config.weight_bytes() as u64);
        println!("{held} bytes on the device, {expected} in the estimate");
        assert!(held.abs_diff(expected) < expected / 20, "{held} bytes on the device, {expected} in the estimate");
        assert!(expected < model.num_parameters() as u64, "{expected} bytes of {} parameters", model.num_parameters());
    }
}

#[test]
fn every_way_of_sampling_draws_what_the_cpu_draws() {
    let Some(device) = named_device("sampling as on the CPU") else { return };
    let (on_cpu, on_gpu) = (model(&Device::flex()), model(&device));
    let all = Sampling { max_tokens: 12, ..Sampling::PLAIN };
    for sampling in [
        Sampling { temperature: 0.8, ..all },
        Sampling { top_k: 20, ..all },
        Sampling { temperature: 0.9, top_p: 0.9, min_p: 0.01, ..all },
        Sampling { temperature: 0.0, ..all },
        Sampling { repetition_penalty: 1.2, presence_penalty: 0.4, frequency_penalty: 0.3, ..all },
        Sampling { temperature: 0.0, frequency_penalty: 1.5, ..all },
    ] {
        for (got, expected) in generate(&on_gpu, sampling, 0).iter().zip(generate(&on_cpu, sampling, 0)) {
            assert_eq!(got.ids, expected.ids, "{sampling:?}");
            let columns = [(&got.log_probs, &expected.log_probs), (&got.rollout_log_probs, &expected.rollout_log_probs)];
            for (got, expected) in columns.into_iter().flat_map(|(got, expected)| got.iter().zip(expected)) {
                assert!((got - expected).abs() <= 1e-5 * (1.0 + expected.abs()), "{sampling:?}: {got}, on the CPU {expected}");
            }
        }
    }
}
