//! The data layer through its public interface: files in, prompts and examples out.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, Float64Array, Int64Array, ListBuilder, RecordBatch, StringArray};
use burnish::data::chat::ChatTemplate;
use burnish::data::prepare::{self, PrepareArgs, char_tokenizer::write_char_tokenizer};
use burnish::data::rows::read_rows;
use burnish::data::table::write_batches;
use burnish::data::{
    Prompt, PromptOptions, RowNeeds, Sampler, SftColumns, SftOptions, Table, TemplateDate, Tokenizer, Truncation, load_prompts,
    load_sft, take_samples,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde_json::{Map, Value, json};

fn char_tokenizer(folder: &Path) -> Tokenizer {
    write_char_tokenizer(folder).unwrap();
    Tokenizer::load(folder).unwrap()
}

fn options() -> PromptOptions {
    PromptOptions {
        prompt_key: "prompt".into(),
        reward_fn_key: "data_source".into(),
        max_prompt_length: 16,
        truncation: Truncation::Error,
        filter_overlong_prompts: false,
        needs: RowNeeds { data_source: true, ground_truth: true, columns: false, prompt_text: false },
        chat_kwargs: Map::new(),
    }
}

fn answer(key: &str) -> SftColumns {
    SftColumns::Response {
        prompt_key: "extra_info".into(),
        prompt_dict_keys: vec!["question".into()],
        response_key: "extra_info".into(),
        response_dict_keys: vec![key.into()],
    }
}

fn sft_options() -> SftOptions {
    SftOptions { columns: answer("answer"), max_length: 16, truncation: Truncation::Error, chat_kwargs: Map::new() }
}

fn row(prompt: &str) -> Value {
    json!({"data_source": "s", "prompt": [{"role": "user", "content": prompt}], "reward_model": {"ground_truth": "1"}})
}

fn jsonl(folder: &Path, rows: &[Value]) -> Vec<PathBuf> {
    let path = folder.join("rows.jsonl");
    fs::write(&path, rows.iter().map(|row| format!("{row}\n")).collect::<String>()).unwrap();
    vec![path]
}

fn settings(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

fn error<T>(result: anyhow::Result<T>) -> String {
    format!("{:#}", result.err().expect("an error"))
}

#[test]
fn gsm8k_becomes_verl_rows() {
    let folder = tempfile::tempdir().unwrap();
    let line = json!({"question": "How many?", "answer": "So 1,000 + <<234>>234.\n#### 1,234"});
    for split in ["train", "test"] {
        fs::write(folder.path().join(format!("{split}.jsonl")), format!("{line}\n\n{line}\n")).unwrap();
    }
    let output = folder.path().join("out");
    let args = PrepareArgs { input: Some(folder.path().into()), output: output.clone(), settings: vec![] };
    let report = (prepare::find("gsm8k").unwrap().run)(&args).unwrap();
    assert_eq!(report.files, [(output.join("train.parquet"), 2), (output.join("test.parquet"), 2)]);
    assert_eq!(fs::read_dir(&output).unwrap().count(), 2, "temporary files are left");

    let columns = ["data_source", "prompt", "ability", "reward_model", "extra_info"];
    let rows = read_rows(&[output.join("test.parquet"), output.join("train.parquet")], &columns, &[]).unwrap();
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[3].place(), format!("{}, row 1", output.join("train.parquet").display()));
    let expected = json!({
        "data_source": "openai/gsm8k",
        "prompt": [{"role": "user", "content":
            "How many? Let's think step by step and output the final answer after \"####\"."}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": "1234"},
        "extra_info": {"split": "test", "index": 1, "question": line["question"], "answer": line["answer"]},
    });
    assert_eq!(Value::Object(rows[1].values.clone()), expected);
}

#[test]
fn arithmetic_is_distinct_disjoint_and_repeatable() {
    let folder = tempfile::tempdir().unwrap();
    let pairs = [("train", "150"), ("test", "50"), ("max_operand", "9"), ("ops", "+-"), ("seed", "5")];
    let make = |name: &str| {
        let output = folder.path().join(name);
        let args = PrepareArgs { input: None, output: output.clone(), settings: settings(&pairs) };
        (prepare::find("arithmetic").unwrap().run)(&args).unwrap();
        output
    };
    let (a, b) = (make("a"), make("b"));
    for file in ["train.parquet", "test.parquet", "tokenizer/tokenizer.json", "tokenizer/tokenizer_config.json"] {
        assert_eq!(fs::read(a.join(file)).unwrap(), fs::read(b.join(file)).unwrap(), "{file}");
    }
    let tokenizer = Tokenizer::load(&a.join("tokenizer")).unwrap();
    let prompts = load_prompts(&[a.join("train.parquet"), a.join("test.parquet")], &tokenizer, &options()).unwrap();
    let mut texts: Vec<&str> = prompts.iter().map(|prompt| prompt.text.as_str()).collect();
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), 200, "these options ask for every problem that exists");
    for Prompt { ids, text, ground_truth, data_source, .. } in &prompts {
        let at = text.find(['+', '-']).unwrap();
        let number = |t: &str| t.parse::<i64>().unwrap();
        let (left, right) = (number(&text[..at]), number(text[at + 1..].strip_suffix('=').unwrap()));
        let result = if &text[at..=at] == "+" { left + right } else { left - right };
        assert_eq!((ground_truth, data_source.as_str()), (&json!(result.to_string()), "burnish/arithmetic"));
        assert_eq!(ids.len(), text.len());
    }
    let run = |pairs: &[(&str, &str)]| {
        let args = PrepareArgs { input: None, output: a.clone(), settings: settings(pairs) };
        error((prepare::find("arithmetic").unwrap().run)(&args))
    };
    assert!(run(&[("max_operand", "3")]).contains("only 16 exist"));
    assert!(run(&[("max_operands", "3")]).contains("Did you mean \"max_operand\"?"));
}

