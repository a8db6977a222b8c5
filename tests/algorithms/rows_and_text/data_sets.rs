//! Data sets that `trainer data` writes.

use super::*;

fn settings(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

/// Writes the files for `--input`, runs a preparer, and returns the rows of each written file by its path.
fn prepared(name: &str, pairs: &[(&str, &str)], write: impl Fn(&Path)) -> anyhow::Result<Vec<(String, Vec<Value>)>> {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("published"), folder.path().join("out"));
    fs::create_dir(&input).unwrap();
    write(&input);
    let args = PrepareArgs { inputs: vec![input], output: output.clone(), settings: settings(pairs) };
    let report = (prepare::find(name).unwrap().run)(&args)?;
    let rows = report.files.iter().map(|(path, count)| {
        let rows = read_rows(std::slice::from_ref(path), &[], &["*"]).unwrap();
        assert_eq!(rows.len(), *count);
        let beside = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert!(!beside.into_iter().any(|name| name.starts_with('.')), "temporary files are left");
        let name = path.strip_prefix(&output).unwrap().to_str().unwrap().to_owned();
        (name, rows.into_iter().map(|row| Value::Object(row.values)).collect())
    });
    Ok(rows.collect())
}

fn write_jsonl(path: &Path, rows: &[Value]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, rows.iter().map(|row| format!("{row}\n\n")).collect::<String>()).unwrap();
}

/// Writes rows of JSON as parquet, the format on the Hub.
fn write_table(path: &Path, rows: &[Value]) {
    let lines = path.with_extension("jsonl");
    write_jsonl(&lines, rows);
    RowTable::read(std::slice::from_ref(&lines)).unwrap().write_columns(path, &[], &[]).unwrap();
    fs::remove_file(lines).unwrap();
}

fn file<'a>(files: &'a [(String, Vec<Value>)], name: &str) -> &'a [Value] {
    &files.iter().find(|(path, _)| path == name).unwrap_or_else(|| panic!("{name} is not among {files:?}")).1
}

