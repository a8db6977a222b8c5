//! Reward models against transformers, in any batch, and conversations rewritten for them.

use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::Tensor;
use burnish::agent::Transcript;
use burnish::data::prepare::char_tokenizer::write_char_tokenizer;
use burnish::data::{Prompt, Tokenizer};
use burnish::model::{CausalLm, Cut, Init};
use burnish::reward_model::model::{Judged, ModelScores, Reading, RewardModel, Rewriting};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::device::{cases, device, for_the_cpu, on_cpu};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/models").join(name)
}

fn reward_model(folder: &Path, rewriting: Option<Rewriting>, max_length: Option<usize>, cut: Cut) -> RewardModel {
    let model = CausalLm::load_scalar(folder, Init::Pretrained, None, &device()).unwrap();
    let positions = model.config.max_position_embeddings;
    RewardModel { model, reading: Reading { rewriting, max_length, positions, steps: None }, cut }
}

fn prompt(ids: &[u32], text: &str, index: usize) -> Prompt {
    Prompt {
        ids: ids.to_vec(),
        messages: json!([{"role": "user", "content": text}]),
        text: text.to_owned(),
        data_source: String::new(),
        ground_truth: Value::Null,
        extra_info: Value::Null,
        agent: String::new(),
        conversational: true,
        columns: Default::default(),
        index,
        place: (Path::new("data.jsonl").into(), index),
    }
}

/// Each text is cut into a prompt and a response at its third token.
fn judge(model: &RewardModel, texts: &[Vec<u32>]) -> anyhow::Result<ModelScores> {
    let prompts: Vec<Prompt> = texts.iter().enumerate().map(|(i, ids)| prompt(&ids[..3.min(ids.len())], "", i)).collect();
    let judged = prompts.iter().zip(texts);
    let judged = judged.map(|(prompt, ids)| Judged { prompt, response: &ids[prompt.ids.len()..], conversation: None });
    model.judge(&judged.collect::<Vec<_>>())
}

fn close(a: &[f32], b: &[f32], tolerance: f32) {
    let near = a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance * b.abs().max(1.0));
    assert!(a.len() == b.len() && near, "{a:?}\n{b:?}");
}

#[test]
fn golden_scores_whatever_is_cut_off() {
    for name in cases(["qwen2_reward", "llama_reward", "gpt_neox_reward"], 1) {
        let golden_file: Value = serde_json::from_slice(&fs::read(golden(name).join("golden.json")).unwrap()).unwrap();
        let number = |value: &Value| value.as_f64().unwrap() as f32;
        let texts: Vec<Vec<u32>> = serde_json::from_value(golden_file["seqs"].clone()).unwrap();
        let expected: Vec<f32> = golden_file["logits"].as_array().unwrap().iter().map(|row| number(&row[0])).collect();
        let model = |max_length| reward_model(&golden(name), None, max_length, Cut::Sequences(2));
        let whole = judge(&model(None), &texts).unwrap();
        close(&whole.scores, &expected, 1e-4);
        assert_eq!(whole.cut, None);

        // An input longer than max_length is read up to this length, whether it ends in the response or in the prompt.
        for max in [6, 2] {
            let verdict = judge(&model(Some(max)), &texts).unwrap();
            let shortened: Vec<Vec<u32>> = texts.iter().map(|ids| ids[..max.min(ids.len())].to_vec()).collect();
            close(&verdict.scores, &judge(&model(None), &shortened).unwrap().scores, 1e-5);
            assert_eq!(verdict.cut.unwrap(), texts.iter().map(|ids| ids.len() > max).collect::<Vec<_>>());
        }
        let mut strict = model(None);
        strict.reading.positions = texts[2].len() - 1;
        let error = format!("{:#}", judge(&strict, &texts).unwrap_err());
        assert!(error.contains("row 2: ") && error.contains("reward_model.max_length=16"), "{error}");
    }
}