#[test]
fn char_tokenizer_round_trips() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = char_tokenizer(folder.path());
    let text = "37+58=95\n-4 * 2";
    let ids = tokenizer.encode(text).unwrap();
    assert_eq!(ids.len(), text.len());
    assert_eq!(tokenizer.decode(&ids, true).unwrap(), text);
    assert_eq!((tokenizer.eos_ids(), tokenizer.vocab_size()), ([2].as_slice(), 20));
    let with_specials = [ids.as_slice(), &[2, 0]].concat();
    assert_eq!(tokenizer.decode(&with_specials, true).unwrap(), text);
    assert_eq!(tokenizer.decode(&with_specials, false).unwrap(), format!("{text}<eos><pad>"));
    assert_eq!(tokenizer.encode("é<eos>").unwrap(), [3, 2]);
    assert_eq!(tokenizer.files().len(), 2);
}

#[test]
fn tokenizer_folders_name_their_ends() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, value: Value| fs::write(folder.path().join(name), value.to_string()).unwrap();
    char_tokenizer(folder.path());
    write(
        "tokenizer_config.json",
        json!({"eos_token": {"content": "<eos>"}, "chat_template": [
        {"name": "tool_use", "template": "no"}, {"name": "default", "template": "{{ eos_token }}"}]}),
    );
    write("generation_config.json", json!({"eos_token_id": [1, 2]}));
    let tokenizer = Tokenizer::load(folder.path()).unwrap();
    assert_eq!((tokenizer.eos_id(), tokenizer.eos_ids()), (2, [1, 2].as_slice()));
    let message = json!([{"role": "user", "content": "1"}]);
    assert_eq!(tokenizer.apply_chat_template(&message, true, &Map::new()).unwrap(), "<eos>");
    fs::write(folder.path().join("chat_template.jinja"), "from the file").unwrap();
    let tokenizer = Tokenizer::load(folder.path()).unwrap();
    assert_eq!(tokenizer.apply_chat_template(&message, true, &Map::new()).unwrap(), "from the file");

    // All ids of generation_config.json end a generation, those of config.json only where it has none, and only special ones.
    for (generation, model, expected) in [
        (json!([1, 0]), json!(5), [0, 1, 2].as_slice()),
        (json!(1), json!([0]), &[1, 2]),
        (Value::Null, json!([0, 5, 1]), &[0, 1, 2]),
        (Value::Null, json!(99), &[2]),
    ] {
        write("generation_config.json", json!({"eos_token_id": generation}));
        write("config.json", json!({"eos_token_id": model}));
        let tokenizer = Tokenizer::load(folder.path()).unwrap();
        assert_eq!((tokenizer.eos_id(), tokenizer.eos_ids()), (2, expected));
    }
    write("config.json", json!({"eos_token_id": "x"}));
    assert!(error(Tokenizer::load(folder.path())).contains("config.json: eos_token_id must be a token id or a list"));
    fs::remove_file(folder.path().join("config.json")).unwrap();

    write("generation_config.json", json!({"eos_token_id": 20}));
    assert!(error(Tokenizer::load(folder.path())).contains("eos_token_id 20 is not in tokenizer.json"));
    // A token that tokenizer.json does not have gets the next id, which a model need not have a row for.
    write("tokenizer_config.json", json!({"eos_token": "<end>"}));
    write("generation_config.json", json!({"eos_token_id": 2}));
    let tokenizer = Tokenizer::load(folder.path()).unwrap();
    assert_eq!((tokenizer.eos_id(), tokenizer.eos_ids(), tokenizer.vocab_size()), (20, [2, 20].as_slice(), 21));
    assert_eq!(tokenizer.new_tokens().as_deref(), Some("\"<end>\" is 20"));
    fs::remove_file(folder.path().join("tokenizer.json")).unwrap();
    assert!(error(Tokenizer::load(folder.path())).contains("has no tokenizer.json"));
}

/// A model's generation_config.json counts though the tokenizer is in another folder, and travels with it.
#[test]
fn a_tokenizer_elsewhere_ends_where_its_model_does() {
    let (folder, model) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let write = |folder: &Path, ids: Value| {
        fs::write(folder.join("generation_config.json"), json!({"eos_token_id": ids}).to_string()).unwrap();
    };
    let load = || char_tokenizer(folder.path()).with_ends_of(model.path());
    assert_eq!(load().unwrap().eos_ids(), [2]);
    write(model.path(), json!([7, 1]));
    let tokenizer = load().unwrap();
    assert_eq!((tokenizer.eos_id(), tokenizer.eos_ids()), (2, [1, 2, 7].as_slice()));
    assert_eq!((tokenizer.stop_ids(false, &[9]), tokenizer.stop_ids(true, &[9])), (vec![1, 2, 7, 9], vec![9]));
    assert!(tokenizer.is_special(7) && tokenizer.files().contains(&model.path().join("generation_config.json")));
    write(model.path(), json!(20));
    assert!(error(load()).contains("eos_token_id 20 is not in tokenizer.json"));
    write(folder.path(), json!(0));
    assert_eq!(load().unwrap().eos_ids(), [0, 2]);
}

/// A char tokenizer that puts `<bos>` before every text.
fn beginning_tokenizer(folder: &Path) {
    char_tokenizer(folder);
    let path = folder.join("tokenizer.json");
    let mut json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    json["post_processor"] = json!({
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<bos>": {"id": "<bos>", "ids": [1], "tokens": ["<bos>"]}},
    });
    fs::write(&path, json.to_string()).unwrap();
}

