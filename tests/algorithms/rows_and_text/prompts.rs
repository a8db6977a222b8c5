//! Rows as prompts: contents, media, lengths, samples, and their order.

use super::*;

/// The parts of a content reach the template in the form it expects, as parts or as one text; only text is accepted.
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
    let conversation =
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
        assert_eq!(tokenizer.apply_chat_template(&conversation, true, &Map::new()).unwrap(), expected, "{source}");
    }
    // A field that is null, as columns of structs have it, counts as missing.
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
        (says(json!([{"type": "image", "image": "x.png"}, part("1")])), "message 0: the content has a part of type \"image\""),
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
        (with(json!("[{'role': 'user', 'content': '1+1='}]")), "a list of messages written as Python text"),
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
    assert!(error(load_sft(&talks, &tokenizer, &conversations(Overlong::Error, 9))).contains("JSON text of a list of messages"));
}

/// Images that verl and TRL would show to a multimodal model are refused, not ignored; empty image columns change nothing.
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
        let mut conversation = json!({"messages": [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]});
        conversation[name] = value;
        let files = jsonl(folder.path(), &[conversation]);
        assert!(error(load_sft(&files, &tokenizer, &conversations(Overlong::Error, 9))).contains("is not empty"));
    }
    // Images as data sets hold them: bytes in parquet, in one row of two.
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

/// If the schemas of tools alone are too long, the rows with these tools are left out without rendering each of them.
#[test]
fn long_tools_are_rendered_once() {
    let folder = tempfile::tempdir().unwrap();
    char_tokenizer(folder.path());
    let source = "{% for m in messages %}{% if m.content == '7' %}{{ raise_exception('rendered') }}{% endif %}{{ m.content }}{% endfor %}\
                  {% for t in tools %}{{ t.text }}{% endfor %}";
    let tokenizer = Tokenizer::load_with_template(folder.path(), Some(source)).unwrap();
    let tool = |name: &str, text: String| json!({"type": "function", "function": {"name": name}, "text": text});
    let tools = vec![tool("long", "1".repeat(20_000)), tool("short", "2".into())];
    let with = |prompt: &str, tools: &[&str]| {
        let mut row = row(prompt);
        row["extra_info"] = json!({"tool_selection": tools});
        row
    };
    let rows = [row("1"), row("7"), with("2", &["short"]), row("7")];
    let agents = AgentRows { default: "a".into(), tools: [("a".to_owned(), tools)].into(), ..AgentRows::default() };
    let options = PromptOptions { agents, filter_overlong_prompts: true, ..options() };
    let prompts = load_prompts(&jsonl(folder.path(), &rows), &tokenizer, &options).unwrap();
    assert_eq!(prompts.iter().map(|prompt| (prompt.index, prompt.text.as_str())).collect::<Vec<_>>(), [(2, "22")]);
    let refuses = PromptOptions { filter_overlong_prompts: false, ..options };
    let message = error(load_prompts(&jsonl(folder.path(), &rows), &tokenizer, &refuses));
    assert!(message.contains("row 0: the prompt has 20002 tokens, with the schemas of its tools"), "{message}");
}

/// The correct answer is in the column of `data.label_key`, with its type. Only functions of TRL read the column `solution`.
#[test]
fn the_ground_truth_is_the_column_that_label_key_names() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = char_tokenizer(folder.path());
    let nested = json!({"ground_truth": "7"});
    let row = json!({"prompt": "1+1=", "label": ["2", 2.5], "none": null, "solution": "3", "reward_model": nested});
    let bare = json!({"prompt": "1+1=", "solution": "3", "reward_model": null});
    // The row, the key, whether the rewards read a ground truth, whether they read the column `solution`, and the result.
    type Case<'a> = (&'a Value, Option<&'a str>, bool, bool, Result<Value, &'a str>);
    let cases: [Case; 12] = [
        (&row, None, true, false, Ok(json!("7"))),
        (&row, None, true, true, Ok(json!("7"))),
        (&row, None, false, false, Ok(json!("7"))),
        (&row, Some("label"), true, false, Ok(json!(["2", 2.5]))),
        (&row, Some("label"), false, true, Ok(json!(["2", 2.5]))),
        (&row, Some("none"), true, false, Ok(json!(null))),
        (&row, Some(""), true, false, Ok(json!(""))),
        (&row, Some("lable"), true, false, Err("lable: set data.label_key=solution")),
        (&row, Some("lable"), false, false, Err("no column \"lable\"")),
        (&bare, None, true, true, Ok(json!("3"))),
        (&bare, None, true, false, Err("reward_model has no field ground_truth")),
        (&bare, None, false, false, Ok(json!(null))),
    ];
    for (row, key, ground_truth, solution, expected) in cases {
        let needs = RowNeeds { ground_truth, solution, ..RowNeeds::default() };
        let place = GroundTruthKey::new(key, GroundTruthKey::default());
        let options = PromptOptions { needs, ground_truth: place, reward_fn_key: None, ..options() };
        let read = load_prompts(&jsonl(folder.path(), std::slice::from_ref(row)), &tokenizer, &options);
        match (read, expected) {
            (Ok(prompts), Ok(truth)) => assert_eq!((&prompts[0].ground_truth, prompts[0].data_source.as_str()), (&truth, "")),
            (read, expected) => {
                let (message, expected) = (error(read), expected.expect_err("an error"));
                assert!(message.contains(expected), "{key:?} {needs:?}: {message}");
            }
        }
    }
}

