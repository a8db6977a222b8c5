//! Hints for keys that an override sets in mappings that accept any key.

use burnish::cli::choices;
use burnish::config::kinds::{ConfigKind, KINDS};
use burnish::config::{Request, Value};

/// Returns the message for an override of the defaults of one kind; empty if the configuration loads.
fn message(known: &ConfigKind, text: &str) -> String {
    let request = Request { overrides: vec![text.to_owned()], ..Request::built_in(known.file) };
    known.load(&request, &choices(known.kind)).err().map_or(String::new(), |error| error.to_string())
}

/// Returns the part of a message between two texts.
fn between<'a>(message: &'a str, start: &str, end: char) -> Option<&'a str> {
    message.split_once(start).and_then(|(_, rest)| rest.split(end).next())
}

#[test]
fn advice_for_a_key_of_an_open_mapping_works_when_typed() {
    let mut advised = 0;
    for known in KINDS {
        let defaults = known.defaults().unwrap();
        let is_open = |key: &String| matches!(defaults.value(key), Some(Value::Map(entries)) if entries.is_empty());
        for key in defaults.keys().into_iter().filter(is_open) {
            for text in
                [format!("{key}={{zz: 1}}"), format!("{key}.zz=1"), format!("{key}.zz.yy=1"), format!("{key}={{zz: {{yy: 1}}}}")]
            {
                let refused = message(known, &text);
                assert!(!refused.is_empty(), "{text} without + is accepted");
                let typed = text.split('=').next().unwrap_or_default();
                if let Some(suggestion) = between(&refused, "did you mean `", '`') {
                    assert!(!typed.starts_with(suggestion), "{}: the suggestion repeats the key:\n{refused}", known.name);
                }
                let Some(advice) = between(&refused, "write +", '\n') else {
                    assert!(!refused.contains("no such key"), "{}: {text} without advice:\n{refused}", known.name);
                    continue;
                };
                advised += 1;
                let followed = message(known, &format!("+{}", advice.replace('…', "1")));
                assert!(!followed.contains("no such key"), "{}: {text}, then +{advice}:\n{followed}", known.name);
            }
        }
    }
    assert!(advised > 50, "{advised} pieces of advice");
}

#[test]
fn a_suggestion_is_never_a_part_of_the_key() {
    for (known, key) in [(&KINDS[0], "trainer.seed"), (&KINDS[0], "algorithm.kl_ctrl.type"), (&KINDS[1], "data.seed")] {
        let refused = message(known, &format!("{key}.zz=1"));
        assert!(refused.contains(&format!("no such key `{key}.zz`")) && !refused.contains(&format!("`{key}`?")), "{refused}");
    }
}