/// A tokenizer that puts `<bos>` before every text leaves that to the template where there is one, as transformers, vLLM and TRL do.
#[test]
fn the_first_token_is_the_templates_or_the_tokenizers() {
    let folder = tempfile::tempdir().unwrap();
    beginning_tokenizer(folder.path());
    let source = "{{ bos_token }}{{ messages[0].content }}";
    let tokenizer = Tokenizer::load_with_template(folder.path(), Some(source)).unwrap();
    let files =
        jsonl(folder.path(), &[row("1+2="), json!({"prompt": "1+2=", "data_source": "s", "reward_model": {"ground_truth": ""}})]);
    let prompts = load_prompts(&files, &tokenizer, &options()).unwrap();
    let texts = prompts.iter().map(|prompt| tokenizer.decode(&prompt.ids, false).unwrap()).collect::<Vec<_>>();
    assert_eq!(texts, ["<bos>1+2=", "<bos>1+2="]);
    assert_eq!(prompts[1].text, "1+2=");
    // It counts: seven characters and the first token.
    let files = jsonl(folder.path(), &[json!({"prompt": "1234567", "data_source": "s", "reward_model": {"ground_truth": ""}})]);
    let short = PromptOptions { max_prompt_length: 7, ..options() };
    assert!(error(load_prompts(&files, &tokenizer, &short)).contains("the prompt has 8 tokens"));
}

