//! Names on Hugging Face's Hub, served by a local server: runs from names, failing downloads, and the cache shared with
//! `huggingface_hub`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use burnish::hub::{Environment, Hub, HubError, HubFiles, HubName, ModelParts, Purpose, RepoKind};
use serde_json::json;

use crate::common::{small_run, succeed, text, trainer};
use crate::hub_server::{Fault, HubServer, TOKEN};

const MODEL: &str = "models/burnish/tiny";
const DATA: &str = "datasets/burnish/sums";

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns a Hub with the model and the data of the arithmetic task, other files that are never read, and the two commits.
fn arithmetic() -> (HubServer, String, String) {
    let server = HubServer::start();
    let data = repository().join("data/arithmetic");
    let [train, test] = ["train", "test"].map(|name| fs::read(data.join(format!("{name}.parquet"))).unwrap());
    let unread: &[(&str, &[u8])] = &[("README.md", b"# Tiny"), ("pytorch_model.bin", b"pickle"), ("onnx/model.onnx", b"onnx")];
    let model = server.put_folder(MODEL, &data.join("model"), unread);
    let files: &[(&str, &[u8])] = &[
        ("README.md", b"---\nlicense: mit\n---\n"),
        ("data/train-00000-of-00001.parquet", &train),
        ("data/test-00000-of-00001.parquet", &test),
    ];
    let data = server.put(DATA, files);
    (server, model, data)
}

fn on_hub(command: &mut Command, server: &HubServer, home: &Path) {
    command.env("HF_ENDPOINT", &server.endpoint).env("HF_HOME", home).env("HF_TOKEN", TOKEN).env_remove("HF_HUB_OFFLINE");
}

const NAMES: &[&str] = &[
    "actor_rollout_ref.model.path=burnish/tiny",
    "data.train_files=burnish/sums",
    "data.val_files=hf://datasets/burnish/sums@main/test",
    "trainer.total_training_steps=1",
    "trainer.save_freq=1",
];

#[test]
fn a_run_from_names_is_the_run_from_folders_and_needs_no_hub_twice() {
    let (server, model, data) = arithmetic();
    let folder = tempfile::tempdir().unwrap();
    let (at, home) = (|name: &str| folder.path().join(name), folder.path().join("home"));
    succeed(small_run(&at("folders"), &["trainer.total_training_steps=1"]));

    // The dry run needs no weights.
    let mut plan = small_run(&at("plan"), &[NAMES, &["--dry-run=plan"]].concat());
    on_hub(&mut plan, &server, &home);
    let messages = succeed(plan);
    let (plan, log) = (String::from_utf8(messages.stdout).unwrap(), String::from_utf8(messages.stderr).unwrap());
    assert!(plan.contains(&format!("burnish/tiny@{model}: ")), "{plan}");
    assert!(log.contains("the weights of burnish/tiny are not in the cache"), "{log}");
    assert!(log.contains("data.train_files: burnish/sums is default/train (split train of test, train)"), "{log}");
    assert!(server.requests().iter().all(|request| !request.path.contains("safetensors")), "the weights were downloaded");

    let mut run = small_run(&at("names"), NAMES);
    on_hub(&mut run, &server, &home);
    let log = String::from_utf8(succeed(run).stderr).unwrap();
    assert!(log.contains("downloading burnish/tiny: 1 file, 2.2 MB, licence: apache-2.0; from http://127.0.0.1:"), "{log}");
    assert_eq!(text(&at("names")), text(&at("folders")));
    let requests = server.requests();
    for request in &requests {
        let token = request.authorization.as_deref().map(|own| own.strip_prefix("Bearer ").unwrap_or(own));
        assert_eq!(token, (!request.at_cdn).then_some(TOKEN), "{request:?}");
        assert!(!request.path.contains("onnx") && !request.path.contains("pytorch"), "{request:?}");
    }
    assert!(requests.iter().any(|request| request.at_cdn));

    // Only the cache is used: no requests are sent, whether they are allowed or not.
    for (name, offline) in [("online", "0"), ("offline", "1")] {
        let mut again = small_run(&at(name), NAMES);
        on_hub(&mut again, &server, &home);
        again.env("HF_HUB_OFFLINE", offline);
        succeed(again);
        assert_eq!(text(&at(name)), text(&at("folders")), "{name}");
        assert_eq!(server.requests().len(), 0, "{name}");
    }

    // The record and the checkpoint name the commits, and a run can start from both.
    let record: serde_json::Value = serde_json::from_slice(&fs::read(at("names/run.json")).unwrap()).unwrap();
    assert!(record["model"].as_str().unwrap().starts_with(&format!("burnish/tiny@{model}: ")), "{record}");
    let settings = fs::read_to_string(at("names/global_step_1/config.yaml")).unwrap();
    for line in [
        format!("path: burnish/tiny@{model}\n"),
        format!("train_files: hf://datasets/burnish/sums@{data}/default/train\n"),
        format!("val_files: hf://datasets/burnish/sums@{data}/default/test\n"),
    ] {
        assert!(settings.contains(&line), "{line} in\n{settings}");
    }
    let saved = at("names/global_step_1/config.yaml").display().to_string();
    let mut again = trainer(&["--config", &saved, "trainer.resume_mode=disable"]);
    again.arg(format!("trainer.default_local_dir={}", at("again").display()));
    on_hub(&mut again, &server, &home);
    succeed(again);
    assert_eq!((text(&at("again")), server.requests().len()), (text(&at("folders")), 0));
    // An adapter names its base model as PEFT does, and `export` finds it.
    let mut lora = small_run(&at("lora"), &[NAMES, &["actor_rollout_ref.model.lora_rank=2"]].concat());
    on_hub(&mut lora, &server, &home);
    succeed(lora);
    let adapter = fs::read(at("lora/global_step_1/actor/lora_adapter/adapter_config.json")).unwrap();
    let adapter: serde_json::Value = serde_json::from_slice(&adapter).unwrap();
    assert_eq!((&adapter["base_model_name_or_path"], &adapter["revision"]), (&json!("burnish/tiny"), &json!(model)));
    let [step, merged] = ["lora/global_step_1", "merged"].map(|name| at(name).display().to_string());
    let mut export = trainer(&["export", &step, "--output", &merged]);
    on_hub(&mut export, &server, &home);
    succeed(export);
    assert_eq!(server.requests().len(), 0);
    for file in burnish::util::fs::files_under(folder.path()).unwrap() {
        let content = fs::read(folder.path().join(&file)).unwrap_or_default();
        let found = content.windows(TOKEN.len()).any(|part| part == TOKEN.as_bytes());
        assert!(!found, "{} has the token", file.display());
    }
}

