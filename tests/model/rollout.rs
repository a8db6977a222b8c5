//! The native engine: a response does not depend on its neighbours, the slots or the number of samples.

use std::path::Path;

use burnish::model::ops::Packed;
use burnish::model::{CausalLm, Init, Sequence};
use burnish::rollout::sampling::{LogitChanges, TokenHistory, sample};
use burnish::rollout::{
    Engine, Finish, GenerationProgress, GenerationRequest, Logprobs, NativeEngine, Response, Sampling, Stops, TokenRules,
};
use burnish::util::rng::Stream;
use serde_json::Value;

use crate::device::{cases, device, is_same};

fn model() -> CausalLm {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/models/qwen2");
    CausalLm::load(&folder, Init::Pretrained, &device()).unwrap()
}

fn prompts() -> Vec<Vec<u32>> {
    let length = |i: usize| [1, 6, 2, 16, 33, 3, 8][i]; // some fill a block of the cache, some end within one
    (0..7).map(|i| (0..length(i)).map(|j| (i * 31 + j * 17) as u32 % 256).collect()).collect()
}

const SAMPLING: Sampling = Sampling { max_tokens: 24, ..Sampling::PLAIN };
const ENGINE: NativeEngine =
    NativeEngine { max_num_seqs: 64, max_num_batched_tokens: 8192, max_model_len: None, enforce_eager: false };
/// Enough end tokens for responses of different lengths.
const EOS: [u32; 24] = {
    let mut eos = [0; 24];
    let mut i = 0;
    while i < 24 {
        eos[i] = i as u32 * 10;
        i += 1;
    }
    eos
};

fn generate(model: &CausalLm, which: &[usize], n: usize, engine: NativeEngine) -> Vec<Response> {
    generate_with(model, which, n, engine, (SAMPLING, &EOS), None).unwrap()
}

fn generate_with(
    model: &CausalLm,
    which: &[usize],
    n: usize,
    engine: NativeEngine,
    with: (Sampling, &[u32]),
    stops: Option<Stops>,
) -> anyhow::Result<Vec<Response>> {
    generate_by(model, which, n, engine, with, stops, None)
}

fn generate_by(
    model: &CausalLm,
    which: &[usize],
    n: usize,
    mut engine: NativeEngine,
    (sampling, eos): (Sampling, &[u32]),
    stops: Option<Stops>,
    rules: Option<&TokenRules>,
) -> anyhow::Result<Vec<Response>> {
    let all = prompts();
    let prompts: Vec<&[u32]> = which.iter().map(|&i| all[i].as_slice()).collect();
    let stream = |prompt: usize, sample: usize| Stream::new(7, "rollout", &[which[prompt] as u64, sample as u64]);
    let request =
        GenerationRequest { prompts: &prompts, n, sampling, eos, stops, rules, stream: &stream, finished: None, progress: None };
    engine.generate(model, &request)
}

/// Asserts that responses are equal, and their log-probabilities where rows do not depend on their neighbours.
fn assert_same(label: &str, got: &[Response], expected: &[Response]) {
    assert_eq!(got.len(), expected.len(), "{label}");
    for (got, expected) in got.iter().zip(expected) {
        assert_eq!((&got.ids, got.finish), (&expected.ids, expected.finish), "{label}");
        let columns = [(&got.log_probs, &expected.log_probs), (&got.rollout_log_probs, &expected.rollout_log_probs)];
        assert!(columns.iter().all(|(got, expected)| is_same(got, expected)), "{label}: {columns:?}");
    }
}

#[test]
fn a_response_does_not_depend_on_its_neighbours() {
    let model = model();
    let all: Vec<usize> = (0..7).collect();
    let together = generate(&model, &all, 4, ENGINE);
    assert!(
        together.iter().any(|r| r.finish == Finish::Stop && r.ids.len() > 1)
            && together.iter().any(|r| r.finish == Finish::Length)
    );
    for max_num_seqs in cases([5, 3, 2, 1], 1) {
        let few = generate(&model, &all, 4, NativeEngine { max_num_seqs, ..ENGINE });
        assert_same(&format!("{max_num_seqs} side by side"), &few, &together);
    }
    // Budgets for which each prompt passes alone, or some together; the longest prompt exceeds two of them.
    for max_num_batched_tokens in cases([40, 20, 1], 1) {
        let engine = NativeEngine { max_num_batched_tokens, ..ENGINE };
        let few = generate(&model, &all, 4, engine);
        assert_same(&format!("{max_num_batched_tokens} tokens in a pass"), &few, &together);
    }
    for (i, expected) in cases(together.chunks(4).enumerate(), 1) {
        assert_same(&format!("prompt {i} alone"), &generate(&model, &[i], 4, ENGINE), expected);
        assert_same(&format!("prompt {i}, one sample"), &generate(&model, &[i], 1, ENGINE), &expected[..1]);
    }
}

