//! Commands of the pages: the program understands each, the settings exist, and other programs are known.
//!
//! `pages_show_what_the_program_prints` in `tests/binary/console.rs` runs the blocks without a mark such as `needs-gpu`.

mod shell;

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use burnish::cli::{Cli, check_command, choices};
use burnish::config::Request;
use burnish::config::kinds::{ConfigKind, KINDS, infer, named};
use burnish_hydra::sweeps;
use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory};
use regex::Regex;

use crate::docs::{pages, root};
use shell::{blocks, commands};

/// Pages with commands, and folders of them.
const PAGES: &[&str] = &[
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "data/README.md",
    "docs",
    "examples",
    "launch",
    "packaging",
    "scripts",
    "skills",
];
/// The folders whose blocks without a mark are run.
const SITE: &[&str] = &["docs/", "skills/"];
/// Programs and words of the shell that every system has.
const SYSTEM: &[&str] =
    &["cat", "cp", "curl", "done", "echo", "export", "for", "head", "jq", "mv", "python", "python3", "rmdir", "set", "tail"];
/// Marks of blocks that a test runs.
const RUN: &[&str] = &["example", "short"];
/// Programs that no test runs. On a page of the site, a mark such as `needs-network` says why.
const FOREIGN: &[&str] = &[
    "apt-get",
    "cargo",
    "cargo-zigbuild",
    "chroot",
    "debootstrap",
    "docker",
    "kubectl",
    "maturin",
    "mount",
    "mpirun",
    "pip",
    "qemu-aarch64-static",
    "rustup",
    "sbatch",
    "sh",
    "uv",
    "uvx",
];

/// Names of recipes that readers have.
const OF_READERS: &[&str] = &["grpo.yaml", "recipe.yaml", "run.yaml"];

/// A command of a page.
struct Found<'a> {
    words: &'a [String],
    /// A text such as `trainer init`, not a whole command: words may be missing.
    is_part: bool,
    /// The page, which writes some of the recipes that it names.
    page: &'a str,
}

/// The words of `trainer` in a command, which another program may start.
fn ours(words: &[String]) -> Option<&[String]> {
    let after = |name: &str| words.iter().position(|word| word == name).map(|at| &words[at + 1..]);
    match words[0].as_str() {
        "trainer" => Some(&words[1..]),
        "uvx" => after("burnish"),
        "docker" => after("IMAGE"),
        "cargo" if words.get(1).is_some_and(|word| word == "run") => after("--"),
        "mpirun" | "srun" | "sbatch" => after("trainer"),
        _ => None,
    }
}

/// The last subcommand of a command line, with its name.
fn last<'a>(name: &'a str, matches: &'a ArgMatches) -> (&'a str, &'a ArgMatches) {
    matches.subcommand().map_or((name, matches), |(name, below)| last(name, below))
}

/// The configuration that a command names.
fn request(matches: &ArgMatches) -> Option<Request> {
    let overrides = matches.try_get_many::<String>("overrides").ok()?;
    let is_sweep = matches.try_get_one::<bool>("multirun").ok().flatten().copied().unwrap_or(false);
    let overrides: Vec<String> = overrides.into_iter().flatten().cloned().collect();
    // Of a sweep, the first run.
    let first = |words: &[String]| sweeps::product(&sweeps::read(words).ok()?).ok()?.into_iter().next();
    let text = |id: &str| matches.try_get_one::<String>(id).ok().flatten().cloned();
    Some(Request {
        config: text("config"),
        config_name: text("config_name"),
        config_path: matches.try_get_one::<PathBuf>("config_path").ok().flatten().cloned(),
        config_dirs: vec![],
        overrides: if is_sweep { first(&overrides)? } else { overrides },
    })
}

/// Checks the settings. A recipe that the page writes stands for the defaults of its kind.
fn check_settings(known: Option<&'static ConfigKind>, mut request: Request, page: &str) -> Result<(), String> {
    let is_written = |config: &String| {
        let written = ["# ", "cat ", "--output "].iter().any(|before| page.contains(&format!("{before}{config}")));
        !root().join(config).exists() && (written || OF_READERS.contains(&config.as_str()))
    };
    if request.config.as_ref().is_some_and(is_written) {
        request.config = Some(known.unwrap_or(&KINDS[0]).file.to_owned());
    }
    let known = known.map_or_else(|| infer(&request), Ok).map_err(|error| error.to_string())?;
    known.load(&request, &choices(known.kind)).map(|_| ()).map_err(|error| error.to_string())
}