/// A text is used verbatim, is set into a template, or is one message of a user, as the row with that message would be.
#[test]
fn texts_are_verbatim_or_go_through_a_template() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = char_tokenizer(folder.path());
    let message = json!([{"role": "user", "content": "1+1="}]);
    let of = |prompt: &Value, apply_chat_template, input_template: Option<&str>| {
        let form = PromptForm { apply_chat_template, input_template: input_template.map(str::to_owned), ..options().form };
        let needs = RowNeeds::default();
        let rows = jsonl(folder.path(), &[json!({"prompt": prompt})]);
        load_prompts(&rows, &tokenizer, &PromptOptions { form, needs, ..options() }).unwrap().remove(0)
    };
    let (text, list) = (json!("1+1="), message.clone());
    let given = of(&list, false, None);
    let [plain, within] = [None, Some("2+{}3")].map(|template| of(&text, false, template));
    let [rendered, listed] = [&text, &list].map(|prompt| of(prompt, true, None));
    assert_eq!([&plain.text, &within.text], ["1+1=", "2+1+1=3"]);
    assert!(!plain.conversational && !within.conversational);
    for prompt in [&rendered, &listed] {
        let Prompt { ids, messages, text, conversational, .. } = prompt;
        assert_eq!((ids, messages, text, *conversational), (&given.ids, &message, &given.text, true));
    }
}

#[test]
fn bad_rows_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = char_tokenizer(folder.path());
    let options = options();
    let files = jsonl(folder.path(), &[row("1"), json!({"prompt": 3, "data_source": "s", "reward_model": {}})]);
    let load = |options: &PromptOptions| error(load_prompts(&files, &tokenizer, options));
    assert!(load(&options).contains("rows.jsonl, row 1: column \"prompt\" must be a list of messages or text"));
    let message = load(&PromptOptions { form: PromptForm::verbatim("promt"), ..options.clone() });
    let expected = "no column \"promt\"; the columns are data_source, prompt, reward_model. Did you mean \"prompt\"?";
    assert!(message.contains("rows.jsonl") && message.contains(expected), "{message}");
    // The error lists all missing columns at once, with the settings for the existing ones.
    let own = jsonl(folder.path(), &[json!({"question": "1+1=", "answer": "2"})]);
    let message = error(load_prompts(&own, &tokenizer, &options));
    for part in [
        "no columns \"prompt\", \"data_source\", \"reward_model\"; the columns are answer, question",
        "\n  prompt: set data.prompt_key=question",
        "\n  data_source: the name of the rule",
        "\n  reward_model: set data.label_key=answer, the column of the correct answers",
    ] {
        assert!(message.contains(part), "{message}");
    }
    jsonl(folder.path(), &[row("1"), json!({"prompt": 3, "data_source": "s", "reward_model": {}})]);

    let read = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        read_rows(&[path], &["a"], &[])
    };
    assert_eq!(read("array.json", "\n [{\"a\": 1}, {\"a\": 2}]").unwrap().len(), 2);
    assert_eq!(read("lines.json", "{\"a\": 1}\n{\"b\": 2}").unwrap().len(), 2);
    for columns in ["{\"a\": {\"0\": 1, \"1\": 2}}", "{\n\"a\": {\"0\": 1}\n}", "{\n\"data\": [{\"a\": 1}]\n}"] {
        let message = error(read("columns.json", columns));
        assert!(message.contains("one JSON object, not rows") && message.contains("orient=\"records\""), "{message}");
    }
    assert!(error(read("bad.jsonl", "{\"a\": 1}\n[1]")).contains("line 2 is not a JSON object"));
    assert!(error(read("bad.parquet", "PAR1")).contains("cannot read"));
    assert!(error(read("rows.txt", "a")).contains("data files end in .parquet, .json, .jsonl, .ndjson or .csv"));
    assert!(error(read_rows(&["gone.parquet".into()], &[], &[])).contains("gone.parquet: no such file"));
}

