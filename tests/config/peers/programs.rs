//! Python programs of TRL are converted without running them, and unknown values are reported.

use super::{converted, words};
use burnish::convert::from_trl::TRL;
use burnish::convert::peers::{OptionSyntax, PeerConversion};
use std::path::Path;

/// Converts a program of a file, with the words of its line `# words:`.
fn program(path: &str, given: &str) -> PeerConversion {
    let words = words(&format!("python {path} {given}"));
    converted(&TRL, &words, None).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the text of a conversion about all that it left out.
fn messages(converted: &PeerConversion) -> Vec<String> {
    let refused = converted.refused.iter().map(|one| one.line());
    refused.chain(converted.notes.iter().cloned()).chain(converted.differences.iter().cloned()).collect()
}

/// Each program lists what its recipe must have, what must be named as not read, and what must be set.
#[test]
fn programs_become_what_they_say() {
    let folder = Path::new("tests/data/peers/programs");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path().display().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = |mark: &str| -> Vec<&str> {
            text.lines().filter_map(|line| line.strip_prefix("# ")?.strip_prefix(mark)?.strip_prefix(": ")).collect()
        };
        let converted = program(&path, lines("words").first().unwrap_or(&""));
        for expected in lines("expect") {
            assert!(
                converted.overrides.iter().any(|word| word.replace('\'', "") == expected),
                "{path}: {expected}\n{:#?}",
                converted.overrides
            );
        }
        let refused: Vec<String> = converted.refused.iter().map(|one| one.line()).collect();
        for unread in lines("unread") {
            assert!(refused.iter().any(|line| line.contains(unread)), "{path}: {unread}\n{refused:#?}");
        }
        for note in lines("note") {
            assert!(converted.notes.iter().any(|line| line.contains(note)), "{path}: {note}\n{:#?}", converted.notes);
        }
        for missing in lines("missing") {
            assert!(converted.missing.iter().any(|one| one.key == missing), "{path}: {missing}\n{:#?}", converted.missing);
        }
        assert!(lines("unread").is_empty() == refused.is_empty(), "{path}: {refused:#?}");
        count += 1;
    }
    assert!(count >= 5, "{count} programs");
}

/// Every keyword of a configuration is named in the recipe or in what the conversion says.
#[test]
fn no_keyword_of_a_configuration_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let classes = [
        ("grpo", "GRPO"),
        ("rloo", "RLOO"),
        ("sft", "SFT"),
        ("dpo", "DPO"),
        ("kto", "KTO"),
        ("orpo", "ORPO"),
        ("cpo", "CPO"),
        ("tpo", "TPO"),
        ("a2po", "A2PO"),
        ("reward", "Reward"),
        ("gkd", "GKD"),
        ("iw_opd", "IWOPD"),
        ("gold", "GOLD"),
        ("sdft", "SDFT"),
        ("sdpo", "SDPO"),
    ];
    for (trainer, class) in classes {
        let options: Vec<_> = (TRL.options)().of(trainer).collect();
        for part in options.chunks(24) {
            let value = |syntax: OptionSyntax| match syntax {
                OptionSyntax::Flag => "True",
                OptionSyntax::Int => "3",
                OptionSyntax::Float => "0.25",
                OptionSyntax::List => "['a']",
                OptionSyntax::Tree => "{'a': 1}",
                OptionSyntax::Text => "'some'",
            };
            let keywords: Vec<String> = part.iter().map(|option| format!("{}={}", option.name, value(option.syntax))).collect();
            let text = format!(
                "import trl\ntrl.{class}Trainer(model='m', args=trl.{class}Config({}, never=known), train_dataset=rows)\n",
                keywords.join(", ")
            );
            let path = folder.path().join("program.py").display().to_string();
            std::fs::write(&path, text).unwrap();
            let converted = program(&path, "");
            let all = format!("{}\n{}", converted.recipe, messages(&converted).join("\n"));
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            for name in part.iter().map(|option| option.name).chain(["never"]) {
                let named = all
                    .match_indices(name)
                    .any(|(at, _)| !all[..at].ends_with(is_word) && !all[at + name.len()..].starts_with(is_word));
                assert!(named, "{trainer}: {name} is lost\n{all}");
            }
        }
    }
}

#[test]
fn a_text_that_is_not_python_and_a_program_without_a_trainer_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.py").display().to_string();
    for (text, message) in [("if True\n    x = 1\n", "train.py:1: this is not Python"), ("print(1)\n", "has no trainer of TRL")] {
        std::fs::write(&path, text).unwrap();
        let error = converted(&TRL, &words(&format!("python {path}")), None).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

/// A limit of the reader is named with its line, and values beyond it are not taken from the part before.
#[test]
fn limits_of_the_reader_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.py").display().to_string();
    let trainer = "trl.GRPOTrainer(model='m', args=trl.GRPOConfig(output_dir=str(a)), train_dataset=rows)\n";
    let branches = "elif known:\n    a = 2\n".repeat(64);
    for (lines, message) in [
        ("a = 1\nfor i in range(65):\n    a = i\n", "train.py:4: a loop has more than 64 rounds"),
        (&format!("a = 1\nif known:\n    a = 1\n{branches}"), "train.py:4: an `if` has more than 64 branches"),
        ("a = [i for i in range(1025)]\n", "train.py:3: a comprehension has more than 1024 items"),
        ("a = len(range(5000))\n", "train.py:3: a range has more than 4096 items"),
        ("a = 'x' * 100000\n", "train.py:3: a text or list has 100000 or more"),
        ("a = 'x' * 99999\na = f'{a}{a}'\n", "train.py:4: a text or list has 100000 or more"),
        ("def f(n):\n    return f(n)\na = f(1)\n", "train.py:4: functions call each other more than 24 deep"),
    ] {
        std::fs::write(&path, format!("import trl\n\n{lines}{trainer}")).unwrap();
        let said = messages(&program(&path, ""));
        assert!(said.iter().any(|line| line.contains(message)), "{message}\n{said:#?}");
    }
    let many = "a = 1\n".repeat(60_000);
    std::fs::write(&path, format!("import trl\n{trainer}{many}")).unwrap();
    let said = messages(&program(&path, ""));
    assert!(said.iter().any(|line| line.contains("train.py:4999") && line.contains("more than 100000 steps")), "{said:#?}");
    std::fs::write(&path, format!("import trl\n{many}{trainer}")).unwrap();
    let error = converted(&TRL, &words(&format!("python {path}")), None).unwrap_err().to_string();
    assert!(error.contains("train.py:") && error.contains("more than 100000 steps"), "{error}");
}