/// Checks a command line of `trainer`, without the name of the program.
fn check(found: &Found) -> Result<(), String> {
    let words: Vec<_> = found.words.iter().map(Into::into).collect();
    if !words.is_empty() {
        check_command(&words).map_err(|error| error.message().unwrap_or_default())?;
    }
    let line = std::iter::once("trainer".to_owned()).chain(found.words.iter().cloned());
    let matches = match Cli::command().try_get_matches_from(line) {
        Ok(matches) => matches,
        Err(error) => {
            let is_short = matches!(
                error.kind(),
                ErrorKind::MissingRequiredArgument
                    | ErrorKind::MissingSubcommand
                    | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            );
            let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            return if is_help || is_short && found.is_part { Ok(()) } else { Err(error.to_string()) };
        }
    };
    let (name, matches) = last("rl", &matches);
    let Some(request) = request(matches) else { return Ok(()) };
    check_settings(named(name), request, found.page)
}

/// Checks a command of any program. `is_run`: a test runs the block.
fn check_any(words: &[String], is_run: bool, page: &str) -> Result<(), String> {
    if let Some(words) = ours(words) {
        check(&Found { words, is_part: false, page })?;
    }
    let program = words[0].as_str();
    let is_script = program.contains('/') && root().join(program).is_file();
    let is_foreign = FOREIGN.contains(&program) || is_script;
    if is_foreign && is_run {
        return Err(format!("a test cannot run `{program}`: the block needs a mark of docs/site.css"));
    }
    let is_known = is_foreign || program == "trainer" || SYSTEM.contains(&program);
    if is_known { Ok(()) } else { Err(format!("`{program}` is not a known program")) }
}

#[test]
fn commands_of_a_script_are_found() {
    let page = "```console,example\n$ trainer a \\\n  b\noutput\n```\n```sh,short\nX=1 echo \"a # b\" | trainer c > f 2>&1 # d\n\
                for i in 1; do trainer e=\"f g\" && mv h i; done\n```\n```text\ntrainer j\n```\n";
    let found: Vec<_> = blocks(page).iter().map(|block| commands(&block.script)).collect();
    let expected = [
        vec![vec!["trainer", "a", "b"]],
        vec![
            vec!["echo", "a # b"],
            vec!["trainer", "c"],
            vec!["for", "i", "in", "1"],
            vec!["trainer", "e=f g"],
            vec!["mv", "h", "i"],
            vec!["done"],
        ],
    ];
    assert_eq!(found, expected);
}

#[test]
fn mistakes_of_commands_are_found() {
    for (line, mistake) in [
        ("trainer trian", "trian"),
        ("trainer runs ls --jsn", "--jsn"),
        ("trainer --config ppo_trainer.yaml algorithm.adv_estimatr=rloo", "algorithm.adv_estimatr"),
        ("trainer sft --config recipes/none.yaml", "recipes/none.yaml"),
        ("mpirun -n 2 trainer --config ppo_trainer.yaml data.sed=1", "data.sed"),
        ("tariner --help", "`tariner` is not a known program"),
    ] {
        let found = check_any(&commands(line)[0], false, "");
        assert!(found.as_ref().is_err_and(|error| error.contains(mistake)), "{line}: {found:?}");
    }
    assert!(check_any(&commands("pip install burnish")[0], true, "").is_err());
}

#[test]
fn commands_of_all_pages_are_understood() {
    let mut found = vec![];
    for place in PAGES {
        let path = root().join(place);
        if path.is_dir() { pages(&path, &mut found) } else { found.push(path) }
    }
    let inline = Regex::new(r"`(trainer [^`…]+)`").unwrap();
    let styles = std::fs::read_to_string(root().join("docs/site.css")).unwrap();
    let (mut counts, mut wrong, mut seen) = ([0, 0, 0], BTreeSet::new(), HashSet::new());
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        let mut note = |command: &str, result: Result<(), String>| {
            if let Err(error) = result {
                wrong.insert(format!("{name}: {command}\n    {error}"));
            }
        };
        for block in blocks(&text) {
            let labels: Vec<_> = block.marks.iter().filter(|mark| !RUN.contains(mark)).collect();
            for mark in &labels {
                let has_text = styles.contains(&format!("code.{mark}::before {{ content:"));
                note(mark, if has_text { Ok(()) } else { Err("docs/site.css has no text for this mark".into()) });
            }
            let is_run = labels.is_empty() && SITE.iter().any(|folder| name.starts_with(folder));
            let commands = commands(&block.script);
            counts[usize::from(is_run)] += commands.len();
            // The output of a console shows a mistake, if there is one.
            for words in commands.iter().filter(|_| !(is_run && block.has_output)) {
                seen.insert(words.clone());
                note(&words.join(" "), check_any(words, is_run, &text));
            }
        }
        for part in inline.captures_iter(&text) {
            for words in commands(&part[1].replace('\n', " ")) {
                counts[2] += 1;
                if !seen.insert(words.clone()) {
                    continue;
                }
                note(&part[1], check(&Found { words: &words[1..], is_part: true, page: &text }));
            }
        }
    }
    let wrong: Vec<String> = wrong.into_iter().collect();
    assert!(wrong.is_empty(), "{} of {counts:?} commands:\n{}", wrong.len(), wrong.join("\n"));
    assert!(counts.iter().all(|count| *count > 70), "the pages have {counts:?} commands in the form that is looked for");
}
