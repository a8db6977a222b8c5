//! The settings in which runs differ.

use std::collections::BTreeMap;

use serde_json::Value;

use super::record::RecordedRun;

/// Settings that name or place a run: they differ between any two runs.
const NAMES: &[&str] =
    &["trainer.experiment_name", "trainer.default_local_dir", "trainer.resume_mode", "trainer.resume_from_path"];

/// A setting and its value in each run; `None` if a run has no such setting.
pub type SettingDifference = (String, Vec<Option<Value>>);

/// Returns the settings with different values, sorted by their keys. Runs without a record are left out of the comparison.
pub fn differences(runs: &[&RecordedRun]) -> Vec<SettingDifference> {
    let mut values: BTreeMap<&str, Vec<Option<&Value>>> = BTreeMap::new();
    let has_settings = |run: &RecordedRun| run.info.as_ref().is_some_and(|info| !info.config.is_empty());
    for (index, run) in runs.iter().enumerate() {
        for setting in run.info.iter().flat_map(|info| &info.config) {
            values.entry(&setting.key).or_insert_with(|| vec![None; runs.len()])[index] = Some(&setting.value);
        }
    }
    let compared: Vec<usize> = (0..runs.len()).filter(|index| has_settings(runs[*index])).collect();
    let differs = |values: &[Option<&Value>]| compared.iter().any(|index| values[*index] != values[compared[0]]);
    let found = values.into_iter().filter(|(key, values)| !NAMES.contains(key) && differs(values));
    found.map(|(key, values)| (key.to_owned(), values.into_iter().map(Option::<&Value>::cloned).collect())).collect()
}

/// Returns for each run, on one line, the settings in which it differs from another run of its kind. Keys are cut to the parts
/// that tell them apart.
pub fn differing(runs: &[&RecordedRun]) -> Vec<String> {
    let kind = |run: &RecordedRun| run.info.as_ref().map(|info| info.kind.clone());
    let mut texts = vec![String::new(); runs.len()];
    let mut kinds: Vec<_> = runs.iter().filter_map(|run| kind(run)).collect();
    kinds.sort();
    kinds.dedup();
    for of_kind in kinds {
        let members: Vec<usize> = (0..runs.len()).filter(|index| kind(runs[*index]).as_ref() == Some(&of_kind)).collect();
        let found = differences(&members.iter().map(|index| runs[*index]).collect::<Vec<_>>());
        let keys: Vec<&str> = found.iter().map(|(key, _)| key.as_str()).collect();
        for (column, index) in members.iter().enumerate() {
            let settings = found.iter().filter_map(|(key, values)| Some((key, values[column].as_ref()?)));
            let settings: Vec<String> =
                settings.map(|(key, value)| format!("{}={}", short_key(key, &keys), shown(value))).collect();
            texts[*index] = settings.join(" ");
        }
    }
    texts
}

/// Returns the shortest end of a key that no other key has.
pub fn short_key<'a>(key: &'a str, keys: &[&str]) -> &'a str {
    let is_alone = |end: &str| keys.iter().filter(|other| **other == end || other.ends_with(&format!(".{end}"))).count() == 1;
    let starts = key.rmatch_indices('.').map(|(dot, _)| dot + 1);
    starts.map(|start| &key[start..]).find(|end| is_alone(end)).unwrap_or(key)
}

/// Returns a value in the form of the command line.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(",")),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use burnish_run::{RecordedSetting, RunInfo};

    #[test]
    fn settings_are_told_by_the_shortest_ends_that_differ() {
        let dir = tempfile::tempdir().unwrap();
        let record = |name: &str, kind: &str, settings: &[(&str, Value)]| {
            let setting =
                |(key, value): &(&str, Value)| RecordedSetting { key: (*key).into(), value: value.clone(), from: "x".into() };
            let info = RunInfo { config: settings.iter().map(setting).collect(), ..RunInfo::new(kind, "p", name) };
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
            info.write(&dir.path().join(name)).unwrap();
            RecordedRun::read(&dir.path().join(name))
        };
        let runs = [
            record("a", "ppo", &[("actor.optim.lr", json!(1e-5)), ("critic.optim.lr", json!(1)), ("trainer.seed", json!(1))]),
            record("b", "ppo", &[("actor.optim.lr", json!(1e-6)), ("critic.optim.lr", json!(2)), ("trainer.seed", json!(1))]),
            record("c", "sft", &[("optim.lr", json!(3)), ("trainer.experiment_name", json!("c"))]),
        ];
        let all: Vec<&RecordedRun> = runs.iter().collect();
        assert_eq!(
            differing(&all),
            ["actor.optim.lr=0.00001 critic.optim.lr=1", "actor.optim.lr=1e-6 critic.optim.lr=2", ""]
                .map(|text| text.replace("0.00001", &json!(1e-5).to_string()))
        );
        let pair = differences(&all[..2]);
        assert_eq!(pair.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["actor.optim.lr", "critic.optim.lr"]);
    }
}
