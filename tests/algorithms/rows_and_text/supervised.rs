//! Supervised examples: the trained tokens of a response or a conversation.

use burnish::data::examples::{StepOptions, StepRows, read_pairs, read_sft, read_steps};

use super::*;

#[test]
fn sft_learns_the_response_and_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = char_tokenizer(folder.path());
    let files = jsonl(folder.path(), &[json!({"extra_info": {"question": "1+2=", "answer": "3"}})]);
    let example = &load_sft(&files, &tokenizer, &sft_options()).unwrap()[0];
    assert_eq!(tokenizer.decode(&example.ids, false).unwrap(), "1+2=3<eos>");
    assert_eq!(example.weights, [0.0, 0.0, 0.0, 0.0, 1.0, 1.0]);

    let load = |overlong, max_length| load_sft(&files, &tokenizer, &SftOptions { overlong, max_length, ..sft_options() });
    assert_eq!(load(Overlong::Left, 3).unwrap()[0].weights, [0.0, 1.0, 1.0]);
    assert_eq!(load(Overlong::Right, 5).unwrap()[0].weights, [0.0, 0.0, 0.0, 0.0, 1.0]);
    assert!(
        error(load(Overlong::Right, 4))
            .contains("1 of 1 examples would be skipped, more than half: 1 have no trained token within data.max_length")
    );
    // Only the end token remains, and no token precedes it.
    assert!(
        error(load(Overlong::Left, 1))
            .contains("1 of 1 examples would be skipped, more than half: 1 have no trained token within data.max_length")
    );
    assert!(error(load(Overlong::Error, 5)).contains("the example has 6 tokens"));
    let read = read_sft(&files, &tokenizer, &SftOptions { overlong: Overlong::Right, max_length: 5, ..sft_options() }).unwrap();
    assert!(format!("{:?}", read.tally).contains("are cut at data.max_length"), "{:?}", read.tally);
    // A token limit cannot help a row without trained tokens.
    let texts = SftOptions { columns: SftColumns::Text { text_key: "text".into() }, loss_mask: LossMask::ALL, ..sft_options() };
    let message = error(load_sft(&jsonl(folder.path(), &[json!({"text": ""})]), &tokenizer, &texts));
    assert!(message.contains("1 have no trained token (") && !message.contains("data.max_length"), "{message}");
    let files = jsonl(folder.path(), &[json!({"extra_info": {"question": "1+2=", "answer": "3"}})]);
    let wrong_key = SftOptions { columns: answer("answers"), ..sft_options() };
    assert!(error(load_sft(&files, &tokenizer, &wrong_key)).contains("no field \"answers\"; its fields: answer, question"));
    // The data is text, but the default is a struct; the message says which setting to write.
    let files = jsonl(folder.path(), &[json!({"extra_info": "3", "prompt": "1+2="})]);
    let text = SftColumns::Response {
        prompt_key: "prompt".into(),
        prompt_dict_keys: vec![],
        response_key: "extra_info".into(),
        response_dict_keys: vec!["answer".into()],
    };
    let text = error(load_sft(&files, &tokenizer, &SftOptions { columns: text, ..sft_options() }));
    assert!(text.contains("not a struct") && text.contains("set data.response_dict_keys=null"), "{text}");
    assert_eq!(error(load_sft(&jsonl(folder.path(), &[]), &tokenizer, &sft_options())), "no rows");
}

