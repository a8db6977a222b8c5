//! The data files of a name: assigns the files of a repository to configurations and splits, and chooses among them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::card::CardConfig;
use super::error::HubError;
use super::listing::Listing;
use super::name::HubName;

/// The branch with the Hub's conversion of data sets to parquet.
pub(crate) const CONVERTED: &str = "refs/convert/parquet";
/// The configuration of files whose path does not name one.
const DEFAULT: &str = "default";
const READ: &[&str] = &[".parquet", ".jsonl", ".json", ".ndjson", ".jsonl.gz", ".json.gz", ".ndjson.gz"];
/// JSON files that describe a data set and have no rows.
const DESCRIBING: &[&str] = &["dataset_infos.json", "dataset_info.json", "dataset_dict.json", "state.json", "config.json"];
/// Words in file names, with the split that they name.
const SPLIT_WORDS: &[(&str, &str)] = &[
    ("train", "train"),
    ("training", "train"),
    ("validation", "validation"),
    ("valid", "validation"),
    ("val", "validation"),
    ("dev", "validation"),
    ("test", "test"),
    ("testing", "test"),
    ("eval", "test"),
    ("evaluation", "test"),
];

/// The purpose of the data, which selects the split if a name does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Training,
    Validation,
    /// Data that is read once, such as prompts for generation.
    Reading,
    /// Every split.
    All,
}

impl Purpose {
    /// Returns the preferred splits in order.
    fn splits(self) -> &'static [&'static str] {
        match self {
            Self::Training => &["train", "training"],
            Self::Validation | Self::Reading => &["test", "validation", "valid", "val", "dev", "eval", "evaluation"],
            Self::All => &[],
        }
    }
}

/// The files of a name.
#[derive(Debug, PartialEq)]
pub(crate) struct ChosenData {
    pub paths: Vec<String>,
    /// Part of the repository that was chosen: `CONFIG/SPLIT`, or the path of the file.
    pub part: String,
    /// The choice among several parts, in words; empty without alternatives.
    pub choice: String,
}

type Splits = BTreeMap<String, Vec<String>>;

/// Chooses the files of a name. `cards`: the configurations in README.md.
///
/// # Errors
/// If there are no such files; the message lists the alternatives.
pub(crate) fn choose(listing: &Listing, name: &HubName, cards: &[CardConfig], purpose: Purpose) -> Result<ChosenData, HubError> {
    let all: Vec<&str> = listing.files.keys().map(String::as_str).collect();
    let data = readable(&all);
    if data.iter().any(|path| *path == name.rest) {
        return Ok(ChosenData { paths: vec![name.rest.clone()], part: name.rest.clone(), choice: String::new() });
    }
    if name.rest.contains('*') {
        let paths: Vec<String> = matching(&name.rest, &data);
        return match paths.is_empty() {
            true => Err(HubError::permanent(format!("no file of `{}` matches {}", name.repo, name.rest), files(&data))),
            false => Ok(ChosenData { paths, part: name.rest.clone(), choice: String::new() }),
        };
    }
    if data.is_empty() {
        let what = "has no files in parquet, JSON or JSON lines, and no conversion by the Hub";
        return Err(HubError::permanent(format!("data set `{name}` {what}"), files(&all)));
    }
    let configs = match cards {
        [] => inferred("", &data),
        cards => cards.iter().map(|card| (card.name.clone(), splits_of_card(card, &data))).collect(),
    };
    let known = |names: Vec<&String>| names.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let parts: Vec<&str> = name.rest.split('/').filter(|part| !part.is_empty()).collect();
    // A configuration of the pattern `DIR/…` may have a slash in its name.
    let (config, named_split) = match parts.as_slice() {
        _ if configs.contains_key(&name.rest) => (Some(name.rest.clone()), None),
        [config @ .., split] if configs.contains_key(&config.join("/")) => (Some(config.join("/")), Some(*split)),
        [split] => (None, Some(*split)),
        [] => (None, None),
        _ => {
            let message = format!("`{}` has no file and no configuration `{}`", name.repo, name.rest);
            return Err(HubError::permanent(message, format!("its configurations are {}", known(configs.keys().collect()))));
        }
    };
    let (config, among) = match config {
        Some(config) => (config, String::new()),
        None => default_config(name, &configs, cards, named_split)?,
    };
    let splits = &configs[&config];
    let (split, choice) = match (named_split, purpose) {
        (None, Purpose::All) => {
            let paths = splits.values().flatten().cloned().collect();
            return Ok(ChosenData { paths, part: config, choice: among });
        }
        (Some(split), _) => (Some(split.to_owned()).filter(|split| splits.contains_key(split)), String::new()),
        (None, _) => {
            let found = purpose.splits().iter().find(|split| splits.contains_key(**split)).map(ToString::to_string);
            let only = splits.keys().next().filter(|_| splits.len() == 1 && purpose != Purpose::Validation).cloned();
            (found.or(only), format!("split {{}} of {}", known(splits.keys().collect())))
        }
    };
    let Some(split) = split else {
        let requested = named_split.map_or_else(|| purpose.splits()[..2].join(" or "), str::to_owned);
        let example = splits.keys().next().map_or("train", String::as_str);
        let message = format!("`{}` has no split {requested}", name.repo);
        let help = format!(
            "its splits are {}; name one, as in {}@{}/{config}/{example}",
            known(splits.keys().collect()),
            name.repo,
            name.revision()
        );
        return Err(HubError::permanent(message, help));
    };
    let choice: Vec<String> = [among, choice.replace("{}", &split)].into_iter().filter(|text| !text.is_empty()).collect();
    let paths = splits[&split].clone();
    Ok(ChosenData { paths, part: format!("{config}/{split}"), choice: choice.join(", ") })
}