/// The environment of the server's Hub, with a cache in a folder.
fn hub(server: &HubServer, home: &Path, more: &[(&str, &str)]) -> Hub {
    let own = [("HF_ENDPOINT", server.endpoint.as_str()), ("HF_HOME", home.to_str().unwrap())];
    let variables: BTreeMap<&str, &str> = own.iter().chain(more).copied().collect();
    let environment = Environment::read(&|name| variables.get(name).map(ToString::to_string)).unwrap();
    Hub::new(environment).unwrap()
}

fn model(hub: &Hub, name: &str) -> Result<HubFiles, HubError> {
    hub.model(&HubName::parse(name, RepoKind::Model).unwrap(), ModelParts::Whole)
}

#[test]
fn downloads_survive_what_goes_wrong_and_nothing_wrong_is_kept() {
    let (server, commit, _) = arithmetic();
    let weights = fs::read(repository().join("data/arithmetic/model/model.safetensors")).unwrap();
    let wait = [("HF_HUB_DOWNLOAD_TIMEOUT", "1")];
    let part = "/model.safetensors";
    for (label, faults, ranges) in [
        ("cut off, and resumed", vec![(part, Fault::CutAfter(1_000_000))], vec![None, Some("bytes=1000000-")]),
        (
            "cut off twice",
            vec![(part, Fault::CutAfter(1000)), (part, Fault::CutAfter(1000))],
            vec![None, Some("bytes=1000-"), Some("bytes=2000-")],
        ),
        (
            "resumed by a server without ranges",
            vec![(part, Fault::CutAfter(1000)), (part, Fault::Status(503)), (part, Fault::Whole)],
            vec![None, Some("bytes=1000-")],
        ),
        ("wrong once", vec![(part, Fault::Wrong)], vec![None, None]),
        ("silent", vec![(part, Fault::Silent)], vec![None, Some("bytes=1114364-")]),
        ("busy", vec![("/api/", Fault::Status(500)), ("resolve", Fault::Status(429))], vec![None]),
    ] {
        let home = tempfile::tempdir().unwrap();
        faults.iter().for_each(|(path, fault)| server.fault(path, *fault));
        let found = model(&hub(&server, home.path(), &wait), "burnish/tiny").unwrap_or_else(|error| panic!("{label}: {error}"));
        assert_eq!(fs::read(found.paths[0].join("model.safetensors")).unwrap(), weights, "{label}");
        let requests = server.requests();
        let requests: Vec<_> = requests.iter().filter(|request| request.at_cdn).map(|request| request.range.as_deref()).collect();
        assert_eq!(requests, ranges, "{label}");
        let left = burnish::util::fs::files_under(home.path()).unwrap();
        assert!(left.iter().all(|path| !path.to_string_lossy().ends_with(".incomplete")), "{label}: {left:?}");
    }

    // An aborted download is resumed by the next process.
    let home = tempfile::tempdir().unwrap();
    let blobs = home.path().join("hub/models--burnish--tiny/blobs");
    fs::create_dir_all(&blobs).unwrap();
    let digits: String = <sha2::Sha256 as sha2::Digest>::digest(&weights).iter().map(|byte| format!("{byte:02x}")).collect();
    for (part, range) in [
        (&weights[..2_000_000], Some("bytes=2000000-")),
        // A complete file needs no request; a wrong or too long one is downloaded again.
        (&weights[..], None),
        (&[7; 1000], None),
        (&[weights.as_slice(), b"more"].concat(), None),
    ] {
        _ = fs::remove_dir_all(home.path().join("hub/models--burnish--tiny/snapshots"));
        _ = fs::remove_file(blobs.join(&digits));
        fs::write(blobs.join(format!("{digits}.incomplete")), part).unwrap();
        let found = model(&hub(&server, home.path(), &[]), "burnish/tiny").unwrap();
        assert_eq!(fs::read(found.paths[0].join("model.safetensors")).unwrap(), weights);
        let requests = server.requests();
        let last = requests.iter().rfind(|request| request.at_cdn).and_then(|request| request.range.clone());
        assert_eq!(last.as_deref(), range, "{} bytes", part.len());
    }
    // A file damaged in the cache is downloaded again.
    fs::write(blobs.join(&digits), "damaged").unwrap();
    let found = model(&hub(&server, home.path(), &[]), "burnish/tiny").unwrap();
    assert_eq!(fs::read(found.paths[0].join("model.safetensors")).unwrap(), weights);
    assert_eq!(found.name.to_string(), format!("burnish/tiny@{commit}"));

    // Two simultaneous processes download once.
    let home = tempfile::tempdir().unwrap();
    server.requests();
    let fetch = || {
        let mut fetch = trainer(&["fetch", "burnish/tiny"]);
        on_hub(&mut fetch, &server, home.path());
        fetch.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    for mut process in [fetch(), fetch()] {
        assert!(process.wait().unwrap().success());
    }
    assert_eq!(server.requests().iter().filter(|request| request.at_cdn).count(), 1);

    // Cached files are used even if the branch has moved, unless the newest revision is requested.
    let config = fs::read(repository().join("data/arithmetic/model/config.json")).unwrap();
    let newer = server.put(MODEL, &[("config.json", &config), ("model.safetensors", &weights), ("tokenizer.json", b"{}")]);
    server.name(MODEL, "v1", &commit);
    let name = |hub: &Hub, text: &str| model(hub, text).unwrap().name.revision.unwrap();
    let known = hub(&server, home.path(), &[("HF_HUB_OFFLINE", "1")]);
    assert_eq!(name(&known, "burnish/tiny"), commit);
    assert_eq!(name(&hub(&server, home.path(), &[]).refreshing(), "burnish/tiny"), newer);
    assert_eq!(name(&known, "burnish/tiny"), newer);
    assert_eq!(name(&hub(&server, home.path(), &[]), "burnish/tiny@v1"), commit);
    assert_eq!(name(&known, &format!("burnish/tiny@{commit}")), commit);
}

#[test]
fn what_cannot_be_had_is_one_clear_error() {
    let (server, ..) = arithmetic();
    let digits = "a".repeat(40);
    server.put("models/burnish/gated", &[("config.json", b"{}")]);
    server.put("models/burnish/private", &[("config.json", b"{}")]);
    server.put("models/burnish/pickled", &[("config.json", b"{}"), ("pytorch_model.bin", b"x")]);
    for hostile in ["hostile", "huge", "confused"] {
        server.put(&format!("models/burnish/{hostile}"), &[("config.json", b"{}")]);
    }
    let file = |path: &str, blob: &str, size: u64| json!({"rfilename": path, "blobId": blob, "size": size});
    server.replace("models/burnish/hostile", json!({"sha": digits, "siblings": [file("config.json", "../../../../hostile", 2)]}));
    let huge = [file("config.json", &digits, 2), file("model.safetensors", &digits, 1 << 60)];
    server.replace("models/burnish/huge", json!({"sha": digits, "siblings": huge}));
    server.replace("models/burnish/confused", json!({"error": "no list"}));
    let home = tempfile::tempdir().unwrap();
    for (name, token, parts) in [
        ("burnish/gated", "", &["is gated", "/burnish/gated, and set HF_TOKEN", "HF_TOKEN is unset"][..]),
        ("burnish/gated", "hf_OfSomebodyElse", &["is gated", "the token has no access"]),
        ("burnish/private", "", &["there is no model `burnish/private` at http://127.0.0.1:", "private", "HF_TOKEN is unset"]),
        ("burnish/none", TOKEN, &["there is no model `burnish/none`"]),
        ("burnish/tiny@v9", "", &["model `burnish/tiny` has no revision `v9`"]),
        ("burnish/pickled", "", &["pytorch_model.bin, a Python pickle"]),
        ("burnish/hostile", "", &["checksum of \"config.json\""]),
        ("burnish/huge", "", &["free in", "HF_HOME"]),
        ("burnish/confused", "", &["list of files", "HF_ENDPOINT"]),
    ] {
        let error = model(&hub(&server, home.path(), &[("HF_TOKEN", token)]), name).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{name}: {error}");
        }
        assert!(token.is_empty() || !error.contains(token), "{error}");
    }
    let found = hub(&server, home.path(), &[("HF_TOKEN", TOKEN)])
        .model(&HubName::parse("burnish/gated", RepoKind::Model).unwrap(), ModelParts::WithoutWeights);
    assert!(found.is_ok());

    // Content with a wrong checksum in every attempt is not kept.
    for _ in 0..2 {
        server.fault("/model.safetensors", Fault::Wrong);
    }
    let error = model(&hub(&server, home.path(), &[]), "burnish/tiny").unwrap_err().to_string();
    assert!(error.contains("its checksum is"), "{error}");
    let all = burnish::util::fs::files_under(home.path()).unwrap();
    let large = all.iter().filter(|path| fs::metadata(home.path().join(path)).unwrap().len() > 1_000_000);
    assert_eq!(large.count(), 0, "{all:?}");
    assert!(all.iter().all(|path| !path.to_string_lossy().contains("hostile/") && path.file_name().unwrap() != "hostile"));

    // The message names the key, the place, and the command to run on another machine.
    let recipe = home.path().join("own.yaml");
    let lines = "defaults: [ppo_trainer, _self_]\ndata: {train_files: rows.jsonl}\nactor_rollout_ref:\n  model:\n    path: burnish/none\n";
    fs::write(&recipe, lines).unwrap();
    let recipe = recipe.to_str().unwrap();
    let closed = "http://127.0.0.1:9";
    for (environment, parts) in [
        (
            &[("HF_HUB_OFFLINE", "1")][..],
            &["because HF_HUB_OFFLINE is set", "`trainer fetch burnish/none`", "hf download burnish/none --local-dir"][..],
        ),
        (&[("HF_ENDPOINT", closed)], &["http://127.0.0.1:9 does not reply", "`trainer fetch burnish/none`"]),
        (&[("HF_ENDPOINT", server.endpoint.as_str())], &["no `burnish/none` is here, and there is no model `burnish/none` at"]),
        (&[("HF_ENDPOINT", "somewhere")], &["HF_ENDPOINT=somewhere"]),
    ] {
        let mut command = trainer(&["--config", recipe, "--dry-run=plan"]);
        command.env_remove("HF_HUB_OFFLINE").env_remove("HF_TOKEN").env("HF_HOME", home.path()).envs(environment.iter().copied());
        let output = command.output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        for part in [&["`actor_rollout_ref.model.path`: ", "own.yaml:5:11"], parts].concat() {
            assert!(message.contains(part), "{part} in {message}");
        }
        assert_eq!(message.matches("error:").count(), 1, "{message}");
    }
}

