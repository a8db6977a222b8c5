//! Rows made from scored responses: OpenRLHF's processors exactly, and our own on a case solved by hand.

use super::*;
use burnish::data::select::{self, ScoredResponses, SelectColumns, SelectedRows};

fn make(name: &str, lines: &[Value], options: &select::SelectOptions) -> SelectedRows {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scored.jsonl");
    fs::write(&file, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let files = [file];
    let keys = SelectColumns::choose(&files, [None; 3]).unwrap();
    let answers = ScoredResponses::read(&files, &keys).unwrap();
    (select::find(name).unwrap().make)(&answers, options).unwrap()
}

fn template(text: &str, normalize_reward: bool) -> select::SelectOptions {
    select::SelectOptions { reward_template: text.into(), normalize_reward, ..Default::default() }
}

#[test]
fn openrlhf_processors_golden() {
    let golden = &crate::cases::golden_file("offline/losses.json")["openrlhf_processors"];
    let objs = golden["objs"].as_array().unwrap();
    let cases = [
        ("rs", "rs", select::SelectOptions::default()),
        ("iter_dpo", "iter_dpo", select::SelectOptions::default()),
        ("csft", "csft", template("{input} <rm_score>: {reward} ", false)),
        ("csft_normalized", "csft", template("{input} [{reward}] ", true)),
    ];
    for (key, name, options) in cases {
        let made = make(name, objs, &options).rows;
        // For a prompt with equal scores, OpenRLHF makes a pair of one response with itself; here the prompt has no pair.
        let differs = |row: &&Value| name != "iter_dpo" || row["chosen_reward"] != row["rejected_reward"];
        let expected: Vec<&Value> = golden[key].as_array().unwrap().iter().filter(differs).collect();
        assert_eq!(made.len(), expected.len(), "{key}");
        for (made, expected) in made.iter().zip(expected) {
            assert_eq!(made.len(), expected.as_object().unwrap().len(), "{key}");
            for (name, expected) in expected.as_object().unwrap() {
                match expected.as_f64() {
                    // OpenRLHF's scores are computed in float32.
                    Some(number) => assert!((made[name].as_f64().unwrap() - number).abs() < 1e-6, "{key} {name}"),
                    None => assert_eq!(&made[name], expected, "{key}"),
                }
            }
        }
    }
}

#[test]
fn responses_become_rows() {
    let turn = |role: &str, text: &str| json!([{"role": role, "content": text}]);
    let rows = [
        json!({"prompt": turn("user", "a"), "responses": ["x", "y", "z", "w"], "scores": [0.5, 2.0, null, 2.0]}),
        json!({"prompt": "b", "responses": ["x", "y"], "scores": [1, 1]}),
        json!({"prompt": "c", "responses": ["x", "y"], "scores": [1.0, 0.75]}),
        // Another row of the same prompt.
        json!({"prompt": "c", "responses": ["z"], "scores": [true]}),
    ];
    let options = select::SelectOptions { min_margin: 0.5, threshold: Some(1.0), ..Default::default() };
    let made = |name: &str| {
        let SelectedRows { rows, left_out } = make(name, &rows, &options);
        (json!(rows), left_out.iter().map(|(count, _)| *count).collect::<Vec<_>>())
    };
    let best = |prompt: Value, completion: Value, score: f64| json!({"prompt": prompt, "completion": completion, "score": score});
    let (a, y) = (turn("user", "a"), turn("assistant", "y"));
    let expected = json!([best(a.clone(), y.clone(), 2.0), best("b".into(), "x".into(), 1.0), best("c".into(), "x".into(), 1.0)]);
    assert_eq!(made("best").0, expected);
    let pair = json!({"prompt": a, "chosen": y, "rejected": turn("assistant", "x"), "chosen_score": 2.0, "rejected_score": 0.5,
                      "margin": 1.5});
    assert_eq!(made("pairs"), (json!([pair]), vec![1, 1, 0]));
    let (good, below) = made("threshold");
    assert_eq!((good.as_array().unwrap().len(), below), (6, vec![2]));
    let (labelled, _) = made("unpaired");
    let labels: Vec<bool> = labelled.as_array().unwrap().iter().map(|row| row["label"].as_bool().unwrap()).collect();
    assert_eq!(labels, [false, true, true, true, true, true, false, true]);
}