/// Returns the configuration of a name without one: the only one, the data set's default, or `main`.
fn default_config(
    name: &HubName,
    configs: &BTreeMap<String, Splits>,
    cards: &[CardConfig],
    named_split: Option<&str>,
) -> Result<(String, String), HubError> {
    let names: Vec<&str> = configs.keys().map(String::as_str).collect();
    if let [only] = names.as_slice() {
        return Ok((only.to_string(), String::new()));
    }
    let marked = cards.iter().find(|card| card.is_default).map(|card| card.name.as_str());
    let usual = ["default", "main"].into_iter().find(|usual| names.contains(usual));
    match marked.or(usual) {
        Some(config) => Ok((config.to_owned(), format!("configuration {config} of {}", names.join(", ")))),
        None => {
            let message = match named_split {
                Some(named_split) => format!("`{}` has no configuration `{named_split}`, but several others", name.repo),
                None => format!("`{}` has several configurations and no default", name.repo),
            };
            let first = names.first().copied().unwrap_or_default();
            let help = format!("name one of {}, as in {}@{}/{first}", names.join(", "), name.repo, name.revision());
            Err(HubError::permanent(message, help))
        }
    }
}

/// Returns the files of a configuration in README.md, by split.
fn splits_of_card(card: &CardConfig, data: &[&str]) -> Splits {
    let folder = card.folder.as_deref().map(|folder| folder.trim_matches('/')).unwrap_or_default();
    if card.splits.is_empty() {
        let below: Vec<&str> = data.iter().copied().filter(|path| below(folder, path).is_some()).collect();
        let mut splits = Splits::new();
        for (split, files) in inferred(folder, &below).into_values().flatten() {
            splits.entry(split).or_default().extend(files);
        }
        return splits;
    }
    let pattern = |pattern: &String| if folder.is_empty() { pattern.clone() } else { format!("{folder}/{pattern}") };
    let files = |patterns: &Vec<String>| {
        let mut files: Vec<String> = patterns.iter().flat_map(|one| matching(&pattern(one), data)).collect();
        files.dedup();
        files
    };
    card.splits.iter().map(|(split, patterns)| (split.clone(), files(patterns))).filter(|(_, files)| !files.is_empty()).collect()
}

