//! Infinite numbers: a message that refuses one never names a range that has it.

use burnish::cli::choices;
use burnish::config::Request;
use burnish::config::kinds::KINDS;

#[test]
fn what_is_said_of_an_infinite_number_is_true() {
    for kind in KINDS {
        let choices = choices(kind.kind);
        // All problems are reported at once.
        let refused = |keys: &[String], value: &str| -> Vec<(String, String)> {
            let overrides = keys.iter().map(|key| format!("{key}={value}")).collect();
            let error = kind.load(&Request { overrides, ..Request::default() }, &choices).err();
            let problems = error.map(|error| error.problems).unwrap_or_default();
            problems.into_iter().map(|problem| (problem.key, problem.message)).collect()
        };
        let keys = kind.defaults().unwrap().keys();
        let is_leaf = |key: &&String| !keys.iter().any(|other| other.starts_with(&format!("{key}.")));
        let leaves: Vec<String> = keys.iter().filter(is_leaf).cloned().collect();
        let numbers = refused(&leaves, "inf");
        let lists: Vec<String> =
            numbers.iter().filter(|(_, message)| message.contains("a list")).map(|(key, _)| key.clone()).collect();
        let items = refused(&lists, "[inf,inf]");
        let mut finite = 0;
        for (_, message) in numbers.iter().chain(&items).filter(|(_, message)| message.ends_with("not inf")) {
            let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
            let is_closed = has(&["finite", "an integer", " to ", "and at most"]);
            assert!(is_closed || !has(&["above", "at least"]), "{}: {message}", kind.file);
            finite += usize::from(has(&["a finite number"]));
        }
        assert!(finite > 0, "{}: {numbers:?}", kind.file);
    }
}