#[test]
fn data_sets_are_chosen_by_split_and_converted_ones_are_found() {
    let (server, _, commit) = arithmetic();
    let home = tempfile::tempdir().unwrap();
    let data = |text: &str, purpose| {
        let found = hub(&server, home.path(), &[])
            .data(&HubName::from_setting(text, RepoKind::Dataset).unwrap().unwrap(), purpose)
            .unwrap();
        let snapshot = found.paths[0].ancestors().find(|path| path.parent().unwrap().ends_with("snapshots")).unwrap();
        let paths = found.paths.iter().map(|path| path.strip_prefix(snapshot).unwrap().display().to_string());
        format!("{} {}", found.name, paths.collect::<Vec<_>>().join(" "))
    };
    let (train, test) = ("data/train-00000-of-00001.parquet", "data/test-00000-of-00001.parquet");
    let at = |part: &str| format!("burnish/sums@{commit}/{part}");
    assert_eq!(data("burnish/sums", Purpose::Training), format!("{} {train}", at("default/train")));
    assert_eq!(data("burnish/sums", Purpose::Validation), format!("{} {test}", at("default/test")));
    assert_eq!(data("burnish/sums", Purpose::All), format!("{} {test} {train}", at("default")));
    let file = format!("hf://datasets/burnish/sums@main/{train}");
    assert_eq!(data(&file, Purpose::Validation), format!("{} {train}", at(train)));

    let original = server.put("datasets/burnish/csv", &[("train.csv", b"a\n1\n")]);
    let converted = server.put("datasets/burnish/csv", &[("default/train/0000.parquet", b"PAR1")]);
    server.name("datasets/burnish/csv", "refs/convert/parquet", &converted);
    server.name("datasets/burnish/csv", "main", &original);
    let expected = format!("burnish/csv@{converted}/default/train default/train/0000.parquet");
    assert_eq!(data("burnish/csv", Purpose::Training), expected);
}

