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

/// Scripts of Python that make much of little.
fn programs() -> Vec<(&'static str, String)> {
    let lines = |count: usize, line: &dyn Fn(usize) -> String| (0..count).map(line).collect::<String>();
    let text = "import os\nx = 'a' * 90000\nz = [1]\n";
    let inside =
        format!("{}{}", lines(5000, &|i| format!("    n{i} = {i}\n")), lines(5000, &|i| format!("    def g{i}(): pass\n")));
    vec![
        ("texts in a list", format!("{text}{}", "z.append(x + 'b')\n".repeat(20_000))),
        ("lines", format!("{text}{}", "z[0]\n".repeat(50_000))),
        ("joined texts", format!("{text}y = ','.join([x] * 90000)\n")),
        ("formatted texts", format!("{text}y = f'{}'\n", "{x}".repeat(100_000))),
        ("filled texts", format!("{text}y = ('%s' * 40000) % tuple([x] * 40000)\ny = ('{{0}}' * 30000).format(x)\n")),
        ("replaced texts", format!("{text}y = x.replace('a', x)\n")),
        ("paths", format!("{text}y = os.path.join({})\n", "x, ".repeat(50_000))),
        ("extended lists", format!("{text}{}", "z.extend(z)\n".repeat(60))),
        ("a dict", format!("d = {{{}}}\n", lines(50_000, &|i| format!("'k{i}': {i}, ")))),
        ("dicts", format!("d = dict(zip(range(1000), range(1000)))\n{}", "d.update(d)\nd = d | d\n".repeat(10_000))),
        ("names of functions", format!("def f():\n{inside}f()\n")),
        ("conditions", format!("{}{}", lines(10_000, &|i| format!("n{i} = {i}\n")), "if unknown():\n    pass\n".repeat(10_000))),
        ("long expressions", format!("y = {}'{}'{}\n", "f(".repeat(900), "a".repeat(500_000), ")".repeat(900))),
    ]
}

#[test]
fn programs_are_read_within_a_fixed_memory() {
    let folder = tempfile::tempdir().unwrap();
    for (name, program) in programs() {
        let path = folder.path().join("script.py");
        fs::write(&path, program).unwrap();
        let (code, messages) =
            run_within(ADDRESSES, 10, &["from-trl".to_owned(), format!("@{}", path.display())]).expect("it ends");
        let shown: String = messages.chars().take(500).collect();
        // No script here trains.
        assert_eq!(code, Some(2), "{name}: {shown}");
        assert!(messages.starts_with("error: ") && !messages.contains("panicked"), "{name}: {shown}");
    }
}