/// transformers' names, places and precedence of chat templates.
#[test]
fn chat_templates_have_names_and_places() {
    let folder = tempfile::tempdir().unwrap();
    char_tokenizer(folder.path());
    let more = folder.path().join("additional_chat_templates");
    let write = |path: &Path, text: &str| fs::write(path, text).unwrap();
    let config = |template: Value| {
        write(&folder.path().join("tokenizer_config.json"), &json!({"eos_token": "<eos>", "chat_template": template}).to_string())
    };
    let text = |tools: Value| -> anyhow::Result<String> {
        let kwargs = json!({"tools": tools}).as_object().unwrap().clone();
        Tokenizer::load(folder.path())?.apply_chat_template(&json!([{"role": "user", "content": "1"}]), true, &kwargs)
    };
    let both = |tools: Value| (text(json!(null)).unwrap(), text(tools).unwrap());
    let named =
        json!([{"name": "default", "template": "default"}, {"name": "tool_use", "template": "tools {{ tools | length }}"}]);
    config(named.clone());
    assert_eq!(both(json!([1, 2])), ("default".into(), "tools 2".into()));
    assert_eq!(text(json!([])).unwrap(), "tools 0", "an empty list is one");
    config(json!({"default": "of an object", "rag": "no"}));
    assert_eq!(both(json!([1])), ("of an object".into(), "of an object".into()));
    config(json!([{"name": "tool_use", "template": "tools"}, {"name": "rag", "template": "no"}]));
    assert!(error(text(json!(null))).contains("under names (rag, tool_use), and none is called \"default\""));
    assert_eq!(text(json!([1])).unwrap(), "tools");
    // Files come before tokenizer_config.json, all of them.
    config(named);
    fs::create_dir(&more).unwrap();
    write(&more.join("tool_use.jinja"), "of a file {{ eos_token }}");
    assert_eq!(text(json!([1])).unwrap(), "of a file <eos>");
    assert!(error(text(json!(null))).contains("none is called \"default\""));
    write(&folder.path().join("chat_template.jinja"), "main");
    assert_eq!(both(json!([1])), ("main".into(), "of a file <eos>".into()));
    // They travel with the model, but for a template in their place.
    let names = |template| {
        let tokenizer = Tokenizer::load_with_template(folder.path(), template).unwrap();
        tokenizer.files().iter().map(|file| file.file_name().unwrap().to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let usual = ["tokenizer.json", "tokenizer_config.json"];
    assert_eq!(names(None), [&usual[..], &["chat_template.jinja", "additional_chat_templates"]].concat());
    assert_eq!(names(Some("own")), usual);
    let target = tempfile::tempdir().unwrap();
    burnish::util::copy::copy_into(&more, target.path()).unwrap();
    assert_eq!(
        fs::read_to_string(target.path().join("additional_chat_templates/tool_use.jinja")).unwrap(),
        "of a file {{ eos_token }}"
    );
    write(&more.join("tool_use.jinja"), "{% if");
    assert!(error(text(json!(null))).contains("the chat template \"tool_use\""));
}

/// Parts of a content are what the template expects: parts, or one text; and nothing but text.
#[test]
fn contents_in_parts_are_text() {
    let folder = tempfile::tempdir().unwrap();
    char_tokenizer(folder.path());
    let plain = "{% for m in messages %}{{ m.role ~ ':' ~ m['content'] ~ ';' }}{% endfor %}";
    let trims = "{% for m in messages %}{{ m['role'] + ':' + m['content'] | trim + ';' }}{% endfor %}";
    let takes = "{% for m in messages %}{{ m.role ~ ':' }}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}\
                 {% if p.type == 'text' %}{{ '<' ~ p.text ~ '>' }}{% endif %}{% endfor %}{% endif %}{{ ';' }}{% endfor %}";
    let only_users = "{% for m in messages %}{% if m.role == 'system' %}{{ m.content + ';' }}{% else %}{% for p in m.content %}\
                      {{ p if p is string else p.text }}{% endfor %}{% endif %}{% endfor %}";
    let drops = "{% for m in messages %}{{ m.role ~ ':' ~ (m.content if m.content is string else '') ~ ';' }}{% endfor %}";
    let dumps = "{% for m in messages %}{{ m.role ~ ':' ~ (m.content if m.content is string else m.content | tojson) ~ ';' }}{% endfor %}";
    let part = |text: &str| json!({"type": "text", "text": text, "image": null});
    let talk =
        json!([{"role": "system", "content": [part("1")], "name": null}, {"role": "user", "content": [part("2+"), part("3=")]}]);
    for (source, expected) in [
        (plain, "system:1;user:2+3=;"),
        (trims, "system:1;user:2+3=;"),
        (takes, "system:<1>;user:<2+><3=>;"),
        (only_users, "1;2+3="),
        (drops, "system:1;user:2+3=;"),
        (dumps, "system:1;user:2+3=;"),
        ("{% for m in messages %}{% for p in m.content %}{{ p.text | upper }}{% endfor %}{% endfor %}", "12+3="),
    ] {
        let tokenizer = Tokenizer::load_with_template(folder.path(), Some(source)).unwrap();
        assert_eq!(tokenizer.apply_chat_template(&talk, true, &Map::new()).unwrap(), expected, "{source}");
    }
    // A field that is null, as columns of structs have them, is not there.
    let keys = Tokenizer::load_with_template(
        folder.path(),
        Some("{{ messages[0].keys() | list }}{{ messages[0].tool_calls is defined }}"),
    )
    .unwrap();
    let null = json!([{"role": "user", "content": "1", "tool_calls": null}]);
    assert_eq!(keys.apply_chat_template(&null, true, &Map::new()).unwrap(), "['role', 'content']False");

    let tokenizer = Tokenizer::load_with_template(folder.path(), Some(plain)).unwrap();
    let good = row("1+1=");
    let with = |prompt: Value| json!({"data_source": "s", "prompt": prompt, "reward_model": {"ground_truth": "1"}});
    let says = |content: Value| with(json!([{"role": "user", "content": content}]));
    for (bad, message) in [
        (says(json!([{"type": "image", "image": "x.png"}, part("1")])), "message 0: its content has a part of type \"image\""),
        (says(json!([{"type": "video"}])), "part of type \"video\""),
        (says(part("1")), "\"content\" must be text or a list of parts"),
        (with(json!(r#"[{"from": "human", "value": "1"}]"#)), "JSON text of a list of messages"),
        (says(json!([{"type": "text"}])), "must hold parts such as"),
        (says(json!([1, 2])), "must hold parts such as"),
        (
            with(json!("[{\"role\": \"user\", \"content\": \"1+1=\"}]")),
            "JSON text of a list of messages; store the list itself (json.loads)",
        ),
        (with(json!(" {\"role\": \"user\", \"content\": \"1+1=\"}")), "JSON text of a list of messages"),
        (with(json!("[{'role': 'user', 'content': '1+1='}]")), "a list of messages that Python wrote as text"),
    ] {
        let message_of = error(load_prompts(&jsonl(folder.path(), &[good.clone(), bad.clone()]), &tokenizer, &options()));
        assert!(message_of.contains("rows.jsonl, row 1") && message_of.contains(message), "{message_of}");
        let sft = SftColumns::Response {
            prompt_key: "prompt".into(),
            prompt_dict_keys: vec![],
            response_key: "data_source".into(),
            response_dict_keys: vec![],
        };
        let sft = SftOptions { columns: sft, ..sft_options() };
        assert!(error(load_sft(&jsonl(folder.path(), &[good.clone(), bad]), &tokenizer, &sft)).contains(message));
    }
    for fine in ["[1, 2]", "{\"a\": 1}", "[", "['role'", "{1}"] {
        load_prompts(&jsonl(folder.path(), &[with(json!(fine))]), &tokenizer, &options()).unwrap();
    }
    let talks = jsonl(folder.path(), &[json!({"messages": "[{\"role\": \"user\"}]"})]);
    assert!(
        error(load_sft(&talks, &tokenizer, &conversations(Truncation::Error, 9))).contains("JSON text of a list of messages")
    );
}

/// What verl and TRL would show to a model that sees is not left out in silence; columns without content change nothing.
#[test]
fn rows_with_images_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = char_tokenizer(folder.path());
    let with = |name: &str, value: Value| {
        let mut row = row("1+1=");
        row[name] = value;
        jsonl(folder.path(), &[row])
    };
    for empty in [json!(null), json!([]), json!([null]), json!(""), json!({"bytes": null, "path": null})] {
        load_prompts(&with("images", empty), &tokenizer, &options()).unwrap();
    }
    load_prompts(&with("pictures", json!(["x.png"])), &tokenizer, &options()).unwrap();
    for (name, value) in [
        ("images", json!(["x.png"])),
        ("image", json!({"path": "x.png"})),
        ("videos", json!([{"video": "x"}])),
        ("audios", json!([[0.5]])),
    ] {
        let message = error(load_prompts(&with(name, value.clone()), &tokenizer, &options()));
        assert!(
            message.contains("rows.jsonl, row 0") && message.contains(&format!("column \"{name}\" is not empty")),
            "{message}"
        );
        let mut talk = json!({"messages": [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]});
        talk[name] = value;
        let files = jsonl(folder.path(), &[talk]);
        assert!(error(load_sft(&files, &tokenizer, &conversations(Truncation::Error, 9))).contains("is not empty"));
    }
    // As data sets hold them: bytes in parquet, in one row of two.
    let mut images = ListBuilder::new(BinaryBuilder::new());
    images.append(true);
    images.values().append_value([1_u8, 2, 3]);
    images.append(true);
    let column: ArrayRef = Arc::new(images.finish());
    let text = |texts: [&str; 2]| -> ArrayRef { Arc::new(StringArray::from(texts.to_vec())) };
    let batch = RecordBatch::try_from_iter([("prompt", text(["1", "2"])), ("data_source", text(["s", "s"])), ("images", column)])
        .unwrap();
    let path = folder.path().join("seen.parquet");
    write_batches(&path, batch.schema(), [Ok(batch)]).unwrap();
    let no_truth = PromptOptions { needs: RowNeeds { ground_truth: false, ..options().needs }, ..options() };
    let message = error(load_prompts(&[path], &tokenizer, &no_truth));
    assert!(message.contains("seen.parquet, row 1: column \"images\" is not empty"), "{message}");
}

/// Files of pyarrow in its codecs (`lz4` is LZ4_RAW), and one in LZ4 as Hadoop frames it, which pyarrow no longer writes.
#[test]
fn parquet_is_read_in_every_codec() {
    let folder = tempfile::tempdir().unwrap();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/parquet");
    let mut files: Vec<PathBuf> = fs::read_dir(samples).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 6);
    let old = folder.path().join("lz4-hadoop.parquet");
    let prompts: ArrayRef = Arc::new(StringArray::from(["1+1=", "2+2="].repeat(4)));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..8));
    let batch = RecordBatch::try_from_iter([("prompt", prompts), ("n", numbers)]).unwrap();
    let properties = WriterProperties::builder().set_compression(Compression::LZ4).build();
    let mut writer = ArrowWriter::try_new(fs::File::create(&old).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    files.push(old);
    let expected: Vec<Value> = (0..8).map(|n| json!({"prompt": if n % 2 == 0 { "1+1=" } else { "2+2=" }, "n": n})).collect();
    for file in files {
        let rows = read_rows(std::slice::from_ref(&file), &["prompt", "n"], &[]).unwrap();
        let rows: Vec<Value> = rows.into_iter().map(|row| Value::Object(row.values)).collect();
        assert_eq!(rows, expected, "{}", file.display());
    }
}

/// A template that asks for the date is told the one of its run, not that of the hour.
#[test]
fn a_template_is_told_the_date_of_its_run() {
    let folder = tempfile::tempdir().unwrap();
    char_tokenizer(folder.path());
    let source = "{{ strftime_now('%d %b %Y %H:%M') if tools is none }}";
    let dated = |date: &str| {
        Tokenizer::load_with_template(folder.path(), Some(source)).unwrap().with_date(TemplateDate::parse(date).unwrap())
    };
    let message = json!([{"role": "user", "content": "1"}]);
    let with_tools = json!({"tools": [1]}).as_object().unwrap().clone();
    let tokenizer = dated("2024-02-29");
    assert_eq!(tokenizer.apply_chat_template(&message, true, &with_tools).unwrap(), "");
    assert!(!tokenizer.date().was_asked());
    assert_eq!(tokenizer.apply_chat_template(&message, true, &Map::new()).unwrap(), "29 Feb 2024 00:00");
    assert!(tokenizer.date().was_asked());
    let timed = dated("2024-02-29T18:30:00");
    assert_eq!(timed.apply_chat_template(&message, true, &Map::new()).unwrap(), "29 Feb 2024 18:30");
    assert_eq!((tokenizer.date().to_string(), timed.date().to_string()), ("2024-02-29".into(), "2024-02-29T18:30:00".into()));
    assert!(TemplateDate::today().to_string().len() == 10 && TemplateDate::parse("tomorrow").is_err());
}

#[test]
fn overlong_prompts_are_refused_filtered_or_truncated() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = char_tokenizer(folder.path());
    let files = jsonl(folder.path(), &[row("1234567"), row("12"), row("+-")]);
    let load = |truncation, filter_overlong_prompts, max_prompt_length| {
        let options = PromptOptions { truncation, filter_overlong_prompts, max_prompt_length, ..options() };
        load_prompts(&files, &tokenizer, &options)
    };
    let first = |truncation, max| tokenizer.decode(&load(truncation, false, max).unwrap()[0].ids, true).unwrap();
    assert_eq!(first(Truncation::Left, 5), "34567");
    assert_eq!(first(Truncation::Right, 5), "12345");
    assert_eq!(first(Truncation::Middle, 5), "12567");
    assert_eq!(first(Truncation::Error, 7), "1234567");
    let filtered = load(Truncation::Error, true, 5).unwrap();
    assert_eq!(filtered.iter().map(|prompt| prompt.index).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(filtered[0].extra_info, json!({}));

    let message = error(load(Truncation::Error, false, 5));
    for part in ["rows.jsonl, row 0: the prompt has 7 tokens", "data.max_prompt_length=5", "(1 of 3", "filter_overlong"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(error(load(Truncation::Error, true, 1)).contains("all of them too long"));
}

#[test]
fn bad_rows_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = char_tokenizer(folder.path());
    let options = options();
    let files = jsonl(folder.path(), &[row("1"), json!({"prompt": 3, "data_source": "s", "reward_model": {}})]);
    let load = |options: &PromptOptions| error(load_prompts(&files, &tokenizer, options));
    assert!(load(&options).contains("rows.jsonl, row 1: column \"prompt\" must be a list of messages or text"));
    let message = load(&PromptOptions { prompt_key: "promt".into(), ..options.clone() });
    let expected = "no column \"promt\"; the columns are data_source, prompt, reward_model. Did you mean \"prompt\"?";
    assert!(message.contains("rows.jsonl") && message.contains(expected), "{message}");

    let read = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        read_rows(&[path], &["a"], &[])
    };
    assert_eq!(read("array.json", "\n [{\"a\": 1}, {\"a\": 2}]").unwrap().len(), 2);
    assert_eq!(read("lines.json", "{\"a\": 1}\n{\"b\": 2}").unwrap().len(), 2);
    assert!(error(read("bad.jsonl", "{\"a\": 1}\n[1]")).contains("line 2 is not a JSON object"));
    assert!(error(read("bad.parquet", "PAR1")).contains("cannot read"));
    assert!(error(read("rows.csv", "a")).contains(".parquet, .json or .jsonl"));
    assert!(error(read_rows(&["gone.parquet".into()], &[], &[])).contains("gone.parquet: no such file"));
}

#[test]
fn samples_are_chosen_at_random_only_when_shuffling() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = char_tokenizer(folder.path());
    let rows: Vec<Value> = (0..50).map(|i| row(&i.to_string())).collect();
    let prompts = load_prompts(&jsonl(folder.path(), &rows), &tokenizer, &options()).unwrap();
    let take = |max, shuffle, seed| -> Vec<usize> {
        take_samples(prompts.clone(), max, shuffle, seed).iter().map(|prompt| prompt.index).collect()
    };
    assert_eq!(take(Some(3), false, 1), [0, 1, 2]);
    assert_eq!(take(None, true, 1).len(), 50);
    assert_eq!(take(Some(60), true, 1), (0..50).collect::<Vec<_>>());
    let mut chosen = take(Some(20), true, 1);
    assert_eq!(chosen, take(Some(20), true, 1));
    assert_ne!(chosen, take(Some(20), true, 2));
    chosen.dedup();
    assert!(chosen.len() == 20 && chosen.is_sorted());
}

