//! Chat templates against transformers, byte by byte: the published ones of `tests/golden/chat-templates/`, and our own with
//! features that other templates are known to use (`chat-templates.json`, written by `scripts/goldens/golden_chat_templates.py`).
//! Also tokenizer folders in transformers' variants, id by id (`tokenizers/`, written by `scripts/goldens/golden_tokenizers.py`).

use std::fs;
use std::path::{Path, PathBuf};

use burnish::data::Tokenizer;
use burnish::data::chat::ChatTemplate;
use serde_json::{Map, Value, json};

/// The rendered text, or the error.
fn render(template: &ChatTemplate, conversation: &Value, prompt: bool) -> Result<String, String> {
    let kwargs = conversation.get("kwargs").and_then(Value::as_object).cloned().unwrap_or_default();
    template.render(&conversation["messages"], prompt, &kwargs).map_err(|e| format!("{e:#}"))
}

/// Today's date in a template's format.
fn today(format: &str) -> String {
    let source = format!("{{{{ strftime_now({format:?}) }}}}");
    let template = ChatTemplate::new(Some(&source), Map::new()).unwrap();
    render(&template, &json!({"messages": [{"role": "user", "content": ""}]}), false).unwrap()
}

/// Replaces `«FORMAT»`, which the goldens hold in place of a date, by today's date.
fn dated(text: &str) -> String {
    let mut parts = text.split('«');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (format, rest) = part.split_once('»').unwrap();
        out.push_str(&today(format));
        out.push_str(rest);
    }
    out
}

/// The difference between a rendering and the expected text, if any. An error raised by a template must appear verbatim.
fn difference(actual: &Result<String, String>, expected: &Value) -> Option<String> {
    match (actual, expected.get("text").and_then(Value::as_str)) {
        (Ok(text), Some(expected)) => (*text != dated(expected)).then(|| format!("{text:?}\n is not\n{:?}", dated(expected))),
        (Err(error), None) => {
            let raised = expected["error"].as_str().unwrap_or_default();
            (!error.contains(raised)).then(|| format!("the error {error:?} does not say {raised:?}"))
        }
        (Ok(_), None) if expected["may_render"] == true => None,
        (Ok(text), None) => Some(format!("{text:?} must be an error: {}", expected["error"])),
        (Err(error), Some(expected)) => Some(format!("{error:?} instead of {expected:?}")),
    }
}

/// The folder of the goldens. If another folder is set and lacks this name, the repository's goldens are compared.
fn goldens(name: &str) -> PathBuf {
    let other = std::env::var_os("BURNISH_GOLDENS").map(PathBuf::from).filter(|other| other.join(name).exists());
    other.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden"))
}