/// Infers configurations and splits from the paths of files below a folder.
fn inferred(folder: &str, data: &[&str]) -> BTreeMap<String, Splits> {
    let mut configs: BTreeMap<String, Splits> = BTreeMap::new();
    let mut unknown = vec![];
    for path in data {
        match config_and_split(below(folder, path).unwrap_or(path)) {
            Some((config, split)) => configs.entry(config).or_default().entry(split).or_default().push(path.to_string()),
            None => unknown.push(path.to_string()),
        }
    }
    if configs.is_empty() && !unknown.is_empty() {
        configs.entry(DEFAULT.to_owned()).or_default().insert("train".to_owned(), unknown);
    }
    configs
}

/// Infers the configuration and the split from a path: `CONFIG/SPLIT-00000-of-00001.parquet`, `CONFIG/SPLIT/0000.parquet`,
/// `data/SPLIT-*.parquet`, `SPLIT.jsonl`, `NAME_SPLIT.json`.
fn config_and_split(path: &str) -> Option<(String, String)> {
    static SHARD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^(.*?)-\d{5}-of-\d{5}(?:-[0-9a-f]+)?$").ok());
    let stem = READ.iter().find_map(|end| path.strip_suffix(end))?;
    let (folders, file) = stem.rsplit_once('/').unwrap_or(("", stem));
    let config = |folders: &str| {
        let folders = folders.strip_prefix("data").filter(|rest| rest.is_empty() || rest.starts_with('/')).unwrap_or(folders);
        Some(folders.trim_matches('/')).filter(|config| !config.is_empty()).unwrap_or(DEFAULT).to_owned()
    };
    let shard = SHARD.as_ref().and_then(|shard| shard.captures(file)).map(|found| found[1].to_owned());
    let (above, last) = folders.rsplit_once('/').unwrap_or(("", folders));
    if let Some(split) = split_of(last).filter(|_| split_of(file).is_none()) {
        return Some((config(above), split));
    }
    if let Some(name) = shard {
        // Shards always belong to a split, even one with an unknown name.
        return Some((config(folders), split_of(&name).unwrap_or(name)));
    }
    if file.bytes().all(|c| c.is_ascii_digit()) && !last.is_empty() {
        return Some((config(above), last.to_owned()));
    }
    split_of(file).map(|split| (config(folders), split))
}

/// Returns the split that a word within a name stands for.
fn split_of(name: &str) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    // The Hub converts only the beginning of a large split: `partial-train`.
    let mut words = lower.split(|c: char| !c.is_ascii_alphabetic()).filter(|_| !lower.starts_with("partial-"));
    words.find_map(|word| SPLIT_WORDS.iter().find(|(known, _)| *known == word)).map(|(_, split)| split.to_string())
}

/// Returns the files in a supported format: only parquet if there is any.
fn readable<'a>(paths: &[&'a str]) -> Vec<&'a str> {
    let hidden = |path: &str| path.split('/').any(|part| part.starts_with('.') || part.starts_with("__"));
    let describes = |path: &str| DESCRIBING.contains(&path.rsplit('/').next().unwrap_or(path));
    let read: Vec<&str> = paths
        .iter()
        .copied()
        .filter(|path| READ.iter().any(|end| path.ends_with(end)) && !hidden(path) && !describes(path))
        .collect();
    let parquet: Vec<&str> = read.iter().copied().filter(|path| path.ends_with(".parquet")).collect();
    if parquet.is_empty() { read } else { parquet }
}

/// Returns true if the repository has files in a supported format.
pub(crate) fn has_data(listing: &Listing) -> bool {
    !readable(&listing.files.keys().map(String::as_str).collect::<Vec<_>>()).is_empty()
}

/// Returns true if the cached files can be complete, judged without a listing: no shard is missing.
pub(crate) fn looks_complete(paths: &[String]) -> bool {
    static OF: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^(.*)-\d{5}-of-(\d{5})").ok());
    let Some(of) = &*OF else { return false };
    paths.iter().all(|path| {
        let Some(found) = of.captures(path) else { return true };
        let same = |other: &&String| of.captures(other).is_some_and(|other| (&other[1], &other[2]) == (&found[1], &found[2]));
        Some(paths.iter().filter(same).count()) == found[2].parse().ok()
    })
}