#[test]
fn samples_are_chosen_at_random_only_when_shuffling() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = char_tokenizer(folder.path());
    let rows: Vec<Value> = (0..50).map(|i| row(&i.to_string())).collect();
    let files = jsonl(folder.path(), &rows);
    let take = |max: Option<usize>, shuffle, seed| -> Vec<usize> {
        let reading = RowSelection { take: max.map(|max| Take { max, shuffle, seed }), ..RowSelection::default() };
        let prompts = load_prompts(&files, &tokenizer, &PromptOptions { reading, ..options() }).unwrap();
        prompts.iter().map(|prompt| prompt.index).collect()
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

    // A position counts rows, for any batch size: no row comes twice, and none is left out.
    let of = |size| Sampler::new(12, size, true, 7, true).unwrap();
    let mut singles = of(1);
    let order: Vec<usize> = (0..24).map(|_| singles.next_batch()[0]).collect();
    let (mut sixes, mut fours) = (of(6), of(4));
    assert_eq!(sixes.next_batch(), order[..6]);
    fours.restore(sixes.state()).unwrap();
    assert_eq!(fours.next_batch(), order[6..10]);
    // Two rows are left, which do not fill a batch of six.
    sixes.restore(fours.state()).unwrap();
    assert_eq!(sixes.next_batch(), order[12..18]);
    // State of checkpoints that counted batches, and state for other data.
    fours.restore(serde_json::from_str(r#"{"epoch": 0, "batch": 2}"#).unwrap()).unwrap();
    assert_eq!(fours.next_batch(), order[8..12]);
    let error_of = |len: usize| Sampler::new(len, 3, true, 7, true).unwrap().restore(fours.state()).unwrap_err().to_string();
    assert!(error_of(20).contains("12 rows of data, and now there are 20"), "{}", error_of(20));

    let mut ordered = Sampler::new(5, 2, false, 0, false).unwrap();
    let batches: Vec<_> = (0..4).map(|_| ordered.next_batch()).collect();
    assert_eq!(batches, [vec![0, 1], vec![2, 3], vec![4], vec![0, 1]]);
    assert!(error(Sampler::new(2, 3, true, 0, true)).contains("2 rows do not fill one batch of 3"));
}

#[test]
fn shares_of_files_hold_in_every_epoch_and_resume_anywhere() {
    let mixed = || Sampler::new(10, 3, true, 7, false).unwrap().with_shares(&[(8, 1.0), (2, 3.0)]).unwrap();
    // Of 10 rows, an epoch has 2.5 of the first set; the row for the halves goes to the first of the equal remainders.
    assert_eq!(mixed().shares().iter().map(|share| share.drawn).collect::<Vec<_>>(), [3, 7]);
    let mut sampler = mixed();
    let (mut all, mut states) = (Vec::new(), Vec::new());
    for _ in 0..12 {
        states.push(sampler.state());
        all.push(sampler.next_batch());
    }
    for (i, state) in states.into_iter().enumerate() {
        let mut resumed = mixed();
        resumed.restore(state).unwrap();
        assert_eq!((i..12).map(|_| resumed.next_batch()).collect::<Vec<_>>(), all[i..]);
    }
    for epoch in all.chunks(4) {
        assert_eq!(epoch.iter().flatten().filter(|row| **row < 8).count(), 3);
    }
    // The first set is gone through once before any of its rows comes again.
    let mut firsts: Vec<usize> = all.concat().into_iter().filter(|row| *row < 8).collect();
    assert_eq!(firsts.len(), 9);
    firsts.sort_unstable();
    firsts.dedup();
    assert_eq!(firsts, (0..8).collect::<Vec<_>>());
    for (sets, why) in [([(10, 1.0), (0, 1.0)], "no rows"), ([(9, 1000.0), (1, 1.0)], "too small for one of the 10 rows")] {
        let (set, message) = Sampler::new(10, 3, true, 7, false).unwrap().with_shares(&sets).unwrap_err();
        assert!(set == 1 && message.contains(why), "{message}");
    }
}

/// Rows that are left out take no place in a batch, and the position counts them.
#[test]
fn rows_are_left_out_of_batches() {
    let even = |row: usize| row.is_multiple_of(2);
    let mut sampler = Sampler::new(10, 2, false, 0, true).unwrap();
    assert_eq!([sampler.next_batch_where(even), sampler.next_batch_where(even)], [[0, 2], [4, 6]]);
    let saved = sampler.state();
    // The last kept row fills no batch.
    assert_eq!((sampler.next_batch_where(even), sampler.state().epoch), (vec![0, 2], 1));
    let mut resumed = Sampler::new(10, 2, false, 0, true).unwrap();
    resumed.restore(saved).unwrap();
    assert_eq!(resumed.next_batch(), [7, 8]);
    assert!(resumed.next_batch_where(|row| row == 1).is_empty());
    let mut whole = Sampler::new(5, 2, false, 0, false).unwrap();
    assert_eq!([whole.next_batch_where(even), whole.next_batch_where(even)], [vec![0, 2], vec![4]]);
    assert!(whole.next_batch_where(|_| false).is_empty());
}