#[test]
fn log_probs_are_those_of_the_training_pass() {
    let model = model();
    let all: Vec<usize> = (0..7).collect();
    let prompts = prompts();
    for (i, response) in generate(&model, &all, 4, ENGINE).iter().enumerate() {
        let stats = model.token_stats(&[Sequence::new(&prompts[i / 4], &response.ids)], SAMPLING.temperature, None);
        for (a, b) in response.log_probs.iter().zip(&stats.log_prob) {
            assert!((a - b).abs() < 2e-5, "{a} while sampling, {b} in training");
        }
    }
}

#[test]
fn responses_end_where_they_should() {
    let model = model();
    let all: Vec<usize> = (0..7).collect();
    let free = (SAMPLING, &[][..]);
    let endless = generate_with(&model, &all, 2, ENGINE, free, None).unwrap();
    assert!(endless.iter().all(|r| r.ids.len() == 24 && r.finish == Finish::Length));

    // A stop text; here the first token divisible by 7 completes it. The response contains it, and is the same up to there.
    let stops = |ids: &[u32]| ids.last().unwrap().is_multiple_of(7);
    let stopped = generate_with(&model, &all, 2, ENGINE, free, Some(&stops)).unwrap();
    for (r, whole) in stopped.iter().zip(&endless) {
        let end = whole.ids.iter().position(|id| id.is_multiple_of(7)).map_or(24, |i| i + 1);
        assert!(r.ids == whole.ids[..end] && is_same(&r.log_probs, &whole.log_probs[..end]), "{r:?}, not {whole:?}");
        assert_eq!(r.finish == Finish::Stop, r.ids.last().unwrap().is_multiple_of(7));
    }
    assert!(stopped.iter().any(|r| r.finish == Finish::Stop));

    // Before min_tokens, stop tokens are not sampled, and stop texts are not searched.
    let late = Sampling { min_tokens: 10, ..SAMPLING };
    let responses = generate_with(&model, &all, 4, ENGINE, (late, &EOS), None).unwrap();
    assert!(responses.iter().all(|r| r.ids.len() > 10 && !r.ids[..10].iter().any(|id| EOS.contains(id))));
    assert!(responses.iter().any(|r| r.finish == Finish::Stop));
    let responses = generate_with(&model, &all, 4, ENGINE, (late, &[]), Some(&stops)).unwrap();
    assert!(responses.iter().all(|r| r.ids.len() > 10) && responses.iter().any(|r| r.finish == Finish::Stop));

    // max_model_len cuts the response to the longest prompt, and refuses a prompt that leaves no room.
    let cut = |max_model_len| NativeEngine { max_model_len: Some(max_model_len), ..ENGINE };
    let responses = generate_with(&model, &all, 2, cut(40), free, None).unwrap();
    for (i, (r, whole)) in responses.iter().zip(&endless).enumerate() {
        let room = (40 - prompts()[i / 2].len()).min(24);
        assert_eq!((&r.ids[..], r.finish), (&whole.ids[..room], Finish::Length));
    }
    let error = generate_with(&model, &all, 2, cut(33), free, None).unwrap_err().to_string();
    assert!(error.contains("33 tokens") && error.contains("max_model_len=33"), "{error}");
    let error = generate_with(&model, &all, 2, cut(1 << 20), free, None).unwrap_err().to_string();
    assert!(error.contains("max_position_embeddings"), "{error}");
}

