//! The ids of continued conversations, compared with verl's builders, TRL's suffixes, and transformers' renderings with tools.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use burnish::agent::tokens::{
    Continuation, ConversationTokens, SpecialTokenEscaper, continued, is_prefix_preserving, trl_suffix, writes_tools,
};
use burnish::agent::tools::schema::reduced;
use burnish::data::{Literal, TemplateVariables, Tokenizer};
use burnish::rollout::{Finish, Response};
use regex::Regex;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::cases::golden_file;

/// A file of the goldens, or of the repository if the chosen folder lacks it.
fn file(name: &str) -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let theirs = std::env::var_os("BURNISH_GOLDENS").map(|folder| Path::new(&folder).join(name));
    theirs.filter(|path| path.exists()).unwrap_or(own)
}

/// Tokenizers by template: the pythia tokenizer with the special tokens and the template of another model.
struct Tokenizers {
    all: Value,
    base: Value,
    made: HashMap<String, (Tokenizer, TempDir)>,
}

impl Tokenizers {
    fn new() -> Self {
        let base = std::fs::read(file("offline/pythia/tokenizer.json")).unwrap();
        let all = golden_file("agents/tokenizers.json");
        Self { all, base: serde_json::from_slice(&base).unwrap(), made: HashMap::new() }
    }

    /// The tokenizer of a template. Cases that do not name a rule have the rule of the template's family.
    fn get(&mut self, template: &str, name: Option<&str>) -> Tokenizer {
        if !self.made.contains_key(template) {
            let by_template = |template: &str| match template {
                "glm4moe" => "glm",
                "deepseekv3" => "deepseek",
                "gptoss" => "harmony",
                "own_header" => "header",
                "own_bracket" => "bracket",
                _ => "chatml",
            };
            let source = std::fs::read_to_string(file(&format!("agents/templates/{template}.jinja"))).unwrap();
            let made = self.make(&source, &self.all[name.unwrap_or_else(|| by_template(template))]);
            self.made.insert(template.to_owned(), made);
        }
        self.made[template].0.clone()
    }

    fn make(&self, template: &str, tokens: &Value) -> (Tokenizer, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let mut whole = self.base.clone();
        // Tokens that the tokenizer already has do not get a second id.
        let added = whole["added_tokens"].as_array_mut().unwrap();
        for token in tokens["added_tokens"].as_array().unwrap() {
            added.retain(|known| known["content"] != token["content"]);
            added.push(token.clone());
        }
        let mut config = Map::new();
        for name in ["bos_token", "eos_token", "pad_token"] {
            config.insert(name.to_owned(), tokens[name].clone());
        }
        let write = |name: &str, value: &[u8]| std::fs::write(folder.path().join(name), value).unwrap();
        write("tokenizer.json", &serde_json::to_vec(&whole).unwrap());
        write("tokenizer_config.json", &serde_json::to_vec(&config).unwrap());
        write("chat_template.jinja", template.as_bytes());
        let tokenizer = Tokenizer::load(folder.path()).unwrap();
        for token in tokens["added_tokens"].as_array().unwrap() {
            assert_eq!(json!(tokenizer.single(token["content"].as_str().unwrap()).unwrap()), token["id"], "{token}");
        }
        (tokenizer, folder)
    }
}

fn ids(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).unwrap()
}