#[test]
fn sampler_resumes_anywhere_and_covers_every_epoch() {
    let new = |seed| Sampler::new(10, 3, true, seed, true).unwrap();
    let mut whole = new(7);
    assert_eq!(whole.batches_per_epoch(), 3);
    let batches: Vec<Vec<usize>> = (0..9).map(|_| whole.next_batch()).collect();
    for epoch in batches.chunks(3) {
        let mut seen = epoch.concat();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 9);
    }
    assert_ne!(batches[..3], batches[3..6]);
    for stop in 0..9 {
        let mut first = new(7);
        (0..stop).for_each(|_| drop(first.next_batch()));
        let saved = serde_json::to_string(&first.state()).unwrap();
        let mut resumed = new(7);
        resumed.restore(serde_json::from_str(&saved).unwrap()).unwrap();
        assert_eq!((stop..9).map(|_| resumed.next_batch()).collect::<Vec<_>>(), batches[stop..]);
    }
    assert_ne!(batches[0], new(8).next_batch());

    // A position is a row, whatever the size of a batch: what was drawn does not come again, and nothing is left out.
    let of = |size| Sampler::new(12, size, true, 7, true).unwrap();
    let mut singles = of(1);
    let order: Vec<usize> = (0..24).map(|_| singles.next_batch()[0]).collect();
    let (mut sixes, mut fours) = (of(6), of(4));
    assert_eq!(sixes.next_batch(), order[..6]);
    fours.restore(sixes.state()).unwrap();
    assert_eq!(fours.next_batch(), order[6..10]);
    // Two rows are left, which fill no batch of six.
    sixes.restore(fours.state()).unwrap();
    assert_eq!(sixes.next_batch(), order[12..18]);
    // Checkpoints that count batches, and other data.
    fours.restore(serde_json::from_str(r#"{"epoch": 0, "batch": 2}"#).unwrap()).unwrap();
    assert_eq!(fours.next_batch(), order[8..12]);
    let error_of = |len: usize| Sampler::new(len, 3, true, 7, true).unwrap().restore(fours.state()).unwrap_err().to_string();
    assert!(error_of(20).contains("in data of 12 rows, and now there are 20"), "{}", error_of(20));

    let mut ordered = Sampler::new(5, 2, false, 0, false).unwrap();
    let batches: Vec<_> = (0..4).map(|_| ordered.next_batch()).collect();
    assert_eq!(batches, [vec![0, 1], vec![2, 3], vec![4], vec![0, 1]]);
    assert!(error(Sampler::new(2, 3, true, 0, true)).contains("2 rows do not fill one batch of 3"));
}

#[test]
fn sft_learns_the_response_and_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = char_tokenizer(folder.path());
    let files = jsonl(folder.path(), &[json!({"extra_info": {"question": "1+2=", "answer": "3"}})]);
    let example = &load_sft(&files, &tokenizer, &sft_options()).unwrap()[0];
    assert_eq!(tokenizer.decode(&example.ids, false).unwrap(), "1+2=3<eos>");
    assert_eq!(example.loss_mask, [false, false, false, false, true, true]);

    let load = |truncation, max_length| load_sft(&files, &tokenizer, &SftOptions { truncation, max_length, ..sft_options() });
    assert_eq!(load(Truncation::Left, 3).unwrap()[0].loss_mask, [false, true, true]);
    assert_eq!(load(Truncation::Right, 5).unwrap()[0].loss_mask, [false, false, false, false, true]);
    assert!(error(load(Truncation::Right, 4)).contains("none of 1 rows has a response"));
    // What is left is the end alone, with nothing to predict it from.
    assert!(error(load(Truncation::Left, 1)).contains("none of 1 rows has a response"));
    assert!(error(load(Truncation::Error, 5)).contains("the example has 6 tokens"));
    let wrong_key = SftOptions { columns: answer("answers"), ..sft_options() };
    assert!(error(load_sft(&files, &tokenizer, &wrong_key)).contains("no field \"answers\"; its fields: answer, question"));
    // Text with the default of a struct: what to write is said.
    let files = jsonl(folder.path(), &[json!({"extra_info": "3", "prompt": "1+2="})]);
    let text = SftColumns::Response {
        prompt_key: "prompt".into(),
        prompt_dict_keys: vec![],
        response_key: "extra_info".into(),
        response_dict_keys: vec!["answer".into()],
    };
    let text = error(load_sft(&files, &tokenizer, &SftOptions { columns: text, ..sft_options() }));
    assert!(text.contains("it is no struct") && text.contains("set data.response_dict_keys=null"), "{text}");
    assert_eq!(error(load_sft(&jsonl(folder.path(), &[]), &tokenizer, &sft_options())), "no rows");
}

