//! Generation and training of a small Qwen2 (17 million parameters, vocabulary of 50,304), through the calls that the trainer
//! makes: prefill, decode, a pass of log-probabilities, an update.

use std::path::Path;
use std::sync::LazyLock;

use burn::tensor::Device;
use burnish::model::token_stats::TokenGrads;
use burnish::model::{CausalLm, Gradients, Init, Sequence};
use burnish::optim::{AdamWConfig, Learner, Optimizer, Schedule, schedule};
use burnish::rollout::{Engine, GenerationRequest, NativeEngine, Sampling};
use burnish::util::rng::Stream;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

// The same allocator as in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PROMPTS: usize = 8;
const SAMPLES: usize = 4;
const PROMPT_TOKENS: usize = 64;
const RESPONSE_TOKENS: usize = 32;

static MODEL: LazyLock<CausalLm> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes/gsm8k/qwen2_small");
    CausalLm::load(&folder, Init::Random { seed: 1 }, &Device::flex()).expect("a model of the repository")
});

fn tokens(count: usize, length: usize) -> Vec<Vec<u32>> {
    (0..count).map(|i| (0..length).map(|j| ((i * 7919 + j * 104_729) % 50_000) as u32).collect()).collect()
}

fn generate(prompts: &[Vec<u32>], n: usize, max_tokens: usize) {
    let prompts: Vec<&[u32]> = prompts.iter().map(Vec::as_slice).collect();
    let request = GenerationRequest {
        prompts: &prompts,
        n,
        sampling: Sampling { max_tokens, ..Sampling::default() },
        eos: &[],
        stops: None,
        rules: None,
        stream: &|prompt, sample| Stream::new(1, "bench", &[prompt as u64, sample as u64]),
        finished: None,
        progress: None,
    };
    let mut engine = NativeEngine { max_num_seqs: 1024, max_num_batched_tokens: 8192, max_model_len: None, enforce_eager: false };
    engine.generate(&MODEL, &request).expect("generation");
}

fn generation(c: &mut Criterion) {
    let mut group = c.benchmark_group("generation");
    group.sample_size(10);
    let long = tokens(PROMPTS, PROMPT_TOKENS);
    group.throughput(Throughput::Elements((PROMPTS * PROMPT_TOKENS) as u64));
    group.bench_function("prefill", |b| b.iter(|| generate(&long, 1, 1)));
    // The prefill samples one token, so the difference counts only the steps after it.
    let short = tokens(PROMPTS, 1);
    group.throughput(Throughput::Elements((PROMPTS * SAMPLES * RESPONSE_TOKENS) as u64));
    group.bench_function("decode", |b| b.iter(|| generate(&short, SAMPLES, RESPONSE_TOKENS + 1)));
}

fn training(c: &mut Criterion) {
    let mut group = c.benchmark_group("training");
    group.sample_size(10);
    let (prompts, responses) = (tokens(PROMPTS, PROMPT_TOKENS), tokens(PROMPTS * SAMPLES, RESPONSE_TOKENS));
    let sequences: Vec<Sequence> =
        responses.iter().enumerate().map(|(i, response)| Sequence::new(&prompts[i / SAMPLES], response)).collect();
    group.throughput(Throughput::Elements(sequences.iter().map(|s| s.len() as u64).sum()));
    let frozen = MODEL.frozen();
    group.bench_function("log_probs", |b| b.iter(|| frozen.token_stats(&sequences, 1.0, None)));

    let config = AdamWConfig { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01 };
    let kind = schedule::find("constant").expect("a schedule");
    let mut learner = Learner {
        name: "model",
        ranks: burnish::distributed::Ranks::alone(),
        model: MODEL.clone().trainable(),
        optimizer: Optimizer::adamw(config),
        schedule: Schedule::new(kind, 1),
        lr: 1e-5,
        grad_clip: 1.0,
    };
    group.bench_function("update", |b| {
        b.iter(|| {
            let mut gradients = Gradients::default();
            learner.model.backward(&sequences, 1.0, None, &mut gradients, |stats| {
                let count = stats.log_prob.len();
                let log_prob = (0..count).map(|t| if t % 2 == 0 { 1e-3 } else { -1e-3 }).collect();
                TokenGrads { log_prob, entropy: vec![0.0; count], full_kl: Vec::new() }
            });
            learner.update(gradients, 1e-5).unwrap()
        });
    });
}

criterion_group!(benches, generation, training);
criterion_main!(benches);