fn numbers(value: &Value) -> Vec<f32> {
    serde_json::from_value(value.clone()).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// The variables of a case's template, with its tools.
fn variables(case: &Value) -> TemplateVariables {
    let mut all = case.get("chat_template_kwargs").and_then(Value::as_object).cloned().unwrap_or_default();
    all.insert("tools".to_owned(), case.get("tools").cloned().unwrap_or_default());
    TemplateVariables::from(&all)
}

/// The continuation of a case by verl's rule: with special tokens wherever their text appears.
fn continuation(tokenizers: &mut Tokenizers, case: &Value) -> Continuation {
    let tokenizer = tokenizers.get(case["template"].as_str().unwrap(), case["tokenizer"].as_str());
    let made = Continuation::new(tokenizer, case["model_type"].as_str().unwrap(), variables(case)).unwrap();
    made.with_literal_special_tokens(false)
}

/// Runs a case; returns the differences.
fn play(continuation: &Continuation, case: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut differs = |label: &str, is: Value, should: &Value| {
        if is != *should {
            wrong.push(format!("{label}: {is}\n is not {should}"));
        }
    };
    let mut messages = list(&case["messages"]).to_vec();
    // The prompt of gpt-oss contains a date, which is replaced by two ids.
    let prompt = if ids(&case["prompt_ids"]).len() > 2 { continuation.prompt(&messages).unwrap() } else { vec![9, 10] };
    differs("prompt", json!(prompt), &case["prompt_ids"]);
    let mut sequence = ConversationTokens::new(prompt);
    for step in list(&case["steps"]) {
        if let Some(turn) = step.get("assistant") {
            let log_probs = numbers(&step["log_probs"]);
            let rollout_log_probs = log_probs.clone();
            sequence.push_turn(&Response { ids: ids(&step["token_ids"]), log_probs, rollout_log_probs, finish: Finish::Stop });
            messages.push(turn.clone());
            continue;
        }
        let context = list(&step["context"]);
        let new = match step["rewrites_history"] == true {
            true => continued(&messages, context).map(<[Value]>::to_vec),
            false => Ok(context.to_vec()),
        };
        match (new.and_then(|new| Ok((continuation.append(&messages, &sequence.all(), &new)?, new))), step.get("error")) {
            (Ok((appended, new)), None) => {
                differs("removed", json!(appended.remove), &step["removed_prefix_tokens"]);
                let should = [ids(&step["inserted_ids"]), ids(&step["appended_ids"])].concat();
                differs("appended", json!(appended.ids), &json!(should));
                sequence.apply(&appended);
                messages.extend(new);
            }
            (Err(_), Some(_)) => break,
            (done, error) => {
                differs(
                    "step",
                    json!(done.map(|(appended, _)| appended.ids).map_err(|error| format!("{error:#}"))),
                    &json!(error),
                );
                break;
            }
        }
    }
    differs("response", json!(sequence.ids), &case["response_ids"]);
    let mask: Vec<u8> = sequence.sampled.iter().map(|&sampled| sampled.into()).collect();
    differs("mask", json!(mask), &case["response_mask"]);
    if numbers(&case["response_log_probs"]) != sequence.log_probs {
        wrong.push(format!("log-probs {:?}", sequence.log_probs));
    }
    wrong
}

#[test]
fn golden_continuations_equal_verls() {
    let mut tokenizers = Tokenizers::new();
    let goldens = golden_file("agents/concatenation_verl.json");
    let mut wrong = Vec::new();
    for case in list(&goldens["cases"]) {
        let continuation = continuation(&mut tokenizers, case);
        wrong
            .extend(play(&continuation, case).into_iter().map(|label| format!("{} {}: {label}", case["template"], case["case"])));
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), list(&goldens["cases"]).len(), wrong.join("\n"));
}

/// The families that no other file has, with our own templates (`scripts/goldens/golden_continuations.py`).
#[test]
fn golden_continuations_of_further_families_equal_verls() {
    let goldens = std::fs::read(file("agents/continuation_families.json")).unwrap();
    let goldens: Value = serde_json::from_slice(&goldens).unwrap();
    let tokenizers = Tokenizers::new();
    let mut wrong = Vec::new();
    for (family, template) in goldens["templates"].as_object().unwrap() {
        let (tokenizer, _folder) = tokenizers.make(template.as_str().unwrap(), &goldens["tokenizers"][family]);
        for case in list(&goldens["cases"]).iter().filter(|case| case["model_type"] == *family) {
            let continuation =
                Continuation::new(tokenizer.clone(), family, variables(case)).unwrap().with_literal_special_tokens(false);
            wrong.extend(play(&continuation, case).into_iter().map(|label| format!("{family} {}: {label}", case["case"])));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), list(&goldens["cases"]).len(), wrong.join("\n"));
}