/// Greedy responses are the most probable tokens of the changed logits, which are computed position by position here. The
/// reported log-probabilities are the model's, without any change.
#[test]
fn penalties_and_rules_know_prompt_and_response() {
    let (model, which) = (model(), [3, 4, 6]);
    let run = |sampling: Sampling, rules: &TokenRules| {
        let greedy = Sampling { temperature: 0.0, ..sampling };
        generate_by(&model, &which, 1, ENGINE, (greedy, &[]), None, Some(rules)).unwrap()
    };
    let (none, plain) = (TokenRules::default(), run(SAMPLING, &TokenRules::default()));
    let first = &plain[0].ids;
    // Words of the plain responses: of one token, of two, and one that begins at the end of the prompt.
    let last_of_prompt = *prompts()[which[0]].last().unwrap();
    let bad_words = vec![vec![first[3]], vec![first[0], first[1]], vec![last_of_prompt, first[0]]];
    let likely: Vec<(u32, f32)> = plain[1].ids.iter().map(|&id| (id, 0.0)).collect();
    for (sampling, rules) in [
        (Sampling { repetition_penalty: 1.7, ..SAMPLING }, none.clone()),
        (Sampling { presence_penalty: 2.0, ..SAMPLING }, none.clone()),
        (Sampling { frequency_penalty: 1.5, ..SAMPLING }, none.clone()),
        (SAMPLING, TokenRules { bad_words: bad_words.clone(), ..none.clone() }),
        (SAMPLING, TokenRules { allowed: Some((0..256).filter(|id| id % 3 == 0).collect()), ..none.clone() }),
        (SAMPLING, TokenRules { biases: vec![(likely[0].0, -4.0), (7, 1.5)], ..none.clone() }),
        (
            Sampling { repetition_penalty: 1.2, presence_penalty: 0.4, frequency_penalty: -0.1, ..SAMPLING },
            TokenRules { allowed: Some((0..200).collect()), bad_words, biases: vec![(7, 2.0), (11, -1.0)] },
        ),
    ] {
        let changed = run(sampling, &rules);
        assert!(changed.iter().zip(&plain).any(|(a, b)| a.ids != b.ids), "{sampling:?}, {rules:?}");
        for (response, which) in changed.iter().zip(which) {
            let prompt = &prompts()[which];
            let all = [&prompt[..], &response.ids].concat();
            let mut logits = Vec::new();
            let (mut packed, positions) = (Packed::default(), (0..all.len()).collect::<Vec<_>>());
            packed.push(all.len(), &[]);
            model.logits(model.hidden(model.embed(&all, &positions), &packed.into()), &mut logits);
            for (at, row) in logits.chunks(256).enumerate().take(all.len() - 1).skip(prompt.len() - 1) {
                let output = &all[prompt.len()..=at];
                let changed = |id: u32| {
                    let completes =
                        |word: &Vec<u32>| word == &[&output[output.len().saturating_sub(word.len() - 1)..], &[id]].concat();
                    if rules.allowed.as_ref().is_some_and(|allowed| !allowed.contains(&id))
                        || rules.bad_words.iter().any(completes)
                    {
                        return f32::NEG_INFINITY;
                    }
                    let biases = rules.biases.iter().filter(|(token, _)| *token == id);
                    let x = row[id as usize] + biases.map(|(_, bias)| bias).sum::<f32>();
                    let x = match all[..=at].contains(&id) {
                        false => x,
                        true if x > 0.0 => x / sampling.repetition_penalty,
                        true => x * sampling.repetition_penalty,
                    };
                    let count = output.iter().filter(|token| **token == id).count();
                    x - sampling.frequency_penalty * count as f32 - sampling.presence_penalty * count.min(1) as f32
                };
                let likeliest = (0..256).max_by(|a, b| changed(*a).total_cmp(&changed(*b)));
                assert_eq!(likeliest, Some(all[at + 1]), "after {at} tokens, {sampling:?}, {rules:?}");
            }
            let stats = model.token_stats(&[Sequence::new(prompt, &response.ids)], 1.0, None);
            for (a, b) in response.log_probs.iter().zip(&stats.log_prob) {
                assert!((a - b).abs() < 2e-5, "{a} while sampling, {b} in training");
            }
        }
    }
}

