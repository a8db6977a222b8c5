//! One page, played: its commands run one after another in a folder with the files that the page shows.

use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;

use crate::common::{copy, trainer};
use crate::numpy::has_numpy;

/// Plays a block, and returns its present text.
type Play = fn(&Session, &str) -> String;

/// The marks, each with its way to play a block.
pub(super) const MARKS: &[(&str, Play)] = &[
    // Commands behind `$ `, with their exact output. `$ cat FILE` writes the file, or shows the one that is there.
    ("console", Session::exact),
    // The same for output with values that depend on the machine; `…` stands for lines, or for the rest of a line.
    ("console,example", Session::example),
    // A shell script without a failure.
    ("sh", Session::run),
    // The same, and commands that train take two steps here, `dpo` on few rows.
    ("sh,short", Session::short),
    // The same for functions on columns, where Python has NumPy.
    ("sh,short,needs-numpy", Session::short_with_numpy),
    // The same for losses in Python, where Python has torch.
    ("sh,short,needs-torch", Session::short_with_torch),
    // The same with files that readers have, which are in `tests/data/pages/PAGE`.
    ("sh,needs-files", Session::short),
    ("sh,needs-jq", Session::run_with_jq),
    // Files, if their first line is a comment with the name.
    ("python", Session::file),
    ("yaml", Session::file),
    // Commands that a test machine cannot run.
    ("sh,needs-gpu", Session::keep),
    ("sh,needs-idle-machine", Session::keep),
    ("sh,needs-machines", Session::keep),
    ("sh,needs-network", Session::keep),
    // Servers, which `tests/binary/serve.rs` and `tests/binary/serve_rm.rs` start.
    ("sh,stays", Session::keep),
    ("console,stays", Session::keep),
    // No command.
    ("", Session::keep),
    ("json", Session::keep),
    ("rust", Session::keep),
    ("text", Session::keep),
    ("toml", Session::keep),
];

pub(super) struct Session {
    page: String,
    folder: tempfile::TempDir,
}

impl Session {
    pub(super) fn new(page: &str) -> Self {
        let (page, folder) = (page.to_owned(), tempfile::tempdir().unwrap());
        for name in ["data", "recipes"] {
            let target = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
            std::os::unix::fs::symlink(target, folder.path().join(name)).unwrap();
        }
        let files = Path::new("tests/data/pages").join(Path::new(&page).file_stem().unwrap());
        if files.exists() {
            copy(&files, folder.path());
        }
        Self { page, folder }
    }

    pub(super) fn play(&self, mark: &str, body: &str) -> String {
        let row = MARKS.iter().find(|(known, _)| *known == mark);
        let known: Vec<&str> = MARKS.iter().map(|(known, _)| *known).collect();
        let (_, play) = row.unwrap_or_else(|| panic!("{}: no mark `{mark}`; the marks are {}", self.page, known.join(" ")));
        play(self, body)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The shell with a script, in the session's folder, where `trainer` is this program.
    #[expect(clippy::print_stdout, reason = "--nocapture lists the commands that ran")]
    fn shell(&self, script: &str) -> Command {
        println!("{}: {}", self.page, script.trim());
        let environment = trainer(&[]);
        let program = Path::new(environment.get_program()).parent().unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(program.to_owned()).chain(std::env::split_paths(&path))).unwrap();
        let mut shell = Command::new("sh");
        for (name, value) in environment.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell.args(["-euc", script]).current_dir(self.folder.path()).env("PATH", path);
        shell
    }

    /// Standard output, then standard error; or both as they come.
    fn printed(&self, command: &str, together: bool) -> String {
        let script = if together { format!("exec 2>&1\n{command}") } else { command.to_owned() };
        let output = self.shell(&script).output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }

    fn exact(&self, body: &str) -> String {
        let shown = |(command, output): (String, String)| {
            let output = match command.strip_prefix("cat ").map(|name| self.path(name)) {
                Some(path) if path.exists() => std::fs::read_to_string(path).unwrap(),
                Some(path) => {
                    std::fs::write(path, output.trim_end().to_owned() + "\n").unwrap();
                    output
                }
                None => self.printed(&command, false),
            };
            format!("$ {command}\n{}", output.trim_end()).trim_end().to_owned()
        };
        parts(body).into_iter().map(shown).collect::<Vec<_>>().join("\n\n") + "\n"
    }

