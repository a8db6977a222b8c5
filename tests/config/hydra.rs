//! Composition, overrides and interpolation give the results of Hydra and OmegaConf, with better messages.

use burnish::config::{ConfigError, Node, Request, Tree, Value, compose_untyped};
use serde_json::{Map, Value as Json, json};
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn compose(folder: &Path, name: &str, overrides: &[String]) -> Result<Tree, ConfigError> {
    compose_untyped(&Request {
        config_path: Some(folder.into()),
        config_name: Some(name.into()),
        overrides: overrides.to_vec(),
        ..Request::default()
    })
}

/// Composes files with these texts; `FOLDER` in a text stands for their folder.
fn compose_files(files: &[(&str, &str)], name: &str, overrides: &[String]) -> Result<Tree, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let here = |text: &str| text.replace("FOLDER", &folder.path().display().to_string());
    for (file, text) in files {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, here(text)).unwrap();
    }
    compose(folder.path(), name, &overrides.iter().map(|text| here(text)).collect::<Vec<_>>())
}

fn to_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Int(value) => json!(value),
        Value::Float(value) if value.is_finite() => json!(value),
        Value::Float(value) => json!({ "$float": value.to_string().to_lowercase() }),
        Value::Text(text) => json!(text),
        Value::List(items) => items.iter().map(|item| to_json(&item.value)).collect(),
        Value::Map(map) => Json::Object(map.iter().map(|(key, node)| (key.clone(), to_json(&node.value))).collect::<Map<_, _>>()),
    }
}

fn strings(list: &Json) -> Vec<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_string()).collect()
}

#[test]
fn overrides_do_what_hydra_did_with_verls_configuration() {
    let text = std::fs::read_to_string(data("golden/hydra-overrides.json")).unwrap();
    // JSON lacks infinity and NaN. The environment variable of one case was 7; here it is one that cargo sets.
    let text = text.replace("Infinity", r#"{"$float": "inf"}"#).replace(": NaN", r#": {"$float": "nan"}"#);
    let text = text.replace("oc.env:MYV", "oc.env:CARGO_PKG_NAME");
    let cases: Vec<Json> = serde_json::from_str(&text).unwrap();
    assert_eq!(cases.len(), 94);
    for case in &cases {
        let overrides = strings(&case["overrides"]);
        let composed = compose(&data("data/hydra"), "ppo_trainer", &overrides);
        let of_missing = case["error_on_access"].as_str().is_some_and(|error| error.starts_with("MissingMandatoryValue"));
        if case.get("value").is_none() && !of_missing {
            assert!(composed.is_err(), "{overrides:?} should be refused");
            continue;
        }
        let tree = composed.unwrap_or_else(|error| panic!("{overrides:?}: {error}"));
        let value = tree.value(case["select"].as_str().unwrap()).map_or(Json::Null, to_json);
        let expected = match &case["value"] {
            _ if of_missing => json!("???"),
            _ if overrides[0].contains("CARGO_PKG_NAME") => json!(std::env::var("CARGO_PKG_NAME").unwrap()),
            expected => expected.clone(),
        };
        assert_eq!(value, expected, "{overrides:?}");
    }
}

#[test]
fn a_sample_of_the_differential_test_composes_as_hydra_did() {
    let text = std::fs::read_to_string(data("data/hydra-sample.json")).unwrap();
    let cases: Vec<Json> = serde_json::from_str(&text).unwrap();
    let mut failing = 0;
    for case in &cases {
        let files = case["files"].as_object().unwrap();
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str().unwrap())).collect();
        let composed = compose_files(&files, case["name"].as_str().unwrap(), &strings(&case["overrides"]));
        match case.get("value") {
            Some(expected) => {
                let tree = composed.unwrap_or_else(|error| panic!("{case}: {error}"));
                assert_eq!(to_json(&tree.root().value), *expected, "{case}");
            }
            None => {
                assert!(composed.is_err(), "should be refused: {case}");
                failing += 1;
            }
        }
    }
    assert!(cases.len() >= 50 && failing >= 20 && cases.len() - failing >= 20, "{} cases, {failing} failing", cases.len());
}

