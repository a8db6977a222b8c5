//! Models with recurrent layers (gated delta nets, short convolutions, Mamba-2): packed sequences, shared prompts, checkpointing,
//! generation in parts, and forks.

use std::path::Path;

use burnish::model::hf_config::HfConfig;
use burnish::model::kv_cache::{BlockTable, KvCache};
use burnish::model::ops::{Packed, to_host};
use burnish::model::token_stats::TokenGrads;
use burnish::model::{CausalLm, Gradients, Init, Sequence, TokenStats};
use burnish::rollout::{Engine, GenerationRequest, NativeEngine, Response, Sampling};
use burnish::util::rng::Stream;
use serde_json::{Map, Value, json};

use crate::device::{assert_same, cases, device, has_bfloat16, on_cpu};

/// A golden model, and changes of its config.
const MODELS: [(&str, &str); 10] = [
    ("qwen3_5_text", r#"{}"#),
    ("lfm2", r#"{"conv_bias": true, "conv_L_cache": 4}"#),
    // Projections as Qwen3-Next's files hold them, and heads of other sizes.
    ("qwen3_5_text", r#"{"model_type": "qwen3_next", "num_experts": 0, "linear_value_head_dim": 12, "linear_key_head_dim": 10}"#),
    // Every layer is recurrent, as many key heads as value heads, a bias.
    (
        "qwen3_5_text",
        r#"{"linear_num_key_heads": 3, "linear_num_value_heads": 3, "linear_conv_kernel_dim": 2, "attention_bias": true,
            "layer_types": ["linear_attention", "full_attention", "linear_attention", "linear_attention"]}"#,
    ),
    // All experts are chosen: a choice that changes is a jump of the loss, which has no slope.
    ("lfm2_moe", r#"{"num_experts_per_tok": 8}"#),
    ("qwen3_5_moe_text", r#"{"num_experts_per_tok": 8}"#),
    ("granitemoehybrid", r#"{}"#),
    ("granitemoehybrid_experts", r#"{"num_experts_per_tok": 6, "time_step_limit": [0.0, 3.0]}"#),
    ("falcon_h1", r#"{"mamba_rms_norm": true, "mamba_norm_before_gate": false}"#),
    ("falcon_h1_factors", r#"{}"#),
];

/// A model with random weights, small enough for well-conditioned gradients, and a vocabulary of 256 tokens.
pub(crate) fn random(folder: &str, changes: &str) -> CausalLm {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/models-2026").join(folder);
    let mut values: Map<String, Value> = serde_json::from_str(changes).unwrap();
    values.extend([("vocab_size".to_owned(), json!(256)), ("initializer_range".to_owned(), json!(0.08))]);
    let hf = HfConfig::read(&folder).unwrap().overridden(values);
    CausalLm::load_as(&folder, hf, Init::Random { seed: 3 }, &device()).unwrap()
}

fn models() -> impl Iterator<Item = (String, CausalLm)> {
    cases(MODELS, 1).map(|(folder, changes)| (format!("{folder} {changes}"), random(folder, changes)))
}

fn tokens(from: usize, len: usize) -> Vec<u32> {
    (from..from + len).map(|i| (i * 7919 + 13) as u32 % 256).collect()
}

/// Sequences of lengths around the border of a chunk (64 tokens); some share a prompt.
fn texts() -> Vec<(Vec<u32>, Vec<u32>)> {
    let lengths =
        [(0, 70, 67), (0, 70, 2), (0, 70, 1), (0, 70, 150), (7, 3, 60), (11, 1, 64), (13, 65, 66), (17, 2, 3), (17, 2, 5)];
    lengths.map(|(at, prompt, response)| (tokens(at, prompt), tokens(500 + response, response))).to_vec()
}

/// The statistics of sequences, and the gradients of a signed sum of their log-probabilities.
fn backward(model: &CausalLm, texts: &[(Vec<u32>, Vec<u32>)]) -> (TokenStats, Gradients) {
    let sequences: Vec<Sequence> = texts.iter().map(|(prompt, response)| Sequence::new(prompt, response)).collect();
    let (mut gradients, mut stats) = (Gradients::default(), TokenStats::default());
    model.backward(&sequences, 1.0, None, &mut gradients, |seen| {
        stats = seen.clone();
        let signs = sequences.iter().flat_map(|s| (0..s.response.len()).map(|i| if i.is_multiple_of(3) { -1.0 } else { 0.5 }));
        TokenGrads { log_prob: signs.collect(), entropy: vec![0.0; seen.log_prob.len()], full_kl: Vec::new() }
    });
    (stats, gradients)
}

#[track_caller]
fn close(label: &str, got: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(got.len(), expected.len(), "{label}");
    let largest = expected.iter().fold(1.0f32, |max, x| max.max(x.abs()));
    let error = got.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(error <= tolerance * largest, "{label}: {error} of {largest}");
}

#[track_caller]
fn same_gradients(label: &str, got: &Gradients, expected: &Gradients) {
    assert_eq!(got.0.len(), expected.0.len(), "{label}");
    // Kernels of a GPU round differently for each number of rows, and the rounding of large gradients reaches small ones. The bound is
    // a third of float32's unit roundoff (6e-8) of the norm.
    let rounding = if on_cpu() { 1e-6 } else { 1e-6 + 2e-8 * expected.norm() as f32 };
    for ((name, a), (_, b)) in got.0.iter().zip(&expected.0) {
        let (a, b) = (to_host(a.clone()), to_host(b.clone()));
        let largest = b.iter().fold(0.0f32, |max, x| max.max(x.abs()));
        assert!(largest > 0.0, "{label}: {name} has no gradient");
        let error = a
            .iter()
            .zip(&b)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, |max: f32, x| if x.is_nan() { f32::INFINITY } else { max.max(x) });
        assert!(error <= 2e-5 * largest + rounding, "{label}: {name} is off by {error} of {largest}");
    }
}

#[test]
fn sequences_in_one_pass_are_those_of_their_own() {
    for (name, model) in models() {
        let model = model.trainable();
        let texts = texts();
        let (together, gradients) = backward(&model, &texts);
        let (mut alone, mut sum) = (Vec::new(), Gradients::default());
        for text in &texts {
            let (stats, gradients) = backward(&model, std::slice::from_ref(text));
            alone.extend(stats.log_prob);
            gradients.0.into_iter().for_each(|(name, gradient)| sum.add(&name, gradient));
        }
        close(&format!("{name}: log-probabilities"), &together.log_prob, &alone, 5e-6);
        same_gradients(&name, &gradients, &sum);
    }
}

#[test]
fn recomputed_blocks_give_the_same_gradients() {
    for (name, model) in models() {
        let model = model.trainable();
        let (_, expected) = backward(&model, &texts());
        let (_, gradients) = backward(&model.clone().computing(false, true), &texts());
        for ((parameter, a), (_, b)) in gradients.0.iter().zip(&expected.0) {
            assert_same(&format!("{name}: {parameter}"), &to_host(a.clone()), &to_host(b.clone()));
        }
    }
}

/// Gradients against differences of the loss along the gradient.
#[test]
fn gradients_are_slopes() {
    for (name, model) in models() {
        let model = model.trainable();
        let texts = texts();
        let loss = |model: &CausalLm| {
            let sequences: Vec<Sequence> = texts.iter().map(|(prompt, response)| Sequence::new(prompt, response)).collect();
            let stats = model.token_stats(&sequences, 1.0, None);
            let sign = |i: usize| if i.is_multiple_of(3) { -1.0 } else { 0.5 };
            let mut i = stats.log_prob.iter();
            texts
                .iter()
                .map(|(_, response)| (0..response.len()).map(|t| sign(t) * f64::from(*i.next().unwrap())).sum::<f64>())
                .sum::<f64>()
        };
        let (_, gradients) = backward(&model, &texts);
        let squares: f64 = gradients.squares().map(|(_, square)| square).sum();
        // Along the gradient, the slope of the loss is its norm.
        let step = 3e-4 / squares.sqrt();
        let moved = |by: f64| {
            let mut optimizer = burnish::optim::Optimizer::adamw(burnish::optim::AdamWConfig {
                beta1: 0.0,
                beta2: 0.0,
                eps: 1e9,
                weight_decay: 0.0,
            });
            let copy = Gradients(gradients.0.clone());
            let mut model = model.clone();
            // With a large ε, AdamW moves by −lr · gradient / ε.
            model.net = optimizer.update(model.net, copy, -by * 1e9, 1.0);
            loss(&model)
        };
        let slope = (moved(step) - moved(-step)) / (2.0 * step);
        assert!((slope / squares - 1.0).abs() < 0.02, "{name}: {slope}, the gradient says {squares}");
    }
}

#[test]
fn bfloat16_keeps_states_in_float32() {
    if !has_bfloat16() {
        return;
    }
    for (name, model) in models() {
        let model = model.trainable();
        let (exact, gradients) = backward(&model, &texts());
        let (narrow, narrow_gradients) = backward(&model.clone().computing(true, true), &texts());
        let n = exact.log_prob.len() as f32;
        let error = exact.log_prob.iter().zip(&narrow.log_prob).map(|(a, b)| (a - b).abs()).sum::<f32>() / n;
        assert!(error > 0.0 && error < 0.1, "{name}: log-probabilities are off by {error}");
        let cosine = gradients.dot(&narrow_gradients) / (gradients.norm() * narrow_gradients.norm());
        assert!(cosine > 0.98, "{name}: the gradients' cosine is {cosine}");
    }
}

/// The hidden states of a sequence, by a prefill of `prefilled` tokens and then steps of these sizes.
fn in_parts(model: &CausalLm, ids: &[u32], prefilled: usize, step: usize, cache: &mut KvCache) -> (Vec<f32>, BlockTable) {
    let mut table = BlockTable::new();
    let (mut hidden, mut done) = (Vec::new(), 0);
    if prefilled > 0 {
        let mut packed = Packed::default();
        packed.push(prefilled, &[]);
        cache.extend(&mut table, prefilled);
        hidden = to_host(model.prefill(&ids[..prefilled], &packed.into(), &[&table], cache));
        done = prefilled;
    }
    while done < ids.len() {
        let end = ids.len().min(done + step);
        cache.extend(&mut table, end);
        let positions: Vec<usize> = (done..end).collect();
        hidden.extend(to_host(model.decode(&ids[done..end], &positions, &vec![&table; end - done], cache)));
        done = end;
    }
    (hidden, table)
}

#[test]
fn generation_in_parts_is_generation_at_once() {
    for (name, model) in models() {
        let model = model.inference();
        let ids = tokens(3, 140);
        let mut cache = model.cache();
        let (whole, table) = in_parts(&model, &ids, ids.len(), 1, &mut cache);
        cache.release(table);
        let (by_one, table) = in_parts(&model, &ids, 0, 1, &mut cache);
        cache.release(table);
        close(&format!("{name}: token by token"), &by_one, &whole, 2e-5);
        for (prefilled, step) in cases([(1, 1), (2, 5), (63, 1), (64, 3), (65, 40), (130, 7), (0, 140)], 1) {
            let (parts, table) = in_parts(&model, &ids, prefilled, step, &mut cache);
            cache.release(table);
            close(&format!("{name}: {prefilled} tokens, then {step} at a time"), &parts, &whole, 2e-5);
            if prefilled == 0 {
                assert_same(&format!("{name}: {step} at a time"), &parts, &by_one);
            }
        }
        assert_eq!((cache.used(), cache.used_states()), (0, 0), "{name}");
    }
}

#[test]
fn forks_continue_from_the_same_states() {
    for (name, model) in models() {
        let model = model.inference();
        let (prompt, own) = (tokens(5, 37), [tokens(80, 20), tokens(200, 20), tokens(40, 20)]);
        let mut cache = model.cache();
        let (_, table) = in_parts(&model, &prompt, prompt.len(), 1, &mut cache);
        let mut forks = cache.fork(&table, prompt.len(), own.len());
        let width = model.config.hidden_size;
        let mut together = vec![Vec::new(); own.len()];
        for t in 0..own[0].len() {
            forks.iter_mut().for_each(|fork| cache.extend(fork, prompt.len() + t + 1));
            let ids: Vec<u32> = own.iter().map(|own| own[t]).collect();
            let rows = forks.iter().collect::<Vec<_>>();
            let hidden = to_host(model.decode(&ids, &vec![prompt.len() + t; own.len()], &rows, &mut cache));
            together.iter_mut().zip(hidden.chunks(width)).for_each(|(all, row)| all.extend_from_slice(row));
        }
        assert_eq!(cache.used_states(), 4, "{name}");
        // A state that has moved on is not reused.
        assert_eq!(cache.reusable(&forks[0], prompt.len()), 0, "{name}");
        assert_eq!(cache.reusable(&forks[0], prompt.len() + own[0].len()), prompt.len() + own[0].len(), "{name}");
        forks.into_iter().chain([table]).for_each(|table| cache.release(table));
        for (own, together) in own.iter().zip(together) {
            let all = [&prompt[..], own].concat();
            let (hidden, table) = in_parts(&model, &all, prompt.len(), 1, &mut cache);
            cache.release(table);
            assert_same(&name, &together, &hidden[prompt.len() * width..]);
        }
        assert_eq!((cache.used(), cache.used_states()), (0, 0), "{name}");
    }
}

fn generate(model: &CausalLm, prompts: &[Vec<u32>], n: usize, mut engine: NativeEngine) -> Vec<Response> {
    let request = GenerationRequest {
        prompts: &prompts.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        n,
        sampling: Sampling { max_tokens: 40, ..Sampling::PLAIN },
        eos: &(0..25).map(|i| i * 10).collect::<Vec<_>>(),
        stops: None,
        rules: None,
        stream: &|prompt, sample| Stream::new(7, "rollout", &[prompt as u64, sample as u64]),
        finished: None,
        progress: None,
    };
    engine.generate(model, &request).unwrap()
}

#[test]
fn responses_are_what_training_sees_and_depend_on_themselves_alone() {
    let engine = NativeEngine { max_num_seqs: 64, max_num_batched_tokens: 8192, max_model_len: None, enforce_eager: false };
    let prompts: Vec<Vec<u32>> = [1, 6, 2, 16, 70, 3].iter().enumerate().map(|(i, &len)| tokens(i * 31, len)).collect();
    for (name, model) in models() {
        let together = generate(&model, &prompts, 4, engine);
        for (i, response) in together.iter().enumerate() {
            let stats = model.token_stats(&[Sequence::new(&prompts[i / 4], &response.ids)], 1.0, None);
            close(&format!("{name}: response {i}"), &response.log_probs, &stats.log_prob, 5e-6);
        }
        for (max_num_seqs, max_num_batched_tokens) in cases([(5, 8192), (2, 20), (1, 1)], 1) {
            let few = generate(&model, &prompts, 4, NativeEngine { max_num_seqs, max_num_batched_tokens, ..engine });
            for (few, expected) in few.iter().zip(&together) {
                assert_eq!(few.ids, expected.ids, "{name}: {max_num_seqs} side by side");
                assert_same(&format!("{name}: {max_num_seqs} side by side"), &few.log_probs, &expected.log_probs);
            }
        }
    }
}
