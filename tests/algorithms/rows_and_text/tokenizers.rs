//! Tokenizer folders: end tokens, the first token of a text, chat templates and their dates.

use super::*;

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

    // Every id of generation_config.json ends a generation. An end token of config.json counts only if generation_config.json has
    // none, and only if it is a special token.
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
    // A token that tokenizer.json lacks gets the next id; a model need not have a row for it.
    write("tokenizer_config.json", json!({"eos_token": "<end>"}));
    write("generation_config.json", json!({"eos_token_id": 2}));
    let tokenizer = Tokenizer::load(folder.path()).unwrap();
    assert_eq!((tokenizer.eos_id(), tokenizer.eos_ids(), tokenizer.vocab_size()), (20, [2, 20].as_slice(), 21));
    assert_eq!(tokenizer.new_tokens().as_deref(), Some("\"<end>\" is 20"));
    fs::remove_file(folder.path().join("tokenizer.json")).unwrap();
    assert!(error(Tokenizer::load(folder.path())).contains("has no tokenizer.json"));
}

/// A model's generation_config.json applies even if the tokenizer is in another folder, and is saved with the model.
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

/// A tokenizer that puts `<bos>` before every text leaves this to a chat template, as in transformers, vLLM and TRL.
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
    // The first token counts too: the prompt has seven characters and this token.
    let files = jsonl(folder.path(), &[json!({"prompt": "1234567", "data_source": "s", "reward_model": {"ground_truth": ""}})]);
    let short = PromptOptions { max_prompt_length: 7, ..options() };
    assert!(error(load_prompts(&files, &tokenizer, &short)).contains("the prompt has 8 tokens"));
}

/// The names, places and precedence of chat templates are the same as in transformers.
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
    assert!(error(text(json!(null))).contains("(rag, tool_use), but not \"default\""));
    assert_eq!(text(json!([1])).unwrap(), "tools");
    // Template files take precedence over tokenizer_config.json.
    config(named);
    fs::create_dir(&more).unwrap();
    write(&more.join("tool_use.jinja"), "of a file {{ eos_token }}");
    assert_eq!(text(json!([1])).unwrap(), "of a file <eos>");
    assert!(error(text(json!(null))).contains("but not \"default\""));
    write(&folder.path().join("chat_template.jinja"), "main");
    assert_eq!(both(json!([1])), ("main".into(), "of a file <eos>".into()));
    // Templates are saved with the model, except a replaced one.
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

/// A template that asks for the date gets the date of its run's start, not the current one.
#[test]
fn a_template_is_told_the_date_of_its_run() {
    let folder = tempfile::tempdir().unwrap();
    char_tokenizer(folder.path());
    let source = "{{ strftime_now('%d %b %Y %H:%M') if not tools }}";
    let dated = |date: &str| {
        Tokenizer::load_with_template(folder.path(), Some(source)).unwrap().with_date(TemplateDate::parse(date).unwrap())
    };
    let message = json!([{"role": "user", "content": "1"}]);
    let with_tools = json!({"tools": [1]}).as_object().unwrap().clone();
    let tokenizer = dated("2024-02-29");
    assert_eq!(tokenizer.apply_chat_template(&message, true, &with_tools).unwrap(), "");
    assert!(!tokenizer.date().was_printed());
    assert_eq!(tokenizer.apply_chat_template(&message, true, &Map::new()).unwrap(), "29 Feb 2024 00:00");
    assert!(tokenizer.date().was_printed());
    let timed = dated("2024-02-29T18:30:00");
    assert_eq!(timed.apply_chat_template(&message, true, &Map::new()).unwrap(), "29 Feb 2024 18:30");
    assert_eq!((tokenizer.date().to_string(), timed.date().to_string()), ("2024-02-29".into(), "2024-02-29T18:30:00".into()));
    assert!(TemplateDate::today().to_string().len() == 10 && TemplateDate::parse("tomorrow").is_err());
}

fn render(template: Option<&str>, messages: Value, kwargs: Value) -> anyhow::Result<String> {
    let tokens = json!({"bos_token": "<s>", "eos_token": "</s>"}).as_object().unwrap().clone();
    ChatTemplate::new(template, tokens)?.render(&messages, true, kwargs.as_object().unwrap())
}

/// Cases that the goldens of `tests/algorithms/chat_templates.rs` do not cover: the marks of the assistant's text, no template,
/// and templates that fail.
#[test]
fn chat_templates_are_marked_missing_or_wrong() {
    let conversation = json!([{"role": "system", "content": "Be <brief> & 'kind'."}, {"role": "user", "content": " Hi\n"},
                      {"role": "assistant", "content": "<think>x</think>\n\nHello é"}, {"role": "user", "content": "Bye"}]);
    assert_eq!(
        render(Some(CHATML), conversation.clone(), json!({"enable_thinking": false})).unwrap(),
        "<|im_start|>system\nBe <brief> & 'kind'.<|im_end|>\n<|im_start|>user\n Hi\n<|im_end|>\n<|im_start|>assistant\n\
         Hello é<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    );
    assert_eq!(render(None, json!([{"role": "user", "content": "a"}]), json!({})).unwrap(), "a\n");
    assert!(error(render(None, json!([{"role": "user"}]), json!({}))).contains("message 0"));
    assert!(error(render(Some("{% for x in y"), conversation.clone(), json!({}))).contains("not valid Jinja"));
    let endless = "{% for a in range(9999) %}{% for b in range(9999) %}{{ a }}{% endfor %}{% endfor %}";
    assert!(error(render(Some(endless), conversation, json!({}))).contains("instructions"));
}
