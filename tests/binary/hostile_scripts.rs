//! Scripts of strangers: the converter reads each within a fixed memory, and in a moment.

use std::fs;

use crate::hostile::run_within;

/// Address space of a conversion, in KiB. The stack of the reader has 256 MiB of it.
const ADDRESSES: usize = 700_000;

/// Texts that a script makes of little: each took gigabytes, or did not end.
fn scripts() -> Vec<(&'static str, String, &'static str)> {
    let long = |length: usize| "x".repeat(length);
    let too_much = "the texts of the script take more than 20 MB";
    let words = "the script has too many words";
    let deep = "this is nested too deeply";
    vec![
        ("seq at the largest number", "y=$(seq 9223372036854775806 9223372036854775807)".into(), ""),
        ("seq that overflows", "y=$(seq 0 5000000000000000000 9223372036854775807)".into(), ""),
        ("seq with a long separator", format!("y=$(seq -s {} 1 9999)", long(100_000)), too_much),
        ("tr of all characters", format!("y=$(echo a | tr '{}' x)", "!-\u{10ffff}".repeat(2000)), ""),
        ("printf", format!("y=$(printf '%s{}' $(seq 1 9999))", long(500_000)), too_much),
        ("sed", format!("y=$(echo {} | sed 's/x/{}/g')", long(100_000), long(100_000)), too_much),
        ("replacement", format!("z={}\nx={}\ny=${{x//?/$z$z}}", long(500_000), long(4000)), too_much),
        ("braces", format!("y=({{1..999}}{})", long(500_000)), "the braces expand to too many words"),
        ("a number that no integer holds", "echo {-9223372036854775808..9}".into(), "the script cannot be evaluated"),
        ("calls", format!("x={}\nfor i in {{1..900}}; do prog $x$x$x; done", long(100_000)), too_much),
        ("arguments", "set -- $(seq 1 9999)\nfor i in {1..40}; do set -- \"$@\" \"$@\"; done".into(), too_much),
        (
            "subshells",
            format!("x={}\nz=$x$x$x$x\nf() {{ y=$(f); }}\nf", long(900_000)),
            "the subshells and branches take more than 60 MB",
        ),
        ("a here-document", format!("cat <<E\n#{}\nE", "$(".repeat(60)), deep),
        ("a quoted comment", format!("y=\"\n#{}{}\"", "$(".repeat(60), ")".repeat(60)), deep),
        ("expansions", format!("cat <<E\n#{}\nE", "$(".repeat(400_000)), "the script has too many expansions"),
        ("words", "a;".repeat(480_000), words),
    ]
}

#[test]
fn scripts_are_read_within_a_fixed_memory() {
    let folder = tempfile::tempdir().unwrap();
    for (name, script, expected) in scripts() {
        let path = folder.path().join("script.sh");
        fs::write(&path, script + "\n").unwrap();
        let (code, messages) =
            run_within(ADDRESSES, 20, &["from-verl".to_owned(), format!("@{}", path.display())]).expect("it ends");
        let shown: String = messages.chars().take(500).collect();
        // No script here starts verl.
        assert_eq!(code, Some(2), "{name}: {shown}");
        assert!(messages.contains(expected) && !messages.contains("panicked"), "{name}: {shown}");
    }
}

/// A key that no edition has takes less than a millisecond.
#[test]
fn unknown_keys_take_little_time_each() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.sh");
    let keys: String = (0..2000).map(|key| format!(" +section.unknown_{key}=1")).collect();
    fs::write(&path, format!("python3 -m verl.trainer.main_ppo data.train_files=a.parquet{keys}\n")).unwrap();
    let (code, messages) = run_within(ADDRESSES, 10, &["from-verl".to_owned(), format!("@{}", path.display())]).expect("it ends");
    assert_eq!(code, Some(1), "{}", messages.chars().take(500).collect::<String>());
}