/// Returns the files that match a pattern: `*` and `?` do not match `/`, `**` does, `[…]` is a set of characters.
fn matching(pattern: &str, data: &[&str]) -> Vec<String> {
    let mut text = String::from("^");
    let mut rest = pattern.trim_start_matches("./");
    while let Some(c) = rest.chars().next() {
        let (next, length) = match c {
            '*' if rest.starts_with("**/") => ("(?:.*/)?".to_owned(), 3),
            '*' if rest.starts_with("**") => (".*".to_owned(), 2),
            '*' => ("[^/]*".to_owned(), 1),
            '?' => ("[^/]".to_owned(), 1),
            '[' if rest.contains(']') => {
                let end = rest.find(']').unwrap_or(0);
                let set: String =
                    rest[1..end].chars().map(|c| if c == '-' { "-".to_owned() } else { regex::escape(&c.to_string()) }).collect();
                (format!("[{set}]"), end + 1)
            }
            c => (regex::escape(&c.to_string()), c.len_utf8()),
        };
        text += &next;
        rest = &rest[length..];
    }
    let Ok(regex) = Regex::new(&format!("{text}$")) else { return vec![] };
    data.iter().filter(|path| regex.is_match(path)).map(ToString::to_string).collect()
}

fn below<'a>(folder: &str, path: &'a str) -> Option<&'a str> {
    if folder.is_empty() { Some(path) } else { path.strip_prefix(folder)?.strip_prefix('/') }
}

