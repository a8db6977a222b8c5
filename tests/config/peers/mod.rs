//! Commands of TRL and OpenRLHF: each of their options has a row, is read as the row states, and is converted to the same
//! training.
//!
//! `scripts/bless` rewrites the recipes under tests/data/peers/.

use burnish::config::{ConfigError, Kind, Value, defaults};
use burnish::convert::from_openrlhf::OPENRLHF;
use burnish::convert::from_trl::TRL;
use burnish::convert::peers::{
    FileAccess, OptionRow, OptionSyntax, OptionTreatment, Peer, PeerConversion, PeerSource, convert, in_section,
};
use std::collections::BTreeSet;

mod editions;
mod effects;
mod programs;
mod recipes;
mod registries;

const PEERS: [&Peer; 2] = [&TRL, &OPENRLHF];

/// Converts the words of one command.
fn converted(peer: &'static Peer, words: &[String], edition: Option<&str>) -> Result<PeerConversion, ConfigError> {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|error| error.to_string());
    let files = |path: &str| match path {
        "data/arithmetic" => Some(vec!["data/arithmetic/test.parquet".into(), "data/arithmetic/train.parquet".into()]),
        path if path.ends_with(".parquet") => Some(vec![path.to_string()]),
        _ => None,
    };
    let access = FileAccess { read: &read, files: &files };
    let calls = vec![(1, words.to_vec())];
    convert(
        peer,
        &PeerSource { name: "command", calls, unknowns: vec![], options: None, edition, stage: None, processes: None, access },
    )
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(String::from).collect()
}

#[test]
fn every_option_of_every_edition_has_a_row() {
    for peer in PEERS {
        let missing: Vec<String> = (peer.options)()
            .all
            .iter()
            .filter(|option| peer.treatment(option.trainer, option.name).is_none())
            .map(|option| format!("{} {}", option.trainer, option.name))
            .collect();
        assert!(missing.is_empty(), "{}: {}", peer.name, missing.join(", "));
    }
}

#[test]
fn every_row_is_about_some_option_and_names_a_setting() {
    for peer in PEERS {
        let options = (peer.options)();
        let kinds: BTreeSet<(&str, &str)> = options.all.iter().map(|option| (option.trainer, option.name)).collect();
        for (names, commands, fate) in peer.rows.iter().copied().flatten() {
            for name in names.split(' ') {
                let of = |trainer: &&str| commands.is_empty() || commands.split(' ').any(|command| command == *trainer);
                let has = peer.trainers.iter().filter(|trainer| of(&trainer.name) && kinds.contains(&(trainer.name, name)));
                // The first row that names an option counts.
                let trainers: Vec<_> = has.filter(|trainer| peer.treatment(trainer.name, name) == Some(*fate)).collect();
                let message = "which no edition has, or which has an earlier row";
                assert!(!trainers.is_empty(), "{}: a row is about `{name}`, {message}", peer.name);
                let OptionTreatment::Key(key) = fate else { continue };
                for trainer in trainers {
                    let key = in_section(key, trainer.kind != Kind::Rl);
                    let file = trainer.kind.default_file();
                    assert!(
                        defaults(file).unwrap().value(&key).is_some(),
                        "{}: `{name}` names `{key}`, which {file} lacks",
                        peer.name
                    );
                }
            }
        }
    }
}
