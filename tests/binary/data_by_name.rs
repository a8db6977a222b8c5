//! `trainer data NAME` without `--input`: the published files come from the Hub, here a local server with the Hub's paths.

use std::fs;
use std::path::Path;

use burnish::data::RowTable;
use burnish::data::rows::read_rows;
use serde_json::{Value, json};

use crate::common::{succeed, trainer};
use crate::hub_server::HubServer;

/// Rows as the bytes of a parquet file.
fn parquet(folder: &Path, row: &Value) -> Vec<u8> {
    let (lines, table) = (folder.join("rows.jsonl"), folder.join("rows.parquet"));
    fs::write(&lines, format!("{row}\n{row}\n")).unwrap();
    RowTable::read(&[lines]).unwrap().write_columns(&table, &[], &[]).unwrap();
    fs::read(table).unwrap()
}

#[test]
fn data_sets_are_prepared_from_their_names() {
    let (server, folder) = (HubServer::start(), tempfile::tempdir().unwrap());
    let problem = parquet(folder.path(), &json!({"question": "2+2?", "answer": "#### 4"}));
    let (train, test) = ("main/train-00000-of-00001.parquet", "main/test-00000-of-00001.parquet");
    let other = "socratic/train-00000-of-00001.parquet";
    server.put("datasets/openai/gsm8k", &[(train, &problem), (test, &problem), (other, b"not read")]);
    let of_verl = json!({"data_source": "math_dapo", "prompt": [{"role": "user", "content": "2+2?"}], "ability": "MATH",
                         "reward_model": {"ground_truth": "4", "style": "rule"}, "extra_info": {"index": "a"}});
    let of_verl = parquet(folder.path(), &of_verl);
    server.put("datasets/BytedTsinghua-SIA/DAPO-Math-17k", &[("data/dapo-math-17k.parquet", &of_verl)]);
    server.put("datasets/BytedTsinghua-SIA/AIME-2024", &[("data/aime-2024.parquet", &of_verl)]);

    for (name, files) in
        [("gsm8k", ["train.parquet", "test.parquet"]), ("dapo_math", ["dapo-math-17k.parquet", "aime-2024.parquet"])]
    {
        let output = folder.path().join(name);
        let mut data = trainer(&["data", name, "--output", output.to_str().unwrap()]);
        data.env("HF_ENDPOINT", &server.endpoint).env("HF_HOME", folder.path().join("home")).env_remove("HF_HUB_OFFLINE");
        succeed(data);
        for file in files {
            let rows = read_rows(&[output.join(file)], &["reward_model"], &[]).unwrap();
            assert_eq!((rows.len(), &rows[0].values["reward_model"]["ground_truth"]), (2, &json!("4")), "{name} {file}");
        }
    }
    let mut offline = trainer(&["data", "math", "--output", folder.path().join("math").to_str().unwrap()]);
    let output = offline.env("HF_HOME", folder.path()).env("HF_HUB_OFFLINE", "1").output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(2) && messages.contains("--input") && messages.contains("HF_HUB_OFFLINE is set"),
        "{messages}"
    );
}