#[test]
fn a_score_that_is_no_number_spoils_no_other() {
    if !for_the_cpu("languages of kernels, as WGSL, promise nothing about numbers that are not finite") {
        return;
    }
    let mut model = reward_model(&golden("llama_reward"), None, None, Cut::Sequences(8));
    // The embedding of token 7 is infinite. Such a file would be refused.
    let embedding = &mut model.model.net.model.embed_tokens.weight;
    let broken = Tensor::full([1, 1], f32::INFINITY, &embedding.val().device());
    *embedding = embedding.clone().map(|weight| weight.slice_assign([7..8, 0..1], broken));
    let scores = judge(&model, &[vec![1, 2, 3, 4], vec![1, 2, 3, 7], vec![7]]).unwrap().scores;
    assert_eq!(scores.iter().map(|score| score.is_finite()).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(scores[0], judge(&model, &[vec![1, 2, 3, 4]]).unwrap().scores[0]);
}

/// A tokenizer of the same characters with other ids and its own template.
fn another_tokenizer(folder: &Path) -> Tokenizer {
    write_char_tokenizer(folder).unwrap();
    let read = |name: &str| -> Value { serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap() };
    let (mut tokenizer, mut config) = (read("tokenizer.json"), read("tokenizer_config.json"));
    let vocab = tokenizer["model"]["vocab"].as_object_mut().unwrap();
    for id in vocab.values_mut().filter(|id| id.as_u64().unwrap() >= 4) {
        *id = json!(23 - id.as_u64().unwrap());
    }
    config["chat_template"] =
        "{% for m in messages %}{{ bos_token if m.role == 'user' else ' ' }}{{ m.content }}{{ eos_token if \
                               m.role == 'assistant' }}{% endfor %}{{ '*' if add_generation_prompt }}"
            .into();
    fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    fs::write(folder.join("tokenizer_config.json"), config.to_string()).unwrap();
    Tokenizer::load(folder).unwrap()
}

fn tokenizers() -> (Tokenizer, Tokenizer, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let (own, other) = (folder.path().join("policy"), folder.path().join("reward"));
    write_char_tokenizer(&own).unwrap();
    (Tokenizer::load(&own).unwrap(), another_tokenizer(&other), folder)
}

#[test]
fn tokenizers_that_give_a_token_another_id_are_told_apart() {
    let (policy, other, _folder) = tokenizers();
    assert_eq!(policy.unknown_to(&other).as_deref(), Some("token 4 is \"0\", which is 19 there"));
    assert_eq!(policy.unknown_to(&policy), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// The bytes of a score depend only on its own text: not on its neighbours, their order, or the division into passes.
    #[test]
    fn neighbours_do_not_matter(
        texts in prop::collection::vec(prop::collection::vec(3..40u32, 3..12), 2..7),
        by_tokens in any::<bool>(), size in 1..40usize, rotate in 0..7usize,
    ) {
        if !on_cpu() {
            // On a GPU, kernels are chosen by the number of rows.
            return Ok(());
        }
        let cut = if by_tokens { Cut::Tokens(size) } else { Cut::Sequences(size) };
        let [alone, together] = [Cut::Sequences(1), cut].map(|cut| reward_model(&golden("llama_reward"), None, None, cut));
        let mut turned = texts.clone();
        // Two responses to one prompt.
        turned[0] = [&turned[1][..3], &[5, 6]].concat();
        turned.rotate_left(rotate % texts.len());
        let one_by_one: Vec<f32> = turned.iter().map(|text| judge(&alone, std::slice::from_ref(text)).unwrap().scores[0]).collect();
        prop_assert_eq!(judge(&together, &turned).unwrap().scores, one_by_one);
    }

    /// The reward model reads its own rendering of the messages and the response, for any end of the response.
    #[test]
    fn rewritten_conversations_are_the_reward_models_own(
        question in "[0-9+*=-]{1,8}", answer in "[0-9 \n]{0,6}", ended in any::<bool>(), earlier in any::<bool>(),
    ) {
        let (policy, other, folder) = tokenizers();
        let mut response = policy.encode(&answer).unwrap();
        if ended {
            response.push(policy.eos_id());
        }
        let mut messages = vec![json!({"role": "user", "content": question})];
        if earlier {
            messages.splice(0..0, [json!({"role": "user", "content": "1"}), json!({"role": "assistant", "content": "2"})]);
        }
        let earlier = if earlier { "<bos>1 2<eos>" } else { "" };
        let expected = other.encode(&format!("{earlier}<bos>{question} {answer}<eos>")).unwrap();
        prop_assert_ne!(&expected, &policy.encode(&format!("{earlier}<bos>{question} {answer}<eos>")).unwrap());
        drop(other);
        let rewriting = Rewriting { from: policy, to: Tokenizer::load(&folder.path().join("reward")).unwrap() };
        prop_assert_eq!(rewriting.ids(&messages.into(), &response).unwrap(), expected);
    }
}

/// In a conversation of several turns the reward model reads the messages, where the result of a tool has the tool's role.
#[test]
fn what_tools_said_stays_theirs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/calculator/model");
    let own = Tokenizer::load(&folder).unwrap();
    let conversation = |tokens_only: bool| -> Transcript {
        let messages = json!([
            {"role": "user", "content": "6*7="}, {"role": "assistant", "content": "?"}, {"role": "tool", "content": "42"},
            {"role": "assistant", "content": "42"}, {"role": "user", "content": "Bye."},
        ]);
        let conversation = json!({
            "messages": messages, "asked": 1, "tokens_only": tokens_only, "end": "done", "num_turns": 5, "tool_rewards": [],
            "turn_scores": [], "score": null, "extra": {},
        });
        serde_json::from_value(conversation).unwrap()
    };
    let rewriting = Rewriting { from: own.clone(), to: own.clone() };
    let say = |role: &str, text: &str| format!("<|im_start|>{role}\n{text}<|im_end|>\n");
    let expected = say("user", "6*7=") + &say("assistant", "?") + &say("tool", "42") + &say("assistant", "42");
    assert_eq!(rewriting.conversation_ids(&conversation(false)).unwrap(), own.encode(&expected).unwrap());
    assert!(rewriting.conversation_ids(&conversation(true)).unwrap_err().to_string().contains("input_tokenizer=null"));
}