/// Compares all cases, so that a failure shows every difference.
#[test]
fn golden_chat_templates_match_transformers() {
    let text = fs::read_to_string(goldens("chat-templates.json").join("chat-templates.json")).unwrap();
    let golden: Value = serde_json::from_str(&text).unwrap();
    let folder = goldens("chat-templates.json").join("chat-templates");
    let (mut compared, mut wrong) = (0, Vec::new());
    for (name, of_template) in golden["templates"].as_object().unwrap() {
        let own = |source: &Value| source.as_str().unwrap().to_owned();
        let file = || fs::read_to_string(folder.join(format!("{name}.jinja"))).unwrap();
        let source = of_template.get("source").map_or_else(file, own);
        let template = match ChatTemplate::new(Some(&source), golden["tokens"].as_object().unwrap().clone()) {
            Ok(template) => template,
            Err(error) => {
                wrong.push(format!("{name}: {error:#}"));
                continue;
            }
        };
        for (case, expected) in of_template["cases"].as_object().unwrap() {
            let plain = &expected["plain"];
            let prompted = match expected.get("added").and_then(Value::as_str) {
                Some(added) => json!({"text": plain["text"].as_str().unwrap().to_owned() + added}),
                None => expected.get("prompted").unwrap_or(plain).clone(),
            };
            for (prompt, expected) in [(false, plain), (true, &prompted)] {
                let compare = || difference(&render(&template, &golden["conversations"][case], prompt), expected);
                compared += 1;
                // Midnight can pass between the two dates once, but not twice.
                let label = compare().and_then(|_| compare());
                wrong.extend(label.map(|label| format!("{name}, {case}, prompt {prompt}: {label}")));
            }
        }
    }
    assert!(compared > 0);
    assert!(wrong.is_empty(), "{} of {compared} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Jinja reads every line end of a template as a newline, also within quoted text: the rendering is the same with all of them.
#[test]
fn golden_chat_templates_are_the_same_with_every_line_end() {
    let folder = goldens("chat-templates.json").join("chat-templates");
    let golden: Value =
        serde_json::from_str(&fs::read_to_string(goldens("chat-templates.json").join("chat-templates.json")).unwrap()).unwrap();
    let tokens = golden["tokens"].as_object().unwrap();
    let mut sources: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| fs::read_to_string(path).ok())
        .collect();
    sources
        .extend(golden["templates"].as_object().unwrap().values().filter_map(|of| Some(of.get("source")?.as_str()?.to_owned())));
    sources.push("<u>\n{{ messages[0].content }}\n{% if true %}\nA\n{% endif %}\n{{ 'a\nb' }}{{ 'c\\r\\nd' }}\n".to_owned());
    let mut compared = 0;
    for source in sources {
        let made = |source: &str| ChatTemplate::new(Some(source), tokens.clone()).unwrap();
        let plain = made(&source);
        for ends in ["\r\n", "\r"] {
            let other = made(&source.replace('\n', ends));
            for (case, conversation) in golden["conversations"].as_object().unwrap() {
                for prompt in [false, true] {
                    let same = || render(&plain, conversation, prompt) == render(&other, conversation, prompt);
                    assert!(same() || same(), "{case}, {ends:?}:\n{source}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 0);
    let template = ChatTemplate::new(Some("a\r\nb\r{{ 'c\rd' }}{{ 'e\\r\\nf' }}\r\n"), Map::new()).unwrap();
    assert_eq!(render(&template, &json!({"messages": [{"role": "user", "content": ""}]}), false).unwrap(), "a\nb\nc\nde\r\nf");
}

/// The result is the same for every place of a template.
#[test]
fn line_ends_are_newlines_wherever_a_template_is_read() {
    let source = "{{ messages[0].content }}\r\nb\r{{ 'c\r\nd' }}\r\n";
    for place in ["chat_template.jinja", "additional_chat_templates/default.jinja", "tokenizer_config.json", "given"] {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(goldens("tokenizers").join("tokenizers/usual/tokenizer.json"), folder.path().join("tokenizer.json")).unwrap();
        fs::create_dir(folder.path().join("additional_chat_templates")).unwrap();
        let named = if place == "tokenizer_config.json" { json!(source) } else { Value::Null };
        let config = json!({"eos_token": "<eos>", "chat_template": named});
        fs::write(folder.path().join("tokenizer_config.json"), config.to_string()).unwrap();
        if place.ends_with(".jinja") {
            fs::write(folder.path().join(place), source).unwrap();
        }
        let tokenizer = Tokenizer::load_with_template(folder.path(), (place == "given").then_some(source)).unwrap();
        let messages = json!([{"role": "user", "content": "a\r\n"}]);
        let text = tokenizer.apply_chat_template(&messages, false, &Map::new()).unwrap();
        assert_eq!(text, "a\r\n\nb\nc\nd", "{place}");
    }
}

/// Methods, operators, filters and tests of Python and Jinja in templates (`template-python.json`, written by
/// `scripts/goldens/golden_template_python.py`).
#[test]
fn golden_expressions_of_templates_match_transformers() {
    let golden = fs::read_to_string(goldens("template-python.json").join("template-python.json")).unwrap();
    let golden: Value = serde_json::from_str(&golden).unwrap();
    let messages = json!({"messages": [{"role": "user", "content": "hi"}]});
    let mut wrong = Vec::new();
    for (expression, expected) in golden.as_object().unwrap() {
        let template = ChatTemplate::new(Some(&format!("{{{{ {expression} }}}}")), Map::new());
        let text = template.map_err(|error| format!("{error:#}")).and_then(|template| render(&template, &messages, false));
        if text.as_deref().ok() != expected.as_str() {
            wrong.push(format!("{expression}: {text:?}, transformers has {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), golden.as_object().unwrap().len(), wrong.join("\n"));
}

/// The differences in one folder: ids of texts, texts of ids, special ids, and the tokens in a template's variables.
fn differences(folder: &Path) -> anyhow::Result<Vec<String>> {
    let golden: Value = serde_json::from_str(&fs::read_to_string(folder.join("expected.json"))?)?;
    let tokenizer = Tokenizer::load(folder)?;
    let mut wrong = Vec::new();
    let mut compare = |label: &str, actual: Value, expected: &Value| {
        if actual != *expected {
            wrong.push(format!("{label}: {actual}, transformers has {expected}"));
        }
    };
    for case in golden["cases"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        compare(&format!("ids of {text:?}"), json!(tokenizer.encode(text)?), &case["ids"]);
        compare(&format!("ids of the plain text {text:?}"), json!(tokenizer.encode_plain(text)?), &case["plain"]);
    }
    for case in golden["decoded"].as_array().unwrap() {
        let ids: Vec<u32> = serde_json::from_value(case["ids"].clone())?;
        compare(&format!("text of {ids:?}"), json!(tokenizer.decode(&ids, false)?), &case["all"]);
        compare(&format!("text of {ids:?} without special tokens"), json!(tokenizer.decode(&ids, true)?), &case["skipped"]);
    }
    let size = golden["size"].as_u64().unwrap() as u32;
    let known = golden["special"].as_array().unwrap();
    let special: Vec<u32> = (0..size).filter(|id| tokenizer.is_special(*id) && !tokenizer.eos_ids().contains(id)).collect();
    let expected: Vec<&Value> = known.iter().filter(|id| !tokenizer.eos_ids().iter().any(|eos| json!(eos) == **id)).collect();
    compare("special tokens", json!(special), &json!(expected));
    compare("tokens", json!(tokenizer.vocab_size()), &golden["size"]);
    if !golden["eos"].is_null() {
        compare("the end", json!(tokenizer.eos_id()), &golden["eos"]);
    }
    let tokens = golden["tokens"].as_object().unwrap();
    let template: String = tokens.keys().map(|name| format!("{{{{ {name} }}}}|")).collect();
    let texts: String = tokens.values().map(|text| format!("{}|", text.as_str().unwrap())).collect();
    let seen = Tokenizer::load_with_template(folder, Some(&template))?;
    let seen = seen.apply_chat_template(&json!([{"role": "user", "content": ""}]), false, &Map::new())?;
    compare("tokens in a template", json!(seen), &json!(texts));
    Ok(wrong)
}

/// Compares special and added tokens of every file next to tokenizer.json, their flags, and the tokens put around a text.
#[test]
fn golden_tokenizers_match_transformers() {
    let folder = goldens("tokenizers").join("tokenizers");
    let mut folders: Vec<PathBuf> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    let (mut wrong, mut differ) = (Vec::new(), 0);
    for folder in &folders {
        let found = differences(folder).unwrap_or_else(|error| vec![format!("{error:#}")]);
        differ += usize::from(!found.is_empty());
        let name = folder.file_name().unwrap().display();
        wrong.extend(found.iter().map(|label| format!("{name}: {label}")));
    }
    assert!(!folders.is_empty());
    assert!(wrong.is_empty(), "{differ} of {} folders differ:\n{}", folders.len(), wrong.join("\n"));
}