#[test]
fn what_is_printed_reads_back_as_it_was() {
    let words = "yes no on off null ~ true 1 -1 0x1F 010 1_000 1e3 .5 1. .inf .nan 1:30 2024-01-01 y - -a a: :a a:b #a a#b ' \" it's \
                 = << ??? {a} [a] a,b %a @a !a &a *a |a >a `a \\ \\n ~/x ./x é --- ... 0o7 0b1 +5";
    let words: Vec<&str> = words.split(' ').chain(["", " ", " a", "a ", "a: b", "a #b", "a\nb", "a\tb\n", "\u{1}"]).collect();
    let text = |word: &str| serde_json::to_string(word).unwrap();
    let plain: String = words.iter().enumerate().map(|(index, word)| format!("k{index}: {}\n", text(word))).collect();
    let nested =
        format!("deep:\n  list: [[{}, [1.5]], {{a: [], {}: 1}}, {{}}]\n  float: [1.0, 1e-6, 1e22]\n", text("a: b"), text("-"));
    let first = compose_files(&[("main.yaml", &(plain + &nested))], "main", &[]).unwrap();
    let second = compose_files(&[("main.yaml", &first.to_yaml())], "main", &[]).unwrap();
    assert_eq!(to_json(&first.root().value), to_json(&second.root().value));
    assert_eq!(first.value("k0"), Some(&Value::Text("yes".into())));
    assert!(first.value("k4").is_some_and(|value| matches!(value, Value::Text(text) if text == "null")));
}

