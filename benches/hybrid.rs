//! Models of the shapes of Qwen3.5 and of Granite 4 (hidden size 256, 8 layers, 6 of them gated delta nets or Mamba-2): the forward
//! and backward pass of a micro-batch, and decode steps. `scripts/bench/bench_hybrid_torch.py` measures the same in transformers.
#![expect(clippy::print_stdout, reason = "the result of a benchmark")]

use std::path::Path;
use std::time::Instant;

use burn::tensor::Device;
use burnish::model::hf_config::HfConfig;
use burnish::model::token_stats::TokenGrads;
use burnish::model::{CausalLm, Gradients, Init, Sequence};
use burnish::rollout::{Engine, GenerationRequest, NativeEngine, Sampling};
use burnish::util::rng::Stream;

// The same allocator as in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CONFIGS: [&str; 2] =
    [include_str!("../scripts/bench/hybrid_qwen3_5.json"), include_str!("../scripts/bench/hybrid_granite4.json")];
const SEQUENCES: usize = 32;
const REPEATS: usize = 5;

fn tokens(count: usize, length: usize) -> Vec<Vec<u32>> {
    (0..count).map(|i| (0..length).map(|j| ((i * 7919 + j * 104_729) % 8_000) as u32).collect()).collect()
}

/// The shortest time of several runs, in milliseconds.
fn fastest(mut run: impl FnMut()) -> f64 {
    let time = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e3
    };
    (0..=REPEATS).map(time).skip(1).fold(f64::INFINITY, f64::min)
}

fn generate(model: &CausalLm, prompts: &[Vec<u32>], max_tokens: usize) {
    let request = GenerationRequest {
        prompts: &prompts.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        n: 1,
        sampling: Sampling { max_tokens, temperature: 0.0, ..Sampling::default() },
        eos: &[],
        stops: None,
        rules: None,
        stream: &|prompt, sample| Stream::new(1, "bench", &[prompt as u64, sample as u64]),
        finished: None,
        progress: None,
    };
    let mut engine = NativeEngine { max_num_seqs: 64, max_num_batched_tokens: 8192, max_model_len: None, enforce_eager: false };
    engine.generate(model, &request).expect("generation");
}

fn main() {
    CONFIGS.into_iter().for_each(measure);
}

fn measure(config: &str) {
    let hf = HfConfig::from_json(serde_json::from_str(config).expect("an object"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/bench");
    let model = CausalLm::load_as(&folder, hf, Init::Random { seed: 1 }, &Device::flex()).expect("a supported shape");
    println!("{} parameters", model.num_parameters());
    let trained = model.clone().trainable();
    for length in [128, 512] {
        let texts = tokens(SEQUENCES * 128 / length, length);
        let sequences: Vec<Sequence> = texts.iter().map(|text| Sequence::new(&text[..1], &text[1..])).collect();
        let n = sequences.iter().map(|s| s.response.len()).sum::<usize>();
        let forward = fastest(|| drop(model.token_stats(&sequences, 1.0, None)));
        let both = fastest(|| {
            trained.backward(&sequences, 1.0, None, &mut Gradients::default(), |_| TokenGrads {
                log_prob: vec![-1.0 / n as f32; n],
                entropy: vec![0.0; n],
                full_kl: Vec::new(),
            });
        });
        println!("{} x {length} tokens: forward {forward:.0} ms, forward and backward {both:.0} ms", sequences.len());
    }
    for rows in [1, SEQUENCES] {
        let prompts = tokens(rows, 64);
        let (short, long) = (fastest(|| generate(&model, &prompts, 1)), fastest(|| generate(&model, &prompts, 33)));
        println!("{rows} rows: prefill of 64 tokens {short:.1} ms, a decode step {:.2} ms", (long - short) / 32.0);
    }
}