#[test]
fn progress_ends_with_everything() {
    let model = model();
    let prompt: &[u32] = &[1, 2, 3];
    let stream = |prompt: usize, sample: usize| Stream::new(7, "rollout", &[prompt as u64, sample as u64]);
    let penalized = std::sync::Mutex::new(Vec::new());
    let request = GenerationRequest {
        prompts: &[prompt; 3],
        n: 2,
        sampling: SAMPLING,
        eos: &EOS,
        stops: None,
        rules: None,
        stream: &stream,
        finished: None,
        progress: Some(&|done| penalized.lock().unwrap().push(done)),
    };
    let responses = NativeEngine { max_num_seqs: 4, ..ENGINE }.generate(&model, &request).unwrap();
    let penalized = penalized.into_inner().unwrap();
    assert!(penalized.windows(2).all(|w| w[0].tokens < w[1].tokens && w[0].finished <= w[1].finished));
    let tokens = responses.iter().map(|r| r.ids.len()).sum();
    assert_eq!(penalized.last(), Some(&GenerationProgress { finished: 6, total: 6, tokens }));
}

/// The log-probabilities that vLLM reports for each token it may draw, from scripts/goldens/golden_rollout_log_probs.py; tokens
/// that a filter removes are never drawn.
#[test]
fn golden_log_probs_of_generation() {
    let folder = std::env::var_os("BURNISH_GOLDENS").map(std::path::PathBuf::from);
    let folder = folder.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden"));
    let goldens: Value = serde_json::from_slice(&std::fs::read(folder.join("rollout-log-probs.json")).unwrap()).unwrap();
    let mut checked = 0;
    for case in goldens["cases"].as_array().unwrap() {
        let number = |name: &str| case["settings"][name].as_f64().unwrap() as f32;
        let ids = |list: &Value| list.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect::<Vec<_>>();
        let logits: Vec<f32> = case["logits"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect();
        let (prompt, response) = (ids(&case["prompt"]), ids(&case["response"]));
        let rules = TokenRules {
            allowed: Some(&case["settings"]["allowed_token_ids"]).filter(|list| list.is_array()).map(ids),
            bad_words: case["settings"]["bad_words"].as_array().unwrap().iter().map(ids).collect(),
            biases: case["settings"]["logit_bias"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(id, bias)| (id.parse().unwrap(), bias.as_f64().unwrap() as f32))
                .collect(),
        };
        let forbidden: Vec<u32> = rules.forbidden_after(&response).chain(ids(&case["early_stops"])).collect();
        for logprobs in [Logprobs::Processed, Logprobs::Raw] {
            let sampling = Sampling {
                temperature: number("temperature"),
                top_k: number("top_k") as usize,
                top_p: number("top_p"),
                min_p: number("min_p"),
                repetition_penalty: number("repetition_penalty"),
                presence_penalty: number("presence_penalty"),
                frequency_penalty: number("frequency_penalty"),
                logprobs,
                ..SAMPLING
            };
            let processed = &case["processed_logprobs"];
            let expected = if logprobs == Logprobs::Raw { &case["raw_logprobs"] } else { processed };
            let mut history = TokenHistory::new(&prompt, &sampling);
            response.iter().for_each(|&token| history.add(token));
            let changes = LogitChanges {
                allowed: rules.allowed.as_deref(),
                forbidden: &forbidden,
                biases: &rules.biases,
                penalized: history.penalized(),
            };
            let mut found = vec![false; logits.len()];
            for draw in 0..2000 {
                let drawn = sample(&mut logits.clone(), &sampling, changes, || (f64::from(draw) + 0.5) / 2000.0);
                let token = drawn.token as usize;
                assert!(!processed[token].is_null(), "{token} is not kept: {case}");
                let expected = expected[token].as_f64().unwrap();
                let error = (f64::from(drawn.rollout_log_prob) - expected).abs();
                assert!(error < 1e-5, "{logprobs:?}, token {token}: {drawn:?} for {expected}; {case}");
                found[token] = true;
                checked += 1;
            }
            let likely = |x: &Value| sampling.temperature > 0.0 && x.as_f64().is_some_and(|x| x > -6.0);
            let missed = (0..logits.len()).filter(|&token| likely(&processed[token]) && !found[token]).count();
            assert_eq!(missed, 0, "{case}");
        }
    }
    assert!(checked > 0);
}