#[test]
fn golden_renderings_with_tools_equal_transformers() {
    let mut tokenizers = Tokenizers::new();
    let goldens = golden_file("agents/tool_rendering.json");
    let mut wrong = Vec::new();
    for case in list(&goldens["cases"]) {
        let name = format!("{} {} {}", case["template"], case["tools_case"], case["case"]);
        let tokenizer = tokenizers.get(case["template"].as_str().unwrap(), case["tokenizer"].as_str());
        let mut with_tools = case.clone();
        with_tools["tools"] = goldens["tools"][case["tools_case"].as_str().unwrap()].clone();
        let opens = case.get("add_generation_prompt").is_none_or(|opens| *opens == true);
        let text = tokenizer.apply_chat_template(&case["messages"], opens, variables(&with_tools));
        match text {
            Ok(text) if text == case["text"] => {
                let ids = tokenizer.encode(&text).unwrap();
                let written = format!("[{}]", ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", "));
                let sum: String = Sha256::digest(written).iter().map(|byte| format!("{byte:02x}")).collect();
                if (json!(ids.len()), json!(sum)) != (case["num_tokens"].clone(), case["ids_sha256"].clone()) {
                    wrong.push(format!("{name}: {} tokens, not {}", ids.len(), case["num_tokens"]));
                }
            }
            Ok(text) => wrong.push(format!("{name}: {text:?}\n is not {}", case["text"])),
            Err(error) if case.get("error").is_none() => wrong.push(format!("{name}: {error:#}")),
            Err(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), list(&goldens["cases"]).len(), wrong.join("\n"));
}

#[test]
fn golden_suffixes_equal_trls() {
    let mut tokenizers = Tokenizers::new();
    let goldens = golden_file("agents/loop_trl.json");
    let none = TemplateVariables::default();
    for case in list(&goldens["suffixes"]) {
        let tokenizer = tokenizers.get(case["template"].as_str().unwrap(), case["tokenizer"].as_str());
        assert_eq!(
            trl_suffix(&tokenizer, &none, list(&case["tool_messages"]), None).unwrap(),
            ids(&case["suffix_ids"]),
            "{case}"
        );
    }
    for case in list(&goldens["templates"]) {
        let tokenizer = tokenizers.get(case["template"].as_str().unwrap(), case["tokenizer"].as_str());
        assert_eq!(json!(is_prefix_preserving(&tokenizer, &none).unwrap()), case["prefix_preserving"], "{case}");
        assert_eq!(json!(writes_tools(&tokenizer, &none)), case["supports_tool_calling"], "{case}");
    }
}

#[test]
fn golden_narrowed_schemas_equal_verls() {
    for case in list(&golden_file("agents/function_schemas.json")["tool_configs"]) {
        let config: Value = serde_yaml::from_str(case["yaml"].as_str().unwrap()).unwrap();
        for (tool, should) in list(&config["tools"]).iter().zip(list(&case["schemas"])) {
            match reduced(&tool["tool_schema"]) {
                Ok(schema) => assert_eq!(schema.to_string(), should.to_string()),
                Err(error) => assert!(should.get("raises").is_some(), "{error:#}: {should}"),
            }
        }
    }
}

