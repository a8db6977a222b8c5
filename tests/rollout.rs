//! The native engine: a response does not depend on its neighbours, the slots or the number of samples beside it.

use std::path::Path;

use burn::tensor::Device;
use burnish::model::{CausalLm, Init, Sequence};
use burnish::rollout::{Engine, Finish, NativeEngine, Request, Response, Sampling};
use burnish::util::rng::Stream;

fn model() -> CausalLm {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/models/qwen2");
    CausalLm::load(&folder, Init::Pretrained, &Device::flex()).unwrap()
}

fn prompts() -> Vec<Vec<u32>> {
    (0..7).map(|i| (0..1 + (i * 5) % 9).map(|j| (i * 31 + j * 17) as u32 % 256).collect()).collect()
}

const SAMPLING: Sampling = Sampling { temperature: 1.0, top_k: 0, top_p: 1.0, max_tokens: 12, ignore_eos: false };
/// Enough end tokens that responses end at different lengths.
const EOS: [u32; 24] = {
    let mut eos = [0; 24];
    let mut i = 0;
    while i < 24 {
        eos[i] = i as u32 * 10;
        i += 1;
    }
    eos
};

fn generate(model: &CausalLm, which: &[usize], n: usize, max_num_seqs: usize) -> Vec<Response> {
    let all = prompts();
    let prompts: Vec<&[u32]> = which.iter().map(|&i| all[i].as_slice()).collect();
    let stream = |prompt: usize, sample: usize| Stream::new(7, "rollout", &[which[prompt] as u64, sample as u64]);
    let request = Request { prompts: &prompts, n, sampling: SAMPLING, eos: &EOS, stream: &stream };
    NativeEngine { max_num_seqs }.generate(model, &request).unwrap()
}

#[test]
fn a_response_does_not_depend_on_its_neighbours() {
    let model = model();
    let all: Vec<usize> = (0..7).collect();
    let together = generate(&model, &all, 4, 64);
    assert!(
        together.iter().any(|r| r.finish == Finish::Stop && r.ids.len() > 1)
            && together.iter().any(|r| r.finish == Finish::Length)
    );
    for slots in [1, 2, 3, 5] {
        assert_eq!(generate(&model, &all, 4, slots), together, "{slots} slots");
    }
    for (i, expected) in together.chunks(4).enumerate() {
        assert_eq!(generate(&model, &[i], 4, 64), expected, "prompt {i} alone");
        assert_eq!(generate(&model, &[i], 1, 64), expected[..1], "prompt {i}, one sample");
    }
}

#[test]
fn log_probs_are_those_of_the_training_pass() {
    let model = model();
    let all: Vec<usize> = (0..7).collect();
    let prompts = prompts();
    for (i, response) in generate(&model, &all, 4, 64).iter().enumerate() {
        let stats =
            model.token_stats(&[Sequence { prompt: &prompts[i / 4], response: &response.ids }], SAMPLING.temperature, None);
        for (a, b) in response.log_probs.iter().zip(&stats.log_prob) {
            assert!((a - b).abs() < 1e-4, "{a} while sampling, {b} in training");
        }
    }
}
