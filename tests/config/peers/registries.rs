//! A verdict for every name in the registries of verl, TRL, OpenRLHF, SkyRL, prime-rl, slime and transformers
//! (`peer-registries.json`). The verdicts are in `tests/data/peers/registries.tsv`: library, list, names, verdict, text.
//!
//! `NAME` in the text is the name of the peer. The verdicts:
//!
//! - `registry KIND:KEY`: NAME is a value of this setting, in its registry or among its words;
//! - `setting KIND:KEY`: this key is a setting, or verl's key with a treatment;
//! - `option COMMAND`: the converter of the library has a treatment for this option;
//! - `conversion OPTION`: `trainer from-trl` converts this value of the option, or refuses it by name;
//! - `here`: how to get it; `KEY=VALUE` in the text is checked;
//! - `refused`, `unused`: why.

use burnish::algorithm::rollout_correction::CRITERIA;
use burnish::cli::choices;
use burnish::config::compat::row;
use burnish::config::{Kind, complete, defaults};
use burnish::convert::from_openrlhf::OPENRLHF;
use burnish::convert::from_trl::TRL;
use serde_json::Value;

use super::{converted, words};

const TABLE: &str = include_str!("../../data/peers/registries.tsv");

/// A row of the table.
struct VerdictRow {
    peer: &'static str,
    list: &'static str,
    names: Vec<&'static str>,
    verdict: &'static str,
    text: &'static str,
}

fn rows() -> Vec<VerdictRow> {
    let row = |line: &'static str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [peer, list, names, verdict, text] = cells[..] else { panic!("not five columns: {line}") };
        VerdictRow { peer, list, names: names.split(' ').collect(), verdict, text }
    };
    TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(row).collect()
}

impl VerdictRow {
    fn covers(&self, peer: &str, list: &str, name: &str) -> bool {
        let fits = |pattern: &&str| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => *pattern == name,
        };
        self.peer == peer && self.list == list && self.names.iter().any(fits)
    }

    /// Returns the reason why the verdict does not hold for a name.
    fn problem(&self, name: &str) -> Option<String> {
        let text = self.text.replace("NAME", name.trim_start_matches("--"));
        match self.verdict {
            "registry" => value_problem(&text, name.trim_start_matches("--")),
            "setting" => setting_problem(&text),
            "option" => {
                let peer = if self.peer == "trl" { &TRL } else { &OPENRLHF };
                let treated = peer.treatment(&text, name.trim_start_matches("--")).is_some();
                (!treated).then(|| format!("{} {text} has no treatment of {name}", peer.command))
            }
            "conversion" => {
                let command = format!("trl sft --model_name_or_path model --dataset_name rows.parquet --{text} {name}");
                converted(&TRL, &words(&command), None).err().map(|error| error.to_string())
            }
            "here" => {
                let settings = text.split([' ', ',', ';']).filter(|word| word.contains('=') && word.contains('.'));
                settings.filter_map(|word| word.split_once('=')).find_map(|(key, value)| value_problem(key, value))
            }
            "refused" | "unused" => (text.len() < 10).then(|| "the reason is missing".to_owned()),
            other => Some(format!("`{other}` is not a verdict")),
        }
    }
}

/// Splits `KIND:KEY`; a key without a kind is one of reinforcement learning.
fn of_kind(key: &str) -> (Kind, &str) {
    match key.split_once(':') {
        Some(("sft", key)) => (Kind::Sft, key),
        Some(("rm", key)) => (Kind::Rm, key),
        Some(("dpo", key)) => (Kind::Dpo, key),
        Some(("distill", key)) => (Kind::Distill, key),
        _ => (Kind::Rl, key),
    }
}

fn setting_problem(key: &str) -> Option<String> {
    let (kind, key) = of_kind(key);
    let built_in = defaults(kind.default_file()).unwrap();
    let known = built_in.value(key).is_some() || row(kind, key, built_in.root()).is_some();
    (!known).then(|| format!("{key} is neither a setting nor a key of verl with a treatment"))
}

/// Returns the reason why a setting cannot have a value. A setting without words takes any.
fn value_problem(key: &str, value: &str) -> Option<String> {
    let (kind, key) = of_kind(key);
    let built_in = defaults(kind.default_file()).unwrap();
    if built_in.value(key).is_none() {
        return Some(format!("{key} is not a setting"));
    }
    if key == "algorithm.rollout_correction.rollout_rs" {
        let known = CRITERIA.iter().any(|criterion| criterion.name == value || criterion.older_name == Some(value));
        return (!known).then(|| format!("{value} is not a criterion"));
    }
    let words = complete::values(built_in.root(), &choices(kind), key);
    let fits = words.is_empty() || words.iter().any(|word| word == value) || value.parse::<f64>().is_ok();
    (!fits).then(|| format!("{key} cannot be {value}"))
}

#[test]
fn every_name_in_a_registry_of_a_peer_has_a_verdict() {
    let default = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let folder = std::env::var_os("BURNISH_GOLDENS").map_or(default, std::path::PathBuf::from);
    let text = std::fs::read(folder.join("peer-registries.json")).unwrap();
    let registries: Value = serde_json::from_slice(&text).unwrap();
    let rows = rows();
    let (mut problems, mut used) = (Vec::new(), vec![false; rows.len()]);
    for (peer, of_peer) in registries["peers"].as_object().unwrap() {
        for (list, names) in of_peer["lists"].as_object().unwrap() {
            for name in names.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()) {
                match rows.iter().position(|row| row.covers(peer, list, name)) {
                    None => problems.push(format!("{peer} {list}: `{name}` has no verdict")),
                    Some(index) => {
                        used[index] = true;
                        problems.extend(rows[index].problem(name).map(|problem| format!("{peer} {list} `{name}`: {problem}")));
                    }
                }
            }
        }
    }
    let unused = rows.iter().zip(used).filter(|(_, used)| !used);
    problems.extend(unused.map(|(row, _)| format!("{} {} {:?}: no registry has such a name", row.peer, row.list, row.names)));
    assert!(problems.is_empty(), "{} verdicts are missing or wrong:\n{}", problems.len(), problems.join("\n"));
}
