//! Values read at some tokens, and their gradients, against the paths that read at every token.

use std::path::{Path, PathBuf};

use burnish::algorithm::ranking::{StepTarget, step_loss};
use burnish::model::hf_config::Classifier;
use burnish::model::token_stats::TokenGrads;
use burnish::model::{CausalLm, Cut, Gradients, HeadInit, Init, MarkedSequence, NewHead, Readout, Sequence};

use crate::device::{assert_same, cases, device};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/models").join(name)
}

fn close(label: &str, ours: &Gradients, theirs: &Gradients, tolerance: f32) {
    assert_eq!(ours.0.keys().collect::<Vec<_>>(), theirs.0.keys().collect::<Vec<_>>(), "{label}");
    let largest = theirs.0.values().map(|g| g.clone().abs().max().into_scalar::<f32>()).fold(0.0, f32::max);
    for (name, expected) in &theirs.0 {
        let error: f32 = (ours.0[name].clone() - expected.clone()).abs().max().into_scalar();
        let scale = expected.clone().abs().max().into_scalar::<f32>().max(1e-2 * largest);
        assert!(error <= tolerance * scale, "{label}, {name}: off by {error}, largest {scale}");
    }
}

/// The texts of three pairs; two share a prompt, and one has an empty response.
const PROMPTS: [&[u32]; 3] = [&[5, 9, 200, 17], &[33, 4], &[5, 9, 200, 17]];
const ANSWERS: [&[u32]; 3] = [&[90, 8, 71], &[], &[90, 8, 72, 3, 66]];

fn texts() -> [Sequence<'static>; 3] {
    [0, 1, 2].map(|i| Sequence::new(PROMPTS[i], ANSWERS[i]))
}