#[test]
fn gsm8k_becomes_verl_rows() {
    let line = json!({"question": "How many?", "answer": "So 1,000 + <<234>>234.\n#### 1,234"});
    let rows = [line.clone(), line.clone()];
    let files = prepared("gsm8k", &[], |folder| {
        ["train", "test"].iter().for_each(|split| write_jsonl(&folder.join(format!("{split}.jsonl")), &rows));
    });
    let files = files.unwrap();
    assert_eq!(files.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["train.parquet", "test.parquet"]);
    let expected = json!({
        "data_source": "openai/gsm8k",
        "prompt": [{"role": "user", "content":
            "How many? Let's think step by step and output the final answer after \"####\"."}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": "1234"},
        "extra_info": {"split": "test", "index": 1, "question": line["question"], "answer": line["answer"]},
    });
    assert_eq!(file(&files, "test.parquet")[1], expected);
    // The files of the data set's page on the Hub.
    let of_the_hub = prepared("gsm8k", &[], |folder| {
        ["train", "test"]
            .iter()
            .for_each(|split| write_table(&folder.join(format!("main/{split}-00000-of-00001.parquet")), &rows));
    });
    assert_eq!(of_the_hub.unwrap(), files);
    let missing = error(prepared("gsm8k", &[], |folder| write_jsonl(&folder.join("train.jsonl"), &rows)));
    assert!(missing.contains("the split \"test\" is missing; looked for test.jsonl"), "{missing}");
    let wrong = error(prepared("gsm8k", &[], |folder| {
        ["train", "test"]
            .iter()
            .for_each(|split| write_jsonl(&folder.join(format!("{split}.jsonl")), &[json!({"question": "?", "answer": "4"})]));
    }));
    assert!(wrong.contains("train.jsonl, row 0") && wrong.contains("no \"#### NUMBER\""), "{wrong}");
}

/// Answers are compared with verl's own functions, and columns with `datasets`.
#[test]
fn math_golden() {
    let golden: Value = serde_json::from_str(include_str!("../../golden/data-sets.json")).unwrap();
    let (solved, unsolved): (Vec<&Value>, Vec<&Value>) =
        golden["solutions"].as_array().unwrap().iter().partition(|case| case["ground_truth"].is_string());
    let published =
        |case: &&Value| json!({"problem": "2+2?", "level": "Level 1", "type": "Algebra", "solution": case["solution"]});
    let rows: Vec<Value> = solved.iter().map(published).collect();
    let half = rows.len() / 2;
    let files = prepared("math", &[], |folder| {
        // One split in two parts, like large data sets.
        write_table(&folder.join("data/train-00000-of-00002.parquet"), &rows[..half]);
        write_table(&folder.join("data/train-00001-of-00002-0123456789abcdef.parquet"), &rows[half..]);
        write_jsonl(&folder.join("data/test.jsonl"), &rows[..1]);
    });
    let files = files.unwrap();
    let train = file(&files, "train.parquet");
    assert_eq!(train.len(), solved.len());
    for (index, (row, case)) in train.iter().zip(&solved).enumerate() {
        let expected = json!({
            "level": golden["mapped"]["level"],
            "type": golden["mapped"]["type"],
            "data_source": "DigitalLearningGmbH/MATH-lighteval",
            "prompt": [{"role": "user", "content":
                "2+2? Let's think step by step and output the final answer within \\boxed{}."}],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": case["ground_truth"]},
            "extra_info": {"split": "train", "index": index},
        });
        assert_eq!(*row, expected, "{case}");
    }
    assert_eq!(golden["mapped"].as_object().unwrap().len(), 5, "the columns that are read do not stay");
    for case in unsolved {
        let wrong = error(prepared("math", &[], |folder| {
            ["train", "test"].iter().for_each(|split| write_jsonl(&folder.join(format!("{split}.jsonl")), &[published(&case)]));
        }));
        assert!(wrong.contains("row 0") && wrong.contains("no answer in \\boxed{}"), "{case}: {wrong}");
    }
    let torn = error(prepared("math", &[], |folder| {
        write_table(&folder.join("data/train-00000-of-00002.parquet"), &rows);
        write_jsonl(&folder.join("test.jsonl"), &rows);
    }));
    assert!(torn.contains("\"train\" has 1 of its 00002 parts"), "{torn}");
}

#[test]
fn geo3k_keeps_its_pictures_or_drops_them() {
    let write = |folder: &Path| {
        let texts = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text])) };
        let picture =
            |name: &str| Arc::new(Field::new(name, if name == "bytes" { DataType::Binary } else { DataType::Utf8 }, true));
        let columns: [ArrayRef; 2] = [Arc::new(BinaryArray::from(vec![b"\x89PNG\xff".as_slice()])), texts("a.png")];
        let fields = ["bytes", "path"].map(picture).to_vec();
        let picture: ArrayRef = Arc::new(arrow::array::StructArray::new(fields.into(), columns.to_vec(), None));
        let element = Arc::new(Field::new("element", picture.data_type().clone(), true));
        let offsets = arrow::buffer::OffsetBuffer::from_lengths([1]);
        let images: ArrayRef = Arc::new(arrow::array::ListArray::new(element, offsets, picture, None));
        let columns = [("images", images), ("problem", texts("<image>Find x.")), ("answer", texts("3"))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        for split in ["train", "test"] {
            let path = folder.join(format!("data/{split}-00000-of-00001.parquet"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            write_batches(&path, batch.schema(), [Ok(batch.clone())]).unwrap();
        }
    };
    let instruction = " You FIRST think about the reasoning process as an internal monologue and then provide the final answer. The \
                       reasoning process MUST BE enclosed within <think> </think> tags. The final answer MUST BE put in \\boxed{}.";
    for (images, beginning) in [("keep", "<image>Find x."), ("drop", "Find x.")] {
        let files = prepared("geo3k", &[("images", images)], write).unwrap();
        let mut row = file(&files, "test.parquet")[0].clone();
        // The bytes of a picture are not JSON; readers here only see that the row has one.
        assert_eq!(row.as_object_mut().unwrap().remove("images"), (images == "keep").then_some(Value::Bool(true)));
        let expected = json!({
            "data_source": "hiyouga/geometry3k",
            "prompt": [{"role": "user", "content": format!("{beginning}{instruction}")}],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": "3"},
            "extra_info": {"split": "test", "index": 0, "answer": "3", "question": "<image>Find x."},
        });
        assert_eq!(row, expected);
    }
    assert!(error(prepared("geo3k", &[("images", "none")], write)).contains("keep or drop"));
}

#[test]
fn hh_rlhf_becomes_three_data_sets() {
    let row = |i: usize| {
        json!({"prompt": format!("\n\nHuman: {i}?\n\nAssistant:"), "response": format!(" r{i}"), "chosen": format!(" c{i}"),
               "rejected": format!(" x{i}")})
    };
    let rows: Vec<Value> = (0..6).map(row).collect();
    let files =
        prepared("hh_rlhf", &[], |folder| write_table(&folder.join("data/train-00000-of-00001-8349.parquet"), &rows)).unwrap();
    let sizes: Vec<(&str, usize)> = files.iter().map(|(name, rows)| (name.as_str(), rows.len())).collect();
    // 75 % of six rows is 4.5, which rounds to the even 4; four rows are also before the last 25 %.
    assert_eq!(sizes, [("sft/train.parquet", 12), ("rm/train.parquet", 4), ("rm/test.parquet", 2), ("rl/train.parquet", 6)]);
    let expected = [
        ("sft/train.parquet", 3, json!({"prompt": rows[1]["prompt"], "response": " x1"})),
        ("rm/test.parquet", 0, json!({"prompt": rows[4]["prompt"], "chosen": " c4", "rejected": " x4"})),
        (
            "rl/train.parquet",
            5,
            json!({
                "chosen": " c5",
                "rejected": " x5",
                "data_source": "Dahoas/full-hh-rlhf",
                "prompt": [{"role": "user", "content": rows[5]["prompt"]}],
                "ability": "alignment",
                "reward_model": {"style": "model", "ground_truth": " r5"},
                "extra_info": {"split": "train", "index": 5},
            }),
        ),
    ];
    for (name, at, row) in expected {
        assert_eq!(file(&files, name)[at], row);
    }
}

#[test]
fn tldr_has_posts_and_references() {
    let post = "SUBREDDIT: r/cats\n\nTITLE: Mine\n\nPOST: It sleeps.\n\nTL;DR:";
    let messages = |reply: &str| json!([{"role": "user", "content": post}, {"role": "assistant", "content": reply}]);
    let continued = [json!({"prompt": post, "completion": " Cat sleeps."})];
    let conversations = [
        json!({"prompt": post, "messages": messages(" Sleeps."), "chosen": messages(" Better."), "rejected": messages(" Worse.")}),
    ];
    let row = |prompt: Value, source: &str, truth: &str| {
        json!({"data_source": source, "prompt": prompt, "ability": "summarization",
               "reward_model": {"style": "model", "ground_truth": truth}, "extra_info": {"split": "train", "index": 0}})
    };
    let (of_lib, of_talks) = ("trl-lib/tldr", "trl-internal-testing/tldr-preference-sft-trl-style");
    let message = json!([{"role": "user", "content": post}]);
    for (published, settings, expected) in [
        (&continued, vec![], row(message.clone(), of_lib, " Cat sleeps.")),
        (&continued, vec![("prompt", "text")], row(json!(post), of_lib, " Cat sleeps.")),
        (&conversations, vec![], row(message.clone(), of_talks, " Sleeps.")),
        (&conversations, vec![("prompt", "text")], row(json!(post), of_talks, " Sleeps.")),
    ] {
        let files =
            prepared("tldr", &settings, |folder| write_table(&folder.join("data/train-00000-of-00001.parquet"), published));
        let files = files.unwrap();
        assert_eq!(file(&files, "train.parquet"), [expected]);
        let pairs = files.iter().find(|(name, _)| name == "pairs/train.parquet").map(|(_, rows)| rows.clone());
        let expected = json!({"prompt": post, "chosen": " Better.", "rejected": " Worse."});
        assert_eq!(pairs, (published == &conversations).then(|| vec![expected]));
    }
}

#[test]
fn dapo_math_is_taken_over() {
    let row = |question: &str| {
        json!({"data_source": "math_dapo", "prompt": [{"role": "user", "content": question}], "ability": "MATH",
               "reward_model": {"ground_truth": "34", "style": "rule-lighteval/MATH_v2"}, "extra_info": {"index": "9a9b"}})
    };
    let rows = [row("a"), row("b"), row("a")];
    for (settings, expected) in [(vec![], &rows[..]), (vec![("unique", "true")], &rows[..2])] {
        let files = prepared("dapo_math", &settings, |folder| {
            write_table(&folder.join("data/dapo-math-17k.parquet"), &rows);
            write_table(&folder.join("aime-2024.parquet"), &rows[..1]);
        });
        let files = files.unwrap();
        assert_eq!(file(&files, "dapo-math-17k.parquet"), expected);
        assert_eq!(file(&files, "aime-2024.parquet"), &rows[..1]);
    }
    assert!(error(prepared("dapo_math", &[], |_| {})).contains("dapo-math-17k.parquet is missing"));
}

#[test]
fn arithmetic_is_distinct_disjoint_and_repeatable() {
    let folder = tempfile::tempdir().unwrap();
    let pairs = [("train", "150"), ("test", "50"), ("max_operand", "9"), ("ops", "+-"), ("seed", "5")];
    let make = |name: &str| {
        let output = folder.path().join(name);
        let args = PrepareArgs { inputs: vec![], output: output.clone(), settings: settings(&pairs) };
        (prepare::find("arithmetic").unwrap().run)(&args).unwrap();
        output
    };
    let (a, b) = (make("a"), make("b"));
    let answers = ["pairs", "unpaired", "steps"].map(|kind| format!("{kind}/test.parquet"));
    let files = ["train.parquet", "test.parquet", "tokenizer/tokenizer.json", "tokenizer/tokenizer_config.json"];
    for file in files.into_iter().chain(answers.iter().map(String::as_str)) {
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
        let args = PrepareArgs { inputs: vec![], output: a.clone(), settings: settings(pairs) };
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