/// A tokenizer of single characters and ChatML's special tokens, with the chat template.
pub(super) fn chatml_tokenizer(folder: &Path, template: &str) -> Tokenizer {
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

/// Compares with texts put together by hand: in each assistant turn, the text after the template's `<|im_start|>assistant` line
/// up to and including `<|im_end|>` is trained.
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
    let examples = load_sft(&files, &tokenizer, &conversations(Overlong::Error, 200)).unwrap();
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
        let of = |(learnt, ids): (&bool, &Vec<u32>)| vec![f32::from(*learnt); ids.len()];
        let weights: Vec<f32> = parts.iter().map(|(_, learnt)| learnt).zip(&ids).flat_map(of).collect();
        assert_eq!((&example.ids, &example.weights), (&ids.concat(), &weights));
        assert!(!example.ids.contains(&3), "<unk>: the test's tokenizer does not know a character");
    }
    let cut = &load_sft(&files, &tokenizer, &conversations(Overlong::Left, 4)).unwrap()[0];
    assert_eq!(
        (tokenizer.decode(&cut.ids, false).unwrap().as_str(), &cut.weights[..]),
        ("\n5<|im_end|>\n", &[1.0, 1.0, 1.0, 0.0][..])
    );
}

#[test]
fn conversations_that_have_no_right_mask_are_errors_that_name_the_row() {
    let folder = tempfile::tempdir().unwrap();
    let say = |role: &str, content: &str| json!({"role": role, "content": content});
    let good = json!({"messages": [say("user", "1"), say("assistant", "2")]});
    let load = |template: &str, row: Value| {
        let tokenizer = chatml_tokenizer(folder.path(), template);
        load_sft(&jsonl(folder.path(), &[good.clone(), row]), &tokenizer, &conversations(Overlong::Error, 200))
    };
    // CHATML drops the thoughts of earlier turns.
    let thoughts = json!({"messages": [say("user", "1"), say("assistant", "<think>x</think>2"), say("user", "3")]});
    assert!(load(CHATML, thoughts).is_ok(), "the same text before any later text");
    for (template, row, part) in [
        (QWEN2, json!({"messages": [say("user", "1")]}), "no turn of the assistant"),
        (QWEN2, json!({"messages": "1"}), "must be a list of messages"),
        (QWEN2, json!({"messages": [say("user", "1"), say("assistant", "2")], "tools": "f"}), "\"tools\" must be a list"),
    ] {
        let message = error(load(template, row));
        assert!(message.contains("rows.jsonl, row 1") && message.contains(part), "{message}");
    }
    let endless = "{% for m in messages %}{{ m.content }}{% endfor %}";
    assert!(error(load(endless, good.clone())).contains("message 1: the chat template does not end the turn"));
    // A conversation that begins with the assistant.
    assert!(load(QWEN2, json!({"messages": [say("assistant", "2"), say("user", "1")]})).is_ok());
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
    let mut options = conversations(Overlong::Error, 200);
    options.chat_kwargs.insert("enable_thinking".into(), json!(true));
    let examples = load_sft(&jsonl(folder.path(), &rows), &tokenizer, &options).unwrap();
    let texts: Vec<String> = examples.iter().map(|example| tokenizer.decode(&example.ids, false).unwrap()).collect();
    let with_tools = "[{\"name\": \"f\"}]True1<eos>2<eos>";
    assert_eq!(texts, [with_tools, "False1<eos>2<eos>", with_tools, "True1<eos>2<eos>"]);
}

/// Weights and roles, with expectations by hand: QWEN2 has no marks, so turns are found by prefixes.
#[test]
fn messages_weigh_and_their_roles_are_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = chatml_tokenizer(folder.path(), QWEN2);
    let turns = json!([
        {"from": "human", "value": "1"}, {"from": "gpt", "value": "22", "weight": 0.5},
        {"role": "user", "content": "3"}, {"role": "assistant", "content": "44", "train": false},
        {"role": "user", "content": "5"}, {"role": "assistant", "content": "66"},
    ]);
    let load = |roles: &[&str], turns: &Value| {
        let options = SftOptions {
            loss_roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            ..conversations(Overlong::Error, 400)
        };
        load_sft(&jsonl(folder.path(), &[json!({"messages": turns})]), &tokenizer, &options)
    };
    let message = |document: &Document, weight: f32| {
        let ids: Vec<u32> =
            document.ids.iter().zip(&document.weights).filter(|(_, w)| **w == weight).map(|(id, _)| *id).collect();
        tokenizer.decode(&ids, false).unwrap()
    };
    let document = &load(&["assistant"], &turns).unwrap()[0];
    assert_eq!([message(document, 0.5), message(document, 1.0)], ["22<|im_end|>", "66<|im_end|>"]);
    let document = &load(&["user"], &turns).unwrap()[0];
    assert_eq!(message(document, 1.0), "1<|im_end|>3<|im_end|>5<|im_end|>");
    for (field, value, part) in [
        ("weight", json!(-1), "message 0: \"weight\" must be a number of at least 0"),
        ("train", json!("no"), "message 0: \"train\" must be"),
    ] {
        let mut turns = turns.clone();
        turns[0][field] = value;
        assert!(error(load(&["assistant"], &turns)).contains(part));
    }
}