fn files(paths: &[&str]) -> String {
    let shown: Vec<&str> = paths.iter().take(12).copied().collect();
    format!("its files are {}{}", shown.join(", "), if paths.len() > shown.len() { ", …" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::super::card;
    use super::super::listing::{Checksum, RemoteFile};
    use super::super::name::RepoKind;
    use super::*;

    fn listing(paths: &[&str]) -> Listing {
        let file = |path: &&str| (path.to_string(), RemoteFile { size: 1, checksum: Checksum::Git("a".repeat(40)) });
        Listing { files: paths.iter().map(file).collect(), license: None }
    }

    const GSM8K: &[&str] = &[
        "README.md",
        "main/train-00000-of-00001.parquet",
        "main/test-00000-of-00001.parquet",
        "socratic/train-00000-of-00001.parquet",
        "socratic/test-00000-of-00001.parquet",
    ];
    const CARD: &str = "---\nconfigs:\n- config_name: main\n  data_files:\n  - split: train\n    path: main/train-*\n  - split: test\n    \
                        path: main/test-*\n- config_name: socratic\n  data_files:\n  - split: train\n    path: socratic/train-*\n---\n";

    #[test]
    fn a_name_means_a_configuration_and_a_split() {
        use Purpose::{All, Reading, Training, Validation};
        let parts =
            ["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet", "data/test_sft-00000-of-00001.parquet"];
        for (files, card, text, purpose, expected) in [
            (GSM8K, CARD, "o/n", Training, "main/train: main/train-00000-of-00001.parquet"),
            (GSM8K, "", "o/n", Validation, "main/test: main/test-00000-of-00001.parquet"),
            (GSM8K, CARD, "o/n@main/socratic", Training, "socratic/train: socratic/train-00000-of-00001.parquet"),
            (GSM8K, CARD, "o/n@main/test", Training, "main/test: main/test-00000-of-00001.parquet"),
            (GSM8K, "", "o/n@main/socratic/test", Training, "socratic/test: socratic/test-00000-of-00001.parquet"),
            (GSM8K, CARD, "o/n@main/main", All, "main: main/test-00000-of-00001.parquet main/train-00000-of-00001.parquet"),
            (
                GSM8K,
                CARD,
                "o/n@main/socratic/*",
                Training,
                "socratic/*: socratic/test-00000-of-00001.parquet socratic/train-00000-of-00001.parquet",
            ),
            (
                GSM8K,
                CARD,
                "o/n@main/main/train-00000-of-00001.parquet",
                Validation,
                "main/train-00000-of-00001.parquet: main/train-00000-of-00001.parquet",
            ),
            (&parts, "", "o/n", Training, "default/train: data/train-00000-of-00002.parquet data/train-00001-of-00002.parquet"),
            (&parts, "", "o/n", Validation, "default/test: data/test_sft-00000-of-00001.parquet"),
            (&["train.jsonl", "dev.jsonl", "config.json"], "", "o/n", Validation, "default/validation: dev.jsonl"),
            (
                &["default/train/0000.parquet", "default/test/0000.parquet"],
                "",
                "o/n",
                Training,
                "default/train: default/train/0000.parquet",
            ),
            (
                &["all/prefs/0000.parquet"],
                "",
                "o/n@refs/convert/parquet/all/prefs",
                Training,
                "all/prefs: all/prefs/0000.parquet",
            ),
            (&["sums.json", ".x/train.json"], "", "o/n", Training, "default/train: sums.json"),
            (&["sums.json"], "", "o/n", Reading, "default/train: sums.json"),
            (
                &["raw/a/train.json", "b.json"],
                "---\nconfigs:\n- data_dir: raw\n---\n",
                "o/n",
                Training,
                "default/train: raw/a/train.json",
            ),
        ] {
            let cards = card::configs(card).unwrap();
            let name = HubName::parse(text, RepoKind::Dataset).unwrap();
            let chosen = choose(&listing(files), &name, &cards, purpose).unwrap_or_else(|error| panic!("{text} {card}: {error}"));
            assert_eq!(format!("{}: {}", chosen.part, chosen.paths.join(" ")), expected, "{text} {card}");
        }
        let choice = choose(&listing(GSM8K), &HubName::parse("o/n", RepoKind::Dataset).unwrap(), &[], Training).unwrap().choice;
        assert_eq!(choice, "configuration main of main, socratic, split train of test, train");
        for (files, text, purpose, expected) in [
            (
                &["en/train.jsonl", "de/train.jsonl"][..],
                "o/n",
                Training,
                "several configurations and no default; name one of de, en, as in o/n@main/de",
            ),
            (
                &["train.jsonl"],
                "o/n",
                Validation,
                "no split test or validation; its splits are train; name one, as in o/n@main/default/train",
            ),
            (&["train.jsonl"], "o/n@v1/tset", Training, "no split tset"),
            (&["train.csv"], "o/n", Training, "no files in parquet, JSON or JSON lines"),
            (&["train.json"], "o/n@main/a/b/c", Training, "no file and no configuration `a/b/c`"),
            (&["train.json"], "o/n@main/x*.json", Training, "no file of `o/n` matches x*.json"),
            (&["en/train.jsonl", "de/train.jsonl"], "o/n@main/fr", Training, "no configuration `fr`"),
        ] {
            let name = HubName::parse(text, RepoKind::Dataset).unwrap();
            let error = choose(&listing(files), &name, &[], purpose).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn patterns_match_as_the_hub_means_them() {
        let data = ["a/train-0.parquet", "a/b/train-1.parquet", "train.x", "a/te.st"];
        for (pattern, count) in [
            ("a/train-*", 1),
            ("**/train-*", 2),
            ("a/**", 3),
            ("*", 1),
            ("a/te?st", 1),
            ("a/train-[0-3].parquet", 1),
            ("a/t[e].st", 1),
            ("te.st", 0),
        ] {
            assert_eq!(matching(pattern, &data).len(), count, "{pattern}");
        }
        let is_complete = |paths: &[&str]| looks_complete(&paths.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert!(is_complete(&["x.parquet", "t-00000-of-00002.parquet", "t-00001-of-00002.parquet"]));
        assert!(!is_complete(&["t-00000-of-00002.parquet", "u-00001-of-00002.parquet"]));
    }
}