/// A score depends on the whole text, and its gradient does not depend on other texts in the pass.
#[test]
fn scores_are_read_after_the_last_token() {
    for name in cases(["gpt_neox_reward", "llama_reward", "qwen2_reward"], 1) {
        let model = CausalLm::load_scalar(&folder(name), Init::Pretrained, None, &device()).unwrap();
        let whole: Vec<Vec<u32>> = texts().iter().map(|text| [text.prompt, text.response].concat()).collect();
        let alone = model.final_scores(&whole.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let at = whole.iter().map(|text| [text.len() - 1]).collect::<Vec<_>>();
        let marked: Vec<MarkedSequence> =
            texts().into_iter().zip(&at).map(|(sequence, at)| MarkedSequence { sequence, at }).collect();
        let mut scores = Vec::new();
        model.read(&marked, Readout::Labels, |part| scores.extend_from_slice(part));
        for (score, alone) in scores.iter().zip(&alone) {
            assert!((score - alone).abs() < 1e-5, "{name}: {scores:?}, alone {alone:?}");
        }
        let model = model.trainable();
        let gradients = |size: usize| {
            let mut gradients = Gradients::default();
            for micro in Cut::Sequences(size).micro_batches(&texts()) {
                let marked: Vec<MarkedSequence> = micro.iter().map(|&i| marked[i]).collect();
                model
                    .read_backward(&marked, Readout::Labels, &mut gradients, |_| micro.iter().map(|&i| 1.0 - i as f32).collect());
            }
            gradients
        };
        // The path that reads at every token gets a gradient only at the last token.
        let mut every = Gradients::default();
        let with_next: Vec<Vec<u32>> = ANSWERS.iter().map(|answer| [answer, &[0][..]].concat()).collect();
        let sequences: Vec<Sequence> =
            PROMPTS.into_iter().zip(&with_next).map(|(prompt, response)| Sequence::new(prompt, response)).collect();
        model.value_backward(&sequences, &mut every, |values| {
            let mut d = vec![0.0; values.len()];
            let mut end = 0;
            for (i, answer) in with_next.iter().enumerate() {
                end += answer.len();
                d[end - 1] = 1.0 - i as f32;
            }
            d
        });
        [1, 2, 3].iter().for_each(|size| close(&format!("{name}, {size}"), &gradients(*size), &every, 1e-5));
    }
}

/// The logits of all tokens, of all tokens by id, and the token statistics belong to one distribution. Heads are tied, capped or
/// neither.
#[test]
fn logits_after_some_tokens_are_those_of_the_language_model() {
    for name in ["llama", "gemma2", "gpt2"] {
        let model = CausalLm::load(&folder(name), Init::Pretrained, &device()).unwrap().trainable();
        let all: Vec<u32> = (0..model.config.vocab_size as u32).collect();
        let (text, marks) = ([5u32, 9, 200, 17, 33, 4, 90], [2usize, 4, 5]);
        let sequence = Sequence::new(&text[..1], &text[1..]);
        let (mut expected, mut log_probs) = (Gradients::default(), Vec::new());
        model.backward(&[sequence], 1.0, None, &mut expected, |stats| {
            log_probs = marks.map(|mark| stats.log_prob[mark]).to_vec();
            let log_prob = (0..text.len() - 1).map(|t| if marks.contains(&t) { -1.0 } else { 0.0 }).collect();
            TokenGrads { log_prob, entropy: vec![0.0; text.len() - 1], full_kl: Vec::new() }
        });
        for case in [Readout::Vocabulary, Readout::Tokens(&all)] {
            let (mut gradients, mut next, mut losses) = (Gradients::default(), 0, Vec::new());
            model.read_backward(&[MarkedSequence { sequence, at: &marks }], case, &mut gradients, |numbers| {
                let rows = numbers.chunks_exact(all.len()).flat_map(|row| {
                    let label = StepTarget::Class(text[marks[next] + 1] as usize);
                    next += 1;
                    let (loss, d, _) = step_loss(row, label);
                    losses.push(loss);
                    d.into_iter().map(|d| d as f32).collect::<Vec<_>>()
                });
                rows.collect()
            });
            for (loss, log_prob) in losses.iter().zip(&log_probs) {
                assert!((loss + f64::from(*log_prob)).abs() < 1e-5, "{name}, {case:?}: {losses:?}, {log_probs:?}");
            }
            close(&format!("{name}, {case:?}"), &gradients, &expected, 1e-4);
        }
    }
}

/// A language model becomes a classifier that transformers loads, and a new head starts with the chosen initialization.
#[test]
fn heads_of_classifiers() {
    let load = |init, kind, labels| {
        let head = NewHead { kind, init, seed: 7 };
        CausalLm::load_labels(&folder("gpt_neox"), Init::Pretrained, labels, Some(head), &device()).unwrap()
    };
    for (kind, labels, class, name) in [
        (Classifier::Sequences, 1, "GPTNeoXForSequenceClassification", "score.weight"),
        (Classifier::Tokens, 2, "GPTNeoXForTokenClassification", "classifier.bias"),
    ] {
        let saved = tempfile::tempdir().unwrap();
        let model = load(HeadInit::Normal, kind, labels).padded_by(Some(3));
        model.save(saved.path()).unwrap();
        let config: serde_json::Value =
            serde_json::from_slice(&std::fs::read(saved.path().join("config.json")).unwrap()).unwrap();
        let labels_of = config["id2label"].as_object().unwrap().len();
        assert_eq!(
            (config["architectures"][0].as_str(), labels_of, config["pad_token_id"].as_u64()),
            (Some(class), labels, Some(3))
        );
        let weights = std::fs::read(saved.path().join("model.safetensors")).unwrap();
        let tensors = safetensors::SafeTensors::deserialize(&weights).unwrap();
        assert!(tensors.names().contains(&name), "{:?}", tensors.names());
        assert_eq!(tensors.tensor(if labels == 1 { "score.weight" } else { "classifier.weight" }).unwrap().shape()[0], labels);
        let back = CausalLm::load_labels(saved.path(), Init::Pretrained, labels, None, &device()).unwrap();
        let text: (&[u32], &[usize]) = (&[5, 9, 17], &[0, 2]);
        let scores = [&back, &model].map(|model| model.scores_at(&[text], Readout::Labels));
        assert_same("scores of the saved model", &scores[0], &scores[1]);
        assert!(CausalLm::load_labels(saved.path(), Init::Pretrained, 3 - labels, None, &device()).is_err());
    }
    let spread = |init| {
        let model = load(init, Classifier::Sequences, 1);
        let head = model.net.head().val().inner();
        (head.square().mean().into_scalar::<f32>().sqrt(), model.config)
    };
    let (normal, config) = spread(HeadInit::Normal);
    assert!((normal / config.initializer_range as f32 - 1.0).abs() < 0.5, "{normal}");
    let scaled = spread(HeadInit::Scaled).0 * (config.hidden_size as f32 + 1.0);
    assert!((scaled - 1.0).abs() < 0.5, "{scaled}");
    assert_eq!(spread(HeadInit::Zeros).0, 0.0);
}