/// A tokenizer of single characters and ChatML's special tokens, with the chat template.
fn chatml_tokenizer(folder: &Path, template: &str) -> Tokenizer {
    write_char_tokenizer(folder).unwrap();
    let path = folder.join("tokenizer.json");
    let mut json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for token in ["<|im_start|>", "<|im_end|>"].map(String::from).into_iter().chain(('!'..='~').map(String::from)) {
        let vocab = json["model"]["vocab"].as_object_mut().unwrap();
        let id = json!(vocab.len());
        if vocab.contains_key(&token) {
            continue;
        }
        vocab.insert(token.clone(), id.clone());
        if token.len() > 1 {
            let added = json!({"id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
                               "normalized": false, "special": true});
            json["added_tokens"].as_array_mut().unwrap().push(added);
        }
    }
    fs::write(path, json.to_string()).unwrap();
    Tokenizer::load_with_template(folder, Some(template)).unwrap()
}

fn conversations(truncation: Truncation, max_length: usize) -> SftOptions {
    let columns = SftColumns::Messages {
        messages_key: "messages".into(),
        tools_key: "tools".into(),
        enable_thinking_key: "enable_thinking".into(),
    };
    SftOptions { columns, max_length, truncation, chat_kwargs: Map::new() }
}

/// Against texts put together by hand: of each turn of the assistant, what stands after the template's `<|im_start|>assistant`
/// line is learnt, up to `<|im_end|>`.
#[test]
fn conversations_learn_what_the_assistant_says_and_its_ends() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = chatml_tokenizer(folder.path(), QWEN2);
    let say = |role: &str, content: &str| json!({"role": role, "content": content});
    let turns = [say("user", "1+1?"), say("assistant", "2"), say("user", "and 3?"), say("assistant", "2+3=5, so\n5")];
    let files = jsonl(
        folder.path(),
        &[json!({"messages": turns}), json!({"messages": [say("system", "Brief."), turns[0], turns[1]], "tools": null})],
    );
    let examples = load_sft(&files, &tokenizer, &conversations(Truncation::Error, 200)).unwrap();
    let system = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n";
    let first = [
        (format!("{system}<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n"), false),
        ("2<|im_end|>".into(), true),
        ("\n<|im_start|>user\nand 3?<|im_end|>\n<|im_start|>assistant\n".into(), false),
        ("2+3=5, so\n5<|im_end|>".into(), true),
        ("\n".into(), false),
    ];
    let second = [
        ("<|im_start|>system\nBrief.<|im_end|>\n<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n".to_owned(), false),
        ("2<|im_end|>".into(), true),
        ("\n".into(), false),
    ];
    for (example, parts) in examples.iter().zip([&first[..], &second[..]]) {
        let ids: Vec<Vec<u32>> = parts.iter().map(|(text, _)| tokenizer.encode(text).unwrap()).collect();
        let mask: Vec<bool> = parts.iter().zip(&ids).flat_map(|((_, learnt), ids)| vec![*learnt; ids.len()]).collect();
        assert_eq!((&example.ids, &example.loss_mask), (&ids.concat(), &mask));
        assert!(!example.ids.contains(&3), "<unk>: the test's tokenizer does not know a character");
    }
    let cut = &load_sft(&files, &tokenizer, &conversations(Truncation::Left, 4)).unwrap()[0];
    assert_eq!(
        (tokenizer.decode(&cut.ids, false).unwrap().as_str(), &cut.loss_mask[..]),
        ("\n5<|im_end|>\n", &[true, true, true, false][..])
    );
}