/// The text of a tool is never a special token, and all other text has the same tokens as without it; by verl's rule and by
/// TRL's.
#[test]
fn control_tokens_in_answers_are_text() {
    let mut tokenizers = Tokenizers::new();
    let goldens = golden_file("agents/concatenation_verl.json");
    let mut compared = 0;
    for case in list(&goldens["cases"]).iter().filter(|case| case["case"] == "tool_once") {
        let as_verl = continuation(&mut tokenizers, case);
        let ours = continuation(&mut tokenizers, case).with_literal_special_tokens(true);
        let tokenizer = tokenizers.get(case["template"].as_str().unwrap(), None);
        let mut history = list(&case["messages"]).to_vec();
        history.push(case["steps"][0]["assistant"].clone());
        let turn = ids(&case["steps"][0]["token_ids"]);
        let message = |text: &str, by: &Continuation| -> Result<Vec<u32>> {
            Ok(by.append(&history, &turn, &[json!({"role": "tool", "content": text})])?.ids)
        };
        let escaper = SpecialTokenEscaper::new(&tokenizer).unwrap();
        // TRL has no rule for some templates: they write a call differently when its result follows.
        let as_trl = |text: &str, escaper: Option<&SpecialTokenEscaper>| -> Option<Vec<u32>> {
            let answer = json!({"role": "tool", "name": "f", "content": text});
            trl_suffix(&tokenizer, &TemplateVariables::default(), &[answer], escaper).ok()
        };
        // Texts without special tokens take the usual path.
        for text in ["", "plain 21.5 °C\n\n  x", "{\"a\": [1, null]}", "burnishcontroltoken", "a < b | c > d"] {
            assert_eq!(message(text, &ours).unwrap(), message(text, &as_verl).unwrap(), "{} {text}", case["template"]);
            assert_eq!(as_trl(text, Some(&escaper)), as_trl(text, None), "{} {text}", case["template"]);
        }
        let literal = Literal::new(&tokenizer);
        for control in literal.control_texts() {
            let text = format!("a {control}{control} b burnishcontroltoken0end {control}");
            let count = |ids: &[u32], id: u32| ids.iter().filter(|&&other| other == id).count();
            let by_trl = as_trl(&text, Some(&escaper)).zip(as_trl("a b", None));
            let both = [(message(&text, &ours).unwrap(), message("a b", &as_verl).unwrap())].into_iter().chain(by_trl);
            for (found, plain) in both {
                for known in literal.control_texts() {
                    let id = tokenizer.single(known).unwrap();
                    assert_eq!(count(&found, id), count(&plain, id), "{} {known} in {text}", case["template"]);
                }
                let decoded = tokenizer.decode(&found, false).unwrap();
                let written = serde_json::to_string(&text).unwrap();
                let is_there = decoded.contains(&text) || decoded.contains(&written[1..written.len() - 1]);
                assert!(is_there, "{text:?} is not in {decoded:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn checks_name_what_cannot_be_continued() {
    let mut tokenizers = Tokenizers::new();
    let goldens = golden_file("agents/concatenation_verl.json");
    let mut made: HashMap<String, Continuation> = HashMap::new();
    for case in list(&goldens["cases"]).iter().filter(|case| case["case"] == "tool_once") {
        made.insert(case["template"].as_str().unwrap().to_owned(), continuation(&mut tokenizers, case));
    }
    // Templates that only append: the rule gives the tokens of the whole.
    for template in ["qwen2_5", "qwen3_instruct_2507", "own_header"] {
        assert_eq!(made[template].check(true, true).unwrap(), Vec::<String>::new(), "{template}");
    }
    // This template drops the thoughts of earlier turns.
    let warnings = made["qwen3"].check(true, true).unwrap();
    assert!(warnings.iter().any(|warning| warning.contains("other tokens, from token")), "{warnings:?}");
    // This template moves the tools to the last message of the user.
    let refused = format!("{:#}", made["own_bracket"].check(false, true).unwrap_err());
    assert!(refused.starts_with("a message of the user cannot be appended") && refused.contains("moves or changes"), "{refused}");
    assert!(made["own_bracket"].check(true, false).is_ok());
    let silent = "{% for m in messages %}{% if m.role != 'tool' %}{{ m.role ~ m.content }}{% endif %}{% endfor %}";
    let folder = tokenizers.made["qwen2_5"].1.path();
    let silent = Tokenizer::load_with_template(folder, Some(silent)).unwrap();
    let silent = Continuation::new(silent, "llama", TemplateVariables::default()).unwrap();
    let refused = format!("{:#}", silent.check(true, false).unwrap_err());
    assert!(refused.contains("leaves out"), "{refused}");
}

/// Templates without a system message or two user messages in a row, like Gemma's, are continued too.
#[test]
fn templates_of_alternating_roles_are_continued() {
    let mut tokenizers = Tokenizers::new();
    tokenizers.get("qwen2_5", None);
    let strict = "{{ '<|im_start|>' }}{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}\
                  {{ raise_exception('roles must alternate') }}{% endif %}{{ m.role ~ ':' ~ m.content ~ '<|im_end|>\n' }}{% endfor %}\
                  {% if add_generation_prompt %}assistant:{% endif %}";
    let strict = Tokenizer::load_with_template(tokenizers.made["qwen2_5"].1.path(), Some(strict)).unwrap();
    let continuation = Continuation::new(strict.clone(), "qwen2", TemplateVariables::default()).unwrap();
    assert_eq!(continuation.check(false, true).unwrap(), Vec::<String>::new());
    assert!(format!("{:#}", continuation.check(true, false).unwrap_err()).contains("roles must alternate"));
    let message = |role: &str| json!({"role": role, "content": role});
    let end = strict.encode("<|im_end|>").unwrap();
    let appended = continuation.append(&[message("user"), message("assistant")], &end, &[message("user")]).unwrap();
    assert_eq!(strict.decode(&appended.ids, false).unwrap(), "\nuser:user<|im_end|>\nassistant:");
}

/// Families whose published template gives the tokens of a whole conversation when messages are appended: the template's file, the
/// family, the token that ends a turn, and whether results of tools are appended too.
const PUBLISHED: &[(&str, &str, &str, bool)] = &[
    ("qwen3-2507", "qwen3_next", "<|im_end|>", true),
    ("qwen3-coder", "qwen3_moe", "<|im_end|>", true),
    ("smollm3", "smollm3", "<|im_end|>", true),
    ("olmo3", "olmo3", "<|im_end|>", false),
    ("granite3.3", "granite", "<|end_of_text|>", false),
    ("granite4.0", "granite", "<|end_of_text|>", true),
    ("granite4.1", "granite", "<|end_of_text|>", true),
    ("seed-oss", "seed_oss", "<seed:eos>", true),
    ("ministral3", "ministral3", "</s>", false),
];

#[test]
fn published_templates_are_continued() {
    let tokenizers = Tokenizers::new();
    let named = Regex::new(r"<[|][^<>|]+[|]>|</?s(?:eed:[a-z]+)?>|\[/?[A-Z_]+\]").unwrap();
    for (template, model_type, end, tools) in PUBLISHED {
        let source = std::fs::read_to_string(file(&format!("chat-templates/{template}.jinja"))).unwrap();
        let special: BTreeSet<&str> = named
            .find_iter(&source)
            .map(|found| found.as_str())
            .chain([*end, "<s>"])
            .filter(|token| *token != "<|endoftext|>")
            .collect();
        let token = |(i, content): (usize, &str)| {
            json!({"id": 50_278 + i, "content": content, "special": true, "normalized": false, "lstrip": false, "rstrip": false,
                   "single_word": false})
        };
        let added: Vec<Value> = special.into_iter().enumerate().map(token).collect();
        let tokens = json!({"added_tokens": added, "bos_token": "<s>", "eos_token": end, "pad_token": null});
        let (tokenizer, _folder) = tokenizers.make(&source, &tokens);
        let continuation = Continuation::new(tokenizer.clone(), model_type, TemplateVariables::default()).unwrap();
        assert_eq!(
            continuation.check(*tools, true).map_err(|e| format!("{template}: {e:#}")).unwrap(),
            Vec::<String>::new(),
            "{template}"
        );
        // Without a family, a newline after the end is missing.
        let text = tokenizer.apply_chat_template(
            &json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]),
            true,
            TemplateVariables::default(),
        );
        let plain = Continuation::new(tokenizer, "unknown", TemplateVariables::default()).unwrap();
        let newline = text.unwrap().contains(&format!("b{end}\n"));
        assert_eq!(plain.check(false, true).unwrap().is_empty(), !newline, "{template}");
    }
}

/// Several threads share one tokenizer, and no thread changes the result of another.
#[test]
fn continuations_are_shared() {
    let mut tokenizers = Tokenizers::new();
    let goldens = golden_file("agents/concatenation_verl.json");
    let case = Arc::new(list(&goldens["cases"]).iter().find(|case| case["case"] == "named_results").unwrap().clone());
    let continuation = continuation(&mut tokenizers, &case);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..20).for_each(|_| assert_eq!(play(&continuation, &case), Vec::<String>::new())));
        }
    });
}