/// Hugging Face's package, if it is installed: it finds files downloaded here, and the reverse.
#[test]
fn huggingface_hub_and_the_trainer_share_a_cache() {
    let python = std::env::var("BURNISH_HF_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let there = Command::new(&python).args(["-c", "import huggingface_hub"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        println!("{python} has no huggingface_hub: the cache is not compared (BURNISH_HF_PYTHON names another)");
        return;
    }
    let (server, commit, _) = arithmetic();
    let folder = tempfile::tempdir().unwrap();
    let [ours, theirs] = ["ours", "theirs"].map(|name| folder.path().join(name));
    let run = |home: &Path, code: &str, offline: &str| {
        let mut command = Command::new(&python);
        on_hub(&mut command, &server, home);
        command.env("HF_HUB_DISABLE_XET", "1").env("HF_HUB_OFFLINE", offline).args(["-c", code]);
        let output = succeed(command);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let snapshot = |home: &Path| home.join("hub/models--burnish--tiny/snapshots").join(&commit).display().to_string();

    let mut fetch = trainer(&["fetch", "burnish/tiny", "hf://datasets/burnish/sums"]);
    on_hub(&mut fetch, &server, &ours);
    let fetched = String::from_utf8(succeed(fetch).stdout).unwrap();
    assert_eq!(fetched.lines().next().unwrap(), snapshot(&ours));
    let find = "from huggingface_hub import snapshot_download as s; print(s('burnish/tiny', local_files_only=True))";
    assert_eq!(run(&ours, find, "1"), snapshot(&ours));
    let file = "from huggingface_hub import hf_hub_download as d; print(d('burnish/sums', \
                'data/test-00000-of-00001.parquet', repo_type='dataset', local_files_only=True))";
    assert_eq!(Path::new(&run(&ours, file, "1")), Path::new(fetched.lines().nth(1).unwrap()));
    // Online, the Hub's client only adds files that this program did not need.
    server.requests();
    let rest = "from huggingface_hub import snapshot_download as s; print(s('burnish/tiny', ignore_patterns=['*.md', '*.bin', 'onnx/*']))";
    assert_eq!(run(&ours, rest, "0"), snapshot(&ours));
    assert!(server.requests().iter().all(|request| !request.at_cdn));

    run(&theirs, "from huggingface_hub import snapshot_download as s; print(s('burnish/tiny'))", "0");
    server.requests();
    let environment = [("HF_HUB_OFFLINE", "1")];
    assert_eq!(
        model(&hub(&server, &theirs, &environment), "burnish/tiny").unwrap().paths[0].display().to_string(),
        snapshot(&theirs)
    );
    // The cache of transformers: single files, and no list of them.
    fs::remove_dir_all(theirs.join("hub/models--burnish--tiny/trees")).unwrap();
    let name = model(&hub(&server, &theirs, &[]), "burnish/tiny").unwrap().name;
    assert_eq!((name.revision.as_deref(), server.requests().len()), (Some(commit.as_str()), 0));
}