#[test]
fn conversations_that_have_no_right_mask_are_errors_that_name_the_row() {
    let folder = tempfile::tempdir().unwrap();
    let say = |role: &str, content: &str| json!({"role": role, "content": content});
    let good = json!({"messages": [say("user", "1"), say("assistant", "2")]});
    let load = |template: &str, row: Value| {
        let tokenizer = chatml_tokenizer(folder.path(), template);
        load_sft(&jsonl(folder.path(), &[good.clone(), row]), &tokenizer, &conversations(Truncation::Error, 200))
    };
    // CHATML drops what earlier turns thought.
    let thoughts = json!({"messages": [say("user", "1"), say("assistant", "<think>x</think>2"), say("user", "3")]});
    assert!(load(CHATML, thoughts).is_ok(), "the same text whatever follows");
    let last_differs = "{% for m in messages %}{{ m.role ~ ':' ~ ('!' if loop.last and m.role == 'assistant') ~ m.content ~ '<|im_end|>' }}{% endfor %}\
                        {% if add_generation_prompt %}assistant:{% endif %}";
    let two = json!({"messages": [say("user", "1"), say("assistant", "2"), say("user", "3"), say("assistant", "4")]});
    for (template, row, part) in [
        (last_differs, two, "message 1: the tokens of the conversation up to here are not the first ones"),
        (QWEN2, json!({"messages": [say("assistant", "2"), say("user", "1")]}), "message 0 is the assistant's"),
        (QWEN2, json!({"messages": [say("user", "1")]}), "no turn of the assistant"),
        (QWEN2, json!({"messages": "1"}), "must be a list of messages"),
        (QWEN2, json!({"messages": [say("user", "1"), say("assistant", "2")], "tools": "f"}), "\"tools\" must be a list"),
    ] {
        let message = error(load(template, row));
        assert!(message.contains("rows.jsonl, row 1") && message.contains(part), "{message}");
    }
    let endless = "{% for m in messages %}{{ m.content }}{% endfor %}";
    assert!(
        error(load(endless, good.clone())).contains("message 1: the chat template ends the assistant's turn with no special")
    );
}

