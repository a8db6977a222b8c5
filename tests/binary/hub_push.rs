//! `trainer export --push-to-hub`, against a server that receives files like the Hub and returns them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{small_run, succeed, trainer};
use crate::hub_push_server::{File, HubServer, TOKEN, Trouble};

/// A folder with a checkpoint of two steps at `run/global_step_2`.
fn trained() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let short = ["trainer.total_training_steps=2", "trainer.save_freq=2", "trainer.test_freq=1", "data.val_max_samples=8"];
    succeed(small_run(&folder.path().join("run"), &short));
    folder
}

/// Returns the command, with a token and its own home.
fn at(server: &HubServer, home: &Path, args: &[&str]) -> Command {
    let mut command = trainer(args);
    for name in ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_TOKEN_PATH", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_CACHE"] {
        command.env_remove(name);
    }
    command.env("HF_ENDPOINT", &server.address).env("HF_TOKEN", TOKEN).env("HF_HOME", home);
    command
}

fn messages(output: &Output) -> String {
    String::from_utf8([output.stdout.as_slice(), &output.stderr].concat()).unwrap()
}

/// The files of a folder without subfolders.
fn files_of(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<(String, Vec<u8>)> =
        entries.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap())).collect();
    files.sort();
    files
}

/// Returns the files that a branch has in addition to its initial ones.
fn pushed(server: &HubServer, repo: &str, branch: &str) -> Vec<(String, Vec<u8>)> {
    let files = server.files(repo, branch).into_iter().filter(|(name, _)| name != ".gitattributes");
    files.map(|(name, file)| (name, file.bytes)).collect()
}

#[test]
fn a_model_is_pushed_through_faults_and_read_by_others() {
    let (server, folder) = (HubServer::start(), trained());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (checkpoint, exported) = (path("run/global_step_2"), path("exported"));
    server.fail("/preupload/", 1, Trouble::Status(500));
    server.fail("/api/repos/create", 2, Trouble::Status(503));
    server.fail("PUT /store/", 1, Trouble::CutAfter(100_000));
    server.fail("/commit/", 1, Trouble::Status(502));
    let export = ["export", &checkpoint, "--output", &exported, "--push-to-hub", "org/little", "--commit-message", "Two steps"];
    let output = at(&server, folder.path(), &export).output().unwrap();
    let shown = messages(&output);
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains(&format!("{}/org/little: 5 files in commit", server.address)), "{shown}");
    assert!(shown.contains("status 500: a fault of the test; trying again in 0.5 s"), "{shown}");
    assert_eq!(pushed(&server, "org/little", "main"), files_of(Path::new(&exported)));
    assert_eq!(server.requests_of("PUT /store/"), 2, "one was cut off");
    let repo = server.store().repos["org/little"].clone();
    assert_eq!((repo.private, &repo.branches["main"].0), (false, &vec!["initial commit".to_owned(), "Two steps".to_owned()]));
    assert!(repo.branches["main"].1["model.safetensors"].large && !repo.branches["main"].1["config.json"].large);

    // The card, which a plain export has too, has nothing about this machine, and only the Hub receives the token.
    let card = String::from_utf8(repo.branches["main"].1["README.md"].bytes.clone()).unwrap();
    for line in
        ["library_name: transformers", "# little", "after 2 steps of training", "data.train_batch_size: 8", "| Step | `val-core/"]
    {
        assert!(card.contains(line), "{line}\n{card}");
    }
    for secret in [TOKEN, folder.path().to_str().unwrap(), env!("CARGO_MANIFEST_DIR")] {
        assert!(!card.contains(secret), "{secret}\n{card}");
    }
    assert!(!shown.contains(TOKEN), "{shown}");
    let elsewhere = server.store().requests.iter().filter(|(line, token)| line.contains("/store/") && token.is_some()).count();
    assert_eq!(elsewhere, 0);

    // A second push: all files are already there.
    let again = ["export", &exported, "--push-to-hub", "org/little"];
    let shown = messages(&succeed_at(&server, folder.path(), &again));
    assert!(shown.contains("nothing to push"), "{shown}");
    // A file that was changed on the Hub is restored; a README written by a user stays.
    {
        let mut store = server.store();
        let files = &mut store.repos.get_mut("org/little").unwrap().branches.get_mut("main").unwrap().1;
        files.insert("config.json".to_owned(), File { bytes: b"{}".to_vec(), large: false });
        files.insert("README.md".to_owned(), File { bytes: b"# By hand\n".to_vec(), large: false });
        files.remove("model.safetensors");
    }
    let shown = messages(&succeed_at(&server, folder.path(), &again));
    assert!(
        shown.contains("2 files in commit") && shown.contains("0 large ones") && shown.contains("README.md was kept"),
        "{shown}"
    );
    let files = server.files("org/little", "main");
    assert_eq!(files["README.md"].bytes, b"# By hand\n");
    assert_eq!(files["config.json"].bytes, fs::read(Path::new(&exported).join("config.json")).unwrap());

    // A branch of the user's own private repository, with the weights in parts; one part has to be sent twice.
    server.store().objects.clear();
    server.store().part = Some(700_000);
    server.fail("PUT /store/", 1, Trouble::CutAfter(5));
    let own = ["export", &exported, "--push-to-hub", "mine", "--private", "--revision", "dev"];
    let shown = messages(&succeed_at(&server, folder.path(), &own));
    assert!(shown.contains("/tester/mine/tree/dev: 5 files"), "{shown}");
    assert_eq!(pushed(&server, "tester/mine", "dev"), files_of(Path::new(&exported)));
    assert_eq!(pushed(&server, "tester/mine", "main"), []);
    assert!(server.store().repos["tester/mine"].private && server.requests_of("POST /complete/") == 1);
    println!("{}", check_by_the_hubs_own_client(&server, folder.path(), Path::new(&exported)));
}

