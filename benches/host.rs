//! Benchmarks of the work outside the model: advantages of a batch, loading the configuration, reading a data file.

use std::path::{Path, PathBuf};

use burnish::algorithm::advantage::{AdvantageInput, ESTIMATORS, Need};
use burnish::config::{Choices, PpoConfig, Request, load};
use burnish::data::rows::read_rows;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

// The same allocator as in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Every estimator that needs neither a critic nor several rewards, on 64 prompts × 8 samples of 128 tokens.
fn advantages(c: &mut Criterion) {
    const PROMPTS: usize = 64;
    const SAMPLES: usize = 8;
    const TOKENS: usize = 128;
    let sequences = PROMPTS * SAMPLES;
    let offsets: Vec<usize> = (0..=sequences).map(|i| i * TOKENS).collect();
    let last = |t: usize| t % TOKENS == TOKENS - 1;
    let score = |t: usize| if last(t) { (t * 7919 % 11) as f32 / 11.0 } else { 0.0 };
    let rewards: Vec<f32> = (0..sequences * TOKENS).map(score).collect();
    let constant = |value: f32| vec![value; sequences * TOKENS];
    let (mask, log_prob, squares, baselines) = (constant(1.0), constant(-1.0), constant(0.2), vec![0.5; sequences]);
    let group_of: Vec<usize> = (0..sequences).map(|i| i / SAMPLES).collect();
    let input = AdvantageInput {
        offsets: &offsets,
        rewards: &rewards,
        scores: &rewards,
        mask: &mask,
        group: &group_of,
        reward_baselines: Some(&baselines),
        old_log_prob: Some(&log_prob),
        sum_pi_squared: Some(&squares),
        ..AdvantageInput::default()
    };
    let mut group = c.benchmark_group("advantages");
    group.throughput(Throughput::Elements((sequences * TOKENS) as u64));
    for estimator in ESTIMATORS.iter().filter(|e| !e.needs(Need::Critic) && !e.needs(Need::Components)) {
        group.bench_function(estimator.name, |b| b.iter(|| (estimator.run)(&input)));
    }
}

fn config(c: &mut Criterion) {
    let request = Request {
        config: Some("ppo_trainer.yaml".into()),
        overrides: vec!["algorithm.adv_estimator=grpo".into(), "data.train_batch_size=128".into()],
        ..Request::default()
    };
    c.bench_function("config/load", |b| {
        b.iter(|| load::<PpoConfig>(&request, &Choices::default()).expect("the built-in configuration"))
    });
}

fn parquet(c: &mut Criterion) {
    let files: [PathBuf; 1] = [Path::new(env!("CARGO_MANIFEST_DIR")).join("data/arithmetic/train.parquet")];
    let read = || read_rows(&files, &["prompt", "data_source", "reward_model"], &["extra_info"]).expect("data of the repository");
    let mut group = c.benchmark_group("parquet");
    group.throughput(Throughput::Elements(read().len() as u64));
    group.bench_function("read_rows", |b| b.iter(read));
}

criterion_group!(benches, advantages, config, parquet);
criterion_main!(benches);