/// The start of a turn does not depend on whether its text can be found in the template's output.
#[test]
fn the_header_of_a_role_is_never_learnt() {
    let folder = tempfile::tempdir().unwrap();
    let trims = "{% for m in messages %}{{ '+' ~ m.role ~ '-' ~ (m.content | trim) ~ '<|im_end|>' }}{% endfor %}";
    let cases = [
        (json!("11"), "11"),
        (json!(" 11 "), "11"),
        (json!([{"type": "text", "text": "11"}, {"type": "text", "text": "2"}]), "112"),
        (json!("+"), "+"),
        (json!("user"), "user"),
        (json!(""), ""),
    ];
    let load = |template: &str, content: &Value| {
        let tokenizer = chatml_tokenizer(folder.path(), template);
        let turns = json!([{"role": "user", "content": content}, {"role": "assistant", "content": "2"}]);
        let options = SftOptions { loss_roles: vec!["user".into()], ..conversations(Overlong::Error, 400) };
        let document = load_sft(&jsonl(folder.path(), &[json!({"messages": turns})]), &tokenizer, &options)?.remove(0);
        let learnt: Vec<u32> =
            document.ids.iter().zip(&document.weights).filter(|(_, w)| **w == 1.0).map(|(id, _)| *id).collect();
        tokenizer.decode(&learnt, false)
    };
    for (content, learnt) in cases {
        assert_eq!(load(trims, &content).unwrap(), format!("{learnt}<|im_end|>"), "{content}");
    }
    let counts = trims.replace("m.role", "(m.content | length)");
    for (template, part) in [
        (counts.as_str(), "the beginning of its text is unknown"),
        ("{{ '1<|im_end|>' }}", "the chat template does not write the text"),
    ] {
        let message = error(load(template, &json!("11")));
        assert!(message.contains(&format!("row 0: column \"messages\": message 0: {part}")), "{message}");
    }
}

/// The weight of a message counts, or is refused: by a mask without the assistant it would be lost.
#[test]
fn messages_of_prompts_and_answers_weigh_only_where_the_assistant_is_learnt() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = chatml_tokenizer(folder.path(), QWEN2);
    let row = json!({
        "prompt": [{"role": "user", "content": "11"}],
        "completion": [{"role": "assistant", "content": "22", "train": false}, {"role": "user", "content": "1"},
                       {"role": "assistant", "content": "3", "weight": 0.5}],
    });
    let files = jsonl(folder.path(), &[row]);
    let load = |columns: &SftColumns, loss_mask| {
        load_sft(&files, &tokenizer, &SftOptions { columns: columns.clone(), loss_mask, max_length: 400, ..sft_options() })
    };
    let columns = SftColumns::Completion { prompt_key: "prompt".into(), completion_key: "completion".into() };
    for mask in [LossMask::ASSISTANT, LossMask { assistant: true, completion: true }] {
        let document = &load(&columns, mask).unwrap()[0];
        let weights: Vec<f32> = document.weights.iter().copied().filter(|weight| *weight != 0.0).collect();
        assert_eq!(weights, [0.5; 2], "3 and its end");
    }
    let response = SftColumns::Response {
        prompt_key: "completion".into(),
        prompt_dict_keys: vec![],
        response_key: "prompt".into(),
        response_dict_keys: vec![],
    };
    for (columns, mask, needs) in [
        (&columns, LossMask::COMPLETION, "data.loss_mask=[assistant,completion]"),
        (&columns, LossMask::ALL, "data.loss_mask=[assistant,completion]"),
        (&response, LossMask::COMPLETION, "data.messages_key"),
    ] {
        let message = error(load(columns, mask));
        assert!(message.contains("column \"completion\": a message has a") && message.contains(needs), "{message}");
    }
}