fn succeed_at(server: &HubServer, home: &Path, args: &[&str]) -> Output {
    succeed(at(server, home, args))
}

/// Reads the pushed files with `huggingface_hub`, if the Python of BURNISH_HUB_PYTHON, or python3, has it.
fn check_by_the_hubs_own_client(server: &HubServer, home: &Path, exported: &Path) -> String {
    let python = std::env::var("BURNISH_HUB_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_it =
        Command::new(&python).args(["-c", "import huggingface_hub"]).output().is_ok_and(|output| output.status.success());
    if !has_it {
        return format!("{python} has no huggingface_hub: what was pushed is not read by it");
    }
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scripts/check/hub_push.py");
    let mut command = Command::new(&python);
    command.arg(script).args([&server.address, "tester/mine", "dev"]).arg(exported);
    let output = succeed_with(command.env("HF_HOME", home.join("client")).env("HF_TOKEN", TOKEN).env_remove("HF_HUB_OFFLINE"));
    messages(&output)
}

fn succeed_with(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", messages(&output));
    output
}

#[test]
fn a_push_that_cannot_be_says_why() {
    let (server, folder) = (HubServer::start(), trained());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (checkpoint, exported) = (path("run/global_step_2"), path("exported"));
    let public = ["export", &checkpoint, "--output", &exported, "--push-to-hub", "org/public"];
    succeed_at(&server, folder.path(), &public);
    let refused = |name: &str, more: &[&str], variables: &[(&str, &str)]| {
        // Each file has new content, so that every path is followed to its end.
        server.store().objects.clear();
        let args = [&["export", exported.as_str(), "--push-to-hub", name], more].concat();
        let mut command = at(&server, folder.path(), &args);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let shown = messages(&output);
        assert!(!shown.contains(TOKEN) && !shown.contains("hf_wrong_token"), "{shown}");
        (output.status.code().unwrap(), shown)
    };
    for (name, more, variables, code, message) in [
        ("org/a", &[][..], &[("HF_TOKEN", "")][..], 2, &["token", "set HF_TOKEN"][..]),
        (
            "org/a",
            &[],
            &[("HF_TOKEN", "hf_wrong_token")],
            2,
            &["does not accept the token: Invalid credentials", "***", "/settings/tokens"],
        ),
        ("org/a", &[], &[("HF_HUB_OFFLINE", "1")], 2, &["HF_HUB_OFFLINE is set"]),
        ("org/a", &[], &[("HF_ENDPOINT", "http://127.0.0.1:9")], 2, &["http://127.0.0.1:9 does not reply"]),
        ("a b", &[], &[], 2, &["--push-to-hub a b: it must be the name of a repository"]),
        ("org/a@dev", &[], &[], 2, &["the branch is --revision"]),
        ("org/a", &["--revision", "refs/pr/1"], &[], 2, &["it must be the name of a branch"]),
        ("org/a", &["--dtype", "float16"], &[], 2, &["--dtype has no effect", "pushed unchanged"]),
        (
            "forbidden/a",
            &[],
            &[],
            1,
            &["no write access to `forbidden/a`", "You don't have the rights", "to push it: trainer export"],
        ),
        ("org/public", &["--private"], &[], 1, &["`org/public` is public", "--private"]),
    ] {
        let (status, shown) = refused(name, more, variables);
        assert_eq!(status, code, "{name} {more:?} {variables:?}\n{shown}");
        message.iter().for_each(|message| assert!(shown.contains(message), "{message}\n{shown}"));
    }
    for (line, status, message) in [
        ("PUT /store/", 413, "model.safetensors is too large for the server"),
        ("/commit/", 409, "another client is changing `org/b`"),
        ("/preupload/", 404, "no repository `org/b`"),
        ("PUT /store/", 500, "status 500"),
    ] {
        server.fail(line, 9, Trouble::Status(status));
        let (code, shown) = refused("org/b", &[], &[]);
        assert!(code == 1 && shown.contains(message), "{shown}");
        server.store().faults.clear();
        assert_eq!(pushed(&server, "org/b", "main"), [], "no commit is made of a part");
    }
    // The named command pushes the files of an earlier attempt.
    let (code, shown) = {
        let output = at(&server, folder.path(), &public).output().unwrap();
        (output.status.code(), messages(&output))
    };
    assert!(
        code == Some(2)
            && shown.contains(&format!("exists already; to push it: trainer export {exported} --push-to-hub org/public")),
        "{shown}"
    );
    let alone = messages(&trainer(&["export", &checkpoint]).output().unwrap());
    assert!(alone.contains("--output FOLDER is missing"), "{alone}");
}