    fn example(&self, body: &str) -> String {
        for (command, shown) in parts(body) {
            let printed = self.printed(&command, true);
            assert!(
                pattern(&shown).is_match(&format!("\n{}\n", printed.trim_end())),
                "{}: `{command}` does not print\n{shown}\nbut\n{printed}",
                self.page
            );
        }
        body.to_owned()
    }

    fn run(&self, body: &str) -> String {
        let output = self.shell(body).output().unwrap();
        let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        assert!(output.status.success(), "{}: this fails:\n{body}\n{out}{err}", self.page);
        body.to_owned()
    }

    fn short_with_numpy(&self, body: &str) -> String {
        if has_numpy() { self.short(body) } else { body.to_owned() }
    }

    fn short_with_torch(&self, body: &str) -> String {
        let there = Command::new("python3").args(["-c", "import torch"]).output().is_ok_and(|output| output.status.success());
        if there { self.short(body) } else { body.to_owned() }
    }

    fn run_with_jq(&self, body: &str) -> String {
        let there = Command::new("jq").arg("--version").output().is_ok();
        if there { self.run(body) } else { body.to_owned() }
    }

    fn short(&self, body: &str) -> String {
        let lines = body.replace("\\\n", " ");
        let short = |line: &str| {
            let (command, comment) = line.split_once("  #").unwrap_or((line, ""));
            let trains = ["--config ", "sft ", "rm ", "dpo ", "distill "];
            let trains = command.strip_prefix("trainer ").is_some_and(|args| trains.iter().any(|kind| args.starts_with(kind)));
            let two = if trains { " trainer.total_training_steps=2" } else { "" };
            let few = if command.starts_with("trainer dpo ") { " data.train_max_samples=128" } else { "" };
            format!("{}{two}{few} # {comment}\n", command.trim_end())
        };
        self.run(&lines.lines().map(short).collect::<String>());
        body.to_owned()
    }

    fn file(&self, body: &str) -> String {
        let name = body.strip_prefix("# ").and_then(|line| line.split([':', '\n', ' ']).next()).unwrap_or_default();
        if name.contains('.') && !name.contains('/') {
            std::fs::write(self.path(name), body).unwrap();
        }
        body.to_owned()
    }

    fn keep(&self, body: &str) -> String {
        body.to_owned()
    }
}

/// The commands of a console, each with its output.
fn parts(body: &str) -> Vec<(String, String)> {
    let (mut parts, mut lines) = (vec![], body.lines().peekable());
    while let Some(line) = lines.next() {
        let mut command = line.strip_prefix("$ ").unwrap_or_else(|| panic!("no command in `{line}`")).to_owned();
        while command.ends_with('\\') {
            command = format!("{command}\n{}", lines.next().unwrap_or_default());
        }
        let mut output = String::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
            output.push_str(&format!("{line}\n"));
        }
        parts.push((command, output));
    }
    parts
}

/// The outputs that an example stands for: a number means any number, spaces mean any spaces.
fn pattern(shown: &str) -> Regex {
    let piece = Regex::new(r"\n…\n|…|-?\d[\d.,]*(?:e-?\d+)?|[ ]+").unwrap();
    let shown = format!("\n{}\n", shown.trim_end());
    let (mut pattern, mut at) = (String::from("(?s)^"), 0);
    for found in piece.find_iter(&shown) {
        pattern.push_str(&regex::escape(&shown[at..found.start()]));
        pattern.push_str(match found.as_str() {
            "…" => "[^\n]*",
            piece if piece.contains('…') => r"\n(?:[^\n]*\n)*?",
            piece if piece.starts_with(' ') => " +",
            // A slow machine takes `1m02s` in place of `3s`.
            _ => r"(?:\d+[hm])*-?[\d.,]+(?:e-?\d+)?",
        });
        at = found.end();
    }
    pattern.push_str(&regex::escape(&shown[at..]));
    Regex::new(&(pattern + "$")).unwrap()
}