#[test]
fn what_hydra_has_and_this_has_not_is_as_the_script_says() {
    let one = |override_text: &str| compose_files(&[("main.yaml", "a: 1\n")], "main", &[override_text.to_string()]);
    let value = |text: &str| one(text).unwrap().root().get("a").map(|node: &Node| to_json(&node.value)).unwrap();
    assert_eq!(value(r"a=json_str([x, 1.0, {k: null}, 'a\'b'])"), json!(r#"["x", 1.0, {"k": null}, "a'b"]"#));
    let now = value("a='${now:%Y-%m-%d}'");
    assert!(now.as_str().is_some_and(|now| now.len() == 10 && now > "2024-01-01"), "{now}");
    let group = [("main.yaml", "defaults: [db: x]\n"), ("db/x.yaml", "# @package _group_\nk: 1\n")];
    assert_eq!(compose_files(&group, "main", &[]).unwrap().value("db.k"), Some(&Value::Int(1)));
}

type Files<'a> = &'a [(&'a str, &'a str)];

/// Each entry: files, at most one override, and the parts of the message.
const MESSAGES: &[(Files, &str, &[&str])] = &[
    (&[("main.yaml", "a: 1\n")], "a=1,2", &["bare `,`", "[a,b]", "1 | a=1,2", "  |    ^"]),
    (&[("main.yaml", "a: 1\n")], "a=choice(1,2)", &["`choice(…)`", "`--multirun` starts them"]),
    (&[("main.yaml", "a: 1\n")], "a=x#y", &["`#` is not allowed", "in quotes", "  |    ^"]),
    (&[("main.yaml", "a: 1\n")], "a=é(", &["`é` is not allowed", "  |   ^"]),
    (&[("main.yaml", "a: 1\n")], "a='x", &["the quote ' is not closed"]),
    (&[("main.yaml", "a: 1\n")], "a=[1,]", &["a value is missing before `]`"]),
    (&[("main.yaml", "a: 1\n")], "a=int(x)", &["`x`", "int"]),
    (&[("main.yaml", "a: 1\n")], "a=${b:${c}}", &["must be in quotes"]),
    (&[("main.yaml", "a: 1\n")], "a[0]=1", &["`[` is not allowed in a key", "key.0=value", "  |  ^"]),
    (&[("main.yaml", "number: 1\n")], "nuber=1", &["no such key `nuber`", "did you mean `number`?", "override `nuber=1`"]),
    (&[("main.yaml", "a: 1\n")], "b@c=1", &["there is no group `b`"]),
    (&[("main.yaml", "a: [1]\n")], "a.1=2", &["`a` is a list of 1", "no item `1`"]),
    (&[("main.yaml", "a: [1]\n")], "a={b: 1}", &["`a` is a list, so it cannot become a mapping", "main.yaml:1:4"]),
    (&[("main.yaml", "a: 1\n")], "~a=2", &["`a` is 1, not 2"]),
    (&[("main.yaml", "a: ${b.c}\nb: {d: 1}\n")], "", &["`a` refers to `b.c`, which does not exist", "main.yaml:1:4"]),
    (&[("main.yaml", "a: ${b}\nb: x ${c}\nc: ${a}\n")], "", &["refer to each other: a → b → c → a", "main.yaml:1:4"]),
    (&[("main.yaml", "a: {b: '${a}'}\n")], "", &["refer to each other: a.b → a.b"]),
    (&[("main.yaml", "a: ${b}\nb: ???\n")], "", &["`a` refers to `b`, which must be given", "write b=VALUE"]),
    (&[("main.yaml", "a: ${...b}\n")], "", &["above the top"]),
    (&[("main.yaml", "a: ${hydra:job.name}\n")], "", &["`${hydra:…}`", "Hydra does not run here"]),
    (&[("main.yaml", "a: ${nope:1}\n")], "", &["`${nope:…}`, which is not available", "oc.env", "oc.dict.keys"]),
    (
        &[("main.yaml", "a: ${oc.env:BURNISH_NOT_SET}\n")],
        "",
        &["environment variable `BURNISH_NOT_SET`", "BURNISH_NOT_SET,DEFAULT"],
    ),
    (&[("main.yaml", "a: 1\nb: ${a\n")], "", &["this `${…}` cannot be read", "main.yaml:2:4", "2 | b: ${a", "  |    ^"]),
    (&[("main.yaml", "a: 99999999999999999999\n")], "", &["does not fit in 64 bits", "main.yaml:1:4"]),
    (&[("main.yaml", "a: 1\na: 2\n")], "", &["the key `a`", "twice", "main.yaml:2:1"]),
    (
        &[("main.yaml", "defaults: [db: y]\n"), ("db/x.yaml", "")],
        "",
        &["no configuration `db/y`", "`db` has: x", "main.yaml:1:16"],
    ),
    (
        &[("main.yaml", "defaults: [db: ???]\n"), ("db/x.yaml", "")],
        "",
        &["an option of the group `db` must be chosen", "db=OPTION; `db` has: x"],
    ),
    (&[("main.yaml", "defaults: [db: x]\n"), ("db/x.yaml", "")], "db=null", &["`db` has: x", "write ~db"]),
    (
        &[("main.yaml", "defaults: [db@a: x]\n"), ("db/x.yaml", "")],
        "db=x",
        &["the group `db`", "did you mean `db@a`?", "write +db=x"],
    ),
    (
        &[("main.yaml", "defaults: [a]\n"), ("a.yaml", "defaults: [b]\n"), ("b.yaml", "defaults: [a]\n")],
        "",
        &["`a` includes itself: ", "a.yaml → ", "b.yaml → "],
    ),
    (&[("main.yaml", "defaults: [{override db: x}, a]\n"), ("a.yaml", "")], "", &["`override` entries", "at the end"]),
    (
        &[("main.yaml", "defaults: [{db: x}, {db: y}]\n"), ("db/x.yaml", ""), ("db/y.yaml", "")],
        "",
        &["the group `db`", "override db: y"],
    ),
    (&[("main.yaml", "defaults: [_self_, _self_]\n")], "", &["`_self_` is in this list twice"]),
    (&[("main.yaml", "defaults: [{db: x}, '${dc}_y']\n"), ("db/x.yaml", "")], "", &["`${dc}_y`", "an earlier group: db"]),
    (
        &[("main.yaml", "defaults: [a, _self_]\nk: [1]\n"), ("a.yaml", "k: {x: 1}\n")],
        "",
        &["`k` is a mapping, so it cannot become a list", "a.yaml:1:4", "main.yaml:2:4"],
    ),
    (&[("main.yaml", "hydra: {searchpath: [pkg://verl]}\n")], "", &["`hydra.searchpath`", "only folders", "file://FOLDER"]),
];

#[test]
fn messages_name_the_place_the_reason_and_the_way_out() {
    for (files, text, parts) in MESSAGES {
        let overrides: Vec<String> = Some(text.to_string()).filter(|text| !text.is_empty()).into_iter().collect();
        let message = match compose_files(files, "main", &overrides) {
            Ok(tree) => panic!("{files:?} {text} is accepted:\n{}", tree.to_yaml()),
            Err(error) => error.to_string(),
        };
        for part in *parts {
            assert!(message.contains(part), "no {part:?} for {files:?} {text}:\n{message}");
        }
    }
}

#[test]
fn what_is_nested_too_deeply_or_grows_without_end_is_an_ordinary_error() {
    let message = |text: &str, one: &str| {
        let overrides: Vec<String> = Some(one.to_string()).filter(|one| !one.is_empty()).into_iter().collect();
        compose_files(&[("main.yaml", text)], "main", &overrides).map(|_| ()).unwrap_err().to_string()
    };
    let nested = |open: &str, middle: &str, close: &str, depth| format!("{}{middle}{}", open.repeat(depth), close.repeat(depth));
    for (open, middle, close) in [("[", "1", "]"), ("{a: ", "1", "}"), ("int(", "1", ")")] {
        let one = |depth| format!("a={}", nested(open, middle, close, depth));
        assert!(message("a: 1\n", &one(60_000)).contains("nested too deeply"), "{open}");
        assert!(message("a: 1\n", &one(201)).contains("nested too deeply"), "{open}");
        compose_files(&[("main.yaml", "a: 1\n")], "main", &[one(150)]).unwrap();
    }
    for text in [
        nested("${oc.env:BURNISH_NOT_SET,", "1", "}", 10_000),
        nested("${b.", "c", "}", 10_000),
        format!("${{oc.decode:'{}'}}", nested("[", "1", "]", 10_000)),
        format!("\n  {}1", "- ".repeat(1_000)),
        format!("1\n{}", (0..300).map(|i| format!("k{i}: ${{k{}}}\n", i + 1)).collect::<String>() + "k300: 1"),
    ] {
        assert!(message(&format!("a: {text}\n"), "").contains("nested too deeply"), "{}", &text[..20.min(text.len())]);
    }
    assert!(message("a: 1\n", &format!("+{}b=1", "a.".repeat(100))).contains("more than 100 parts"));
    assert!(
        message("a: 1\n", &format!("a={}", nested("json_str(", "\"", ")", 30).replace('"', "'\"'"))).contains("more than 1 MB")
    );

    let level = |i: usize| format!("k{i}: &k{i} [{}]\n", vec![format!("*k{}", i - 1); 10].join(", "));
    let bomb = format!("k0: &k0 1\n{}", (1..10).map(level).collect::<String>());
    let refused = message(&bomb, "");
    assert!(refused.contains("more than 1,000,000 values") && refused.contains("main.yaml:7:"), "{refused}");
    let doubled = |start: &str, twice: fn(usize) -> String| {
        let rest: String = (1..40).map(|i| format!("k{i}: {}\n", twice(i - 1))).collect();
        message(&format!("k0: {start}\n{rest}"), "")
    };
    let text = doubled(&"x".repeat(10_000), |i| format!("${{k{i}}}${{k{i}}}"));
    assert!(text.contains("`k7`") && text.contains("more than 1 MB"), "{text}");
    let list = doubled("[1]", |i| format!("['${{k{i}}}', '${{k{i}}}']"));
    assert!(list.contains("more than 1,000,000 values") && list.contains("`k"), "{list}");
}