/// Every format of pairs, and the rows that are refused or left out by name.
#[test]
fn pairs_are_read_in_every_form_and_what_is_left_out_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = chatml_tokenizer(folder.path(), QWEN2);
    let options = |truncation, max_length, answers| PairOptions {
        columns: PairColumns {
            prompt_key: Some("prompt".into()),
            chosen_key: "chosen".into(),
            rejected_key: "rejected".into(),
            gold_key: None,
            margin_key: None,
            chat: sft_options().chat,
        },
        answers,
        max_length,
        truncation,
        chat_kwargs: TemplateVariables::default(),
        reading: RowSelection::default(),
    };
    let load = |rows: &[Value], truncation, max| {
        load_pairs(&jsonl(folder.path(), rows), &tokenizer, &options(truncation, max, ScoredPart::AfterPrompt))
    };
    let text = |ids: &[u32]| tokenizer.decode(ids, false).unwrap();
    let explicit = json!({"prompt": "1+1=", "chosen": "2", "rejected": "33"});
    let implicit = json!({"chosen": "1+1=2", "rejected": "1+1=33"});
    for row in [&explicit, &implicit] {
        let pair = load(std::slice::from_ref(row), Overlong::Error, 9).unwrap().remove(0);
        let [(prompt, chosen), (_, rejected)] = pair.sides();
        assert_eq!([text(prompt), text(chosen), text(rejected)], ["1+1=", "2<eos>", "33<eos>"]);
    }
    // Cut on the left, each side loses its own beginning.
    let pair = load(std::slice::from_ref(&explicit), Overlong::Left, 3).unwrap().remove(0);
    assert_eq!(
        pair.sides().map(|(prompt, answer)| [text(prompt), text(answer)]),
        [["=", "2<eos>"], ["3", "3<eos>"]].map(|s| s.map(String::from))
    );
    let equal = json!({"prompt": "1+1=", "chosen": "22", "rejected": "23"});
    for (rows, truncation, max, part) in [
        (vec![explicit.clone()], Overlong::Error, 6, "a side has 7 tokens, more than data.max_length=6"),
        (vec![json!({"chosen": "2", "rejected": "3"})], Overlong::Error, 9, "set data.prompt_key"),
        (
            vec![json!({"prompt": "1", "chosen": "2", "rejected": []})],
            Overlong::Error,
            9,
            "column \"rejected\" is a list of messages",
        ),
        (vec![equal.clone()], Overlong::Right, 5, "1 have two answers that are equal after the cut"),
        (vec![explicit.clone()], Overlong::Right, 4, "1 have a prompt of data.max_length tokens or more"),
        (vec![explicit.clone()], Overlong::Filter, 6, "1 have a side of more than data.max_length tokens"),
    ] {
        let message = error(load(&rows, truncation, max));
        assert!(message.contains("rows.jsonl, row 0") && message.contains(part), "{message}");
    }
    // The source of a prompt, and the messages where whole sides are scored.
    let turn = |role: &str, content: &str| json!({"role": role, "content": content});
    let conversations = |prompt: &str| {
        let side = |answer: &str| json!([turn("user", "1+1="), turn("assistant", answer)]);
        json!({"prompt": prompt, "chosen": side("2"), "rejected": side("3")})
    };
    let answers = json!({"prompt": "1+1=", "chosen": [turn("assistant", "2")], "rejected": [turn("assistant", "3")]});
    let (alone, equal_end) = ("have no prompt, and answers without a common beginning", "equal after the cut at data.max_length");
    let apart = "column \"prompt\" is text, but the conversations do not begin with it";
    let no_prompt = "the row has no prompt";
    for (row, max, after_prompt, whole) in [
        (&explicit, 9, "", ""),
        (&implicit, 9, "", ""),
        (&json!({"question": "1+1=", "chosen": "2", "rejected": "33"}), 9, no_prompt, alone),
        (&json!({"prompt": null, "chosen": "2", "rejected": "33"}), 9, no_prompt, alone),
        (&conversations("1+1= "), 99, "", ""),
        (&conversations("2+2="), 99, apart, apart),
        (&answers, 99, apart, apart),
        (&explicit, 6, "are cut at data.max_length", "are cut at data.max_length"),
        (&json!({"prompt": "1", "chosen": "1111", "rejected": "1112"}), 4, equal_end, equal_end),
    ] {
        for (answers, expected) in [(ScoredPart::AfterPrompt, after_prompt), (ScoredPart::Whole, whole)] {
            let files = jsonl(folder.path(), std::slice::from_ref(row));
            let said_of = match read_pairs(&files, &tokenizer, &options(Overlong::Right, max, answers)) {
                Ok(read) => format!("{:?}", read.tally),
                Err(error) => format!("{error:#}"),
            };
            assert!(said_of.contains(expected), "{row} {answers:?}: {said_of}");
            let is_silent = said_of.ends_with("left_out: {}, noted: {} }");
            assert_eq!(is_silent, expected.is_empty(), "{row} {answers:?}: {said_of}");
        }
    }
    let bare = chatml_tokenizer(folder.path(), "{% for m in messages %}{{ m.content }}{% endfor %}");
    let empty = json!({"prompt": [], "chosen": [turn("user", "")], "rejected": [turn("user", "1")]});
    let message = error(load_pairs(&jsonl(folder.path(), &[empty]), &bare, &options(Overlong::Right, 9, ScoredPart::Whole)));
    assert!(message.contains("1 have an answer without tokens"), "{message}");
    assert_eq!(load(&[explicit, equal], Overlong::Right, 5).unwrap().len(), 1, "half of the rows");
}

