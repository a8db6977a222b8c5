//! Data sets that `trainer data` writes.

use super::*;

fn settings(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
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