#[test]
fn the_template_sees_the_tools_and_the_thinking_of_a_row() {
    let folder = tempfile::tempdir().unwrap();
    let template = "{{ tools | tojson if tools }}{{ enable_thinking if enable_thinking is defined }}\
                    {% for m in messages %}{{ m.content ~ '<eos>' }}{% endfor %}";
    let tokenizer = chatml_tokenizer(folder.path(), template);
    let messages = json!([{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]);
    let rows = [
        json!({"messages": messages, "tools": [{"name": "f"}], "enable_thinking": null}),
        json!({"messages": messages, "enable_thinking": false}),
        json!({"messages": messages, "tools": "[{\"name\": \"f\"}]"}),
        json!({"messages": messages, "tools": "null"}),
    ];
    let mut options = conversations(Truncation::Error, 200);
    options.chat_kwargs.insert("enable_thinking".into(), json!(true));
    let examples = load_sft(&jsonl(folder.path(), &rows), &tokenizer, &options).unwrap();
    let texts: Vec<String> = examples.iter().map(|example| tokenizer.decode(&example.ids, false).unwrap()).collect();
    let with_tools = "[{\"name\": \"f\"}]True1<eos>2<eos>";
    assert_eq!(texts, [with_tools, "False1<eos>2<eos>", with_tools, "True1<eos>2<eos>"]);
}

/// Rows of both kinds of files go out with a column more, and come back as they were.
#[test]
fn a_table_is_written_with_a_column_more() {
    let folder = tempfile::tempdir().unwrap();
    let rows = [
        json!({"a": 1, "b": {"c": [1.5, 2], "d": null}, "e": "x", "r": "old"}),
        json!({"a": null, "b": {"c": [], "d": [{"f": true}]}, "e": "y", "r": "old"}),
        json!({"a": -3, "b": null, "e": null, "r": null}),
    ];
    let out = folder.path().join("deep/out.parquet");
    let replies = [json!(["p", "q"]), json!([]), json!(["é"])];
    Table::read(&jsonl(folder.path(), &rows)).unwrap().write_with(&out, "r", &replies).unwrap();
    let again = folder.path().join("again.parquet");
    Table::read(&[out.clone(), out]).unwrap().write_with(&again, "s", &[0, 1, 2, 3, 4, 5].map(Value::from)).unwrap();
    let read = read_rows(&[again], &["a", "b", "e", "r", "s"], &[]).unwrap();
    for (i, row) in read.iter().enumerate() {
        let mut expected = rows[i % 3].clone();
        expected["r"] = replies[i % 3].clone();
        expected["s"] = json!(i);
        if i % 3 == 0 {
            expected["b"]["c"] = json!([1.5, 2.0]);
        }
        assert_eq!(Value::Object(row.values.clone()), expected);
    }
    let mixed = jsonl(folder.path(), &[json!({"a": 1}), json!({"a": "x"})]);
    assert!(
        error(Table::read(&mixed).map(drop)).contains("column \"a\" has no type: values of several kinds, such as 1 and \"x\"")
    );
}

fn render(template: Option<&str>, messages: Value, kwargs: Value) -> anyhow::Result<String> {
    let tokens = json!({"bos_token": "<s>", "eos_token": "</s>"}).as_object().unwrap().clone();
    ChatTemplate::new(template, tokens)?.render(&messages, true, kwargs.as_object().unwrap())
}

/// What the goldens of `tests/chat_templates.rs` leave: the marks of the assistant's text, no template, and templates that fail.
#[test]
fn chat_templates_are_marked_missing_or_wrong() {
    let talk = json!([{"role": "system", "content": "Be <brief> & 'kind'."}, {"role": "user", "content": " Hi\n"},
                      {"role": "assistant", "content": "<think>x</think>\n\nHello é"}, {"role": "user", "content": "Bye"}]);
    assert_eq!(
        render(Some(CHATML), talk.clone(), json!({"enable_thinking": false})).unwrap(),
        "<|im_start|>system\nBe <brief> & 'kind'.<|im_end|>\n<|im_start|>user\n Hi\n<|im_end|>\n<|im_start|>assistant\n\
         Hello é<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    );
    assert_eq!(render(None, json!([{"role": "user", "content": "a"}]), json!({})).unwrap(), "a\n");
    assert!(error(render(None, json!([{"role": "user"}]), json!({}))).contains("message 0"));
    assert!(error(render(Some("{% for x in y"), talk.clone(), json!({}))).contains("not valid Jinja"));
    let endless = "{% for a in range(9999) %}{% for b in range(9999) %}{{ a }}{% endfor %}{% endfor %}";
    assert!(error(render(Some(endless), talk, json!({}))).contains("fuel"));
}

/// The template of Qwen2's instruction-tuned models.
const QWEN2: &str = "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}\
    {{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}\
    {{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}\
    {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

const CHATML: &str = r#"{%- set ns = namespace(last=-1) %}
{%- for message in messages[::-1] %}
    {%- if message.role == "user" and ns.last < 0 %}
        {%- set ns.last = (messages|length - 1) - loop.index0 %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == "assistant" %}
        {%- set content = message.content.split('</think>')[-1].lstrip('\n') %}
        {{- '<|im_start|>' + message.role + '\n' }}
        {%- generation %}
        {{- content + '<|im_end|>\n' }}
        {%- endgeneration %}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}
"#;

/// Integers beyond 64 bits, and numbers that JSON has not: as they are, or an error with their place, and never another number.
#[test]
fn numbers_are_read_as_they_are_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    let read = |text: &str, column: &str| {
        fs::write(&path, text).unwrap();
        read_rows(std::slice::from_ref(&path), &[column], &[])
    };
    let fits = "\n{\"a\": [18446744073709551615, -9223372036854775808, 0.1], \"b\": {\"c\": 354224848179261915075}}\n";
    let rows = read(fits, "a").unwrap();
    assert_eq!(rows[0].values["a"].to_string(), "[18446744073709551615,-9223372036854775808,0.1]");
    let lines = fits.repeat(2);
    let array = format!("[{}, {{\"b\": -9223372036854775809}}]", "{\"b\": 1}");
    for (text, told) in [
        (lines.as_str(), "row 0, column \"b\": the integer 354224848179261915075 does not fit 64 bits; write it as text"),
        (&array, "row 1, column \"b\": the integer -9223372036854775809 does not fit"),
        ("{\"b\": 1e400}", "line 1 is not a JSON object: number out of range"),
        (&format!("{{\"b\": {}}}", "[".repeat(100_000)), "line 1 is not a JSON object: recursion limit exceeded"),
    ] {
        let message = error(read(text, "b"));
        assert!(message.contains("rows.jsonl") && message.contains(told), "{message}");
    }

    let numbers = |values: Vec<f64>| {
        let file = folder.path().join("rows.parquet");
        let column: ArrayRef = Arc::new(Float64Array::from(values));
        let batch = RecordBatch::try_from_iter([("x", column)]).unwrap();
        let mut writer = ArrowWriter::try_new(fs::File::create(&file).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        read_rows(&[file], &["x"], &[])
    };
    let rows = numbers(vec![f64::NAN, 0.1]).unwrap();
    assert_eq!([&rows[0].values["x"], &rows[1].values["x"]], [&Value::Null, &json!(0.1)]);
    let message = error(numbers(vec![1.0, f64::NEG_INFINITY]));
    assert!(message.contains("rows.parquet: row 1, column \"x\": the number is -inf"), "{message}");

    // Written again, a column has one type: an integer that it would change is an error, whatever the column is needed for.
    for (text, told) in [
        ("{\"x\": 9007199254740993}\n{\"x\": 0.5}", "9007199254740993 stands beside numbers"),
        ("{\"x\": 354224848179261915075}", "column \"x\": the integer 354224848179261915075"),
    ] {
        fs::write(&path, text).unwrap();
        let message = error(Table::read(std::slice::from_ref(&path)));
        assert!(message.contains(told), "{message}");
    }
}