/// Tokens that a row of steps loses are reported, and a label of another form is shown verbatim.
#[test]
fn judged_steps_that_are_cut_off_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = char_tokenizer(folder.path());
    let rows = StepRows::Lists {
        prompt_key: "prompt".into(),
        completions_key: "completions".into(),
        labels_key: "labels".into(),
        separator: "\n".into(),
        last_only: false,
    };
    for (steps, labels, max, parts) in [
        (json!(["2", "33"]), json!([true, 0.5]), 8, vec!["left_out: {}, noted: {} }"]),
        (
            json!(["2", "33"]),
            json!([true, 0.5]),
            6,
            vec!["are cut at data.max_length", "lose labelled steps beyond data.max_length"],
        ),
        (json!(["2", "33"]), json!([true, 0.5]), 4, vec!["have no labelled step within data.max_length tokens"]),
        (json!([]), json!([]), 8, vec!["\"have no labelled step\""]),
        (json!(["2"]), json!(["+"]), 8, vec!["label 0: it must be true, false", "not \"+\"", "data.placeholder_token"]),
    ] {
        let row = json!({"prompt": "1+1", "completions": steps, "labels": labels});
        let options = StepOptions { rows: rows.clone(), max_length: max, cut: true, reading: RowSelection::default() };
        let message = match read_steps(&jsonl(folder.path(), &[row]), &tokenizer, &options) {
            Ok(read) => format!("{:?}", read.tally),
            Err(error) => format!("{error:#}"),
        };
        assert!(parts.iter().all(|part| message.contains(part)), "{max}: {message}");
    }
}
