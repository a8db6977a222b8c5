//! The generated documentation is up to date, and what the written one points at exists.
//!
//! `BURNISH_BLESS=1 cargo test --release --test docs` writes docs/config.md and docs/algorithms.md anew.

use std::path::{Path, PathBuf};

use burnish::algorithm::{advantage, aggregate, filter_groups, kl, pf_ppo, policy_loss, reward_shaping};
use burnish::data::prepare::PREPARERS;
use burnish::model::FAMILIES;
use burnish::optim::schedule::SCHEDULES;
use burnish::reward::{FUNCTIONS, SCORERS};
use burnish::tracking::TRACKERS;
use regex::Regex;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Compares a generated page with its file, or writes it.
fn check(file: &str, page: &str) {
    let path = root().join(file);
    if std::env::var_os("BURNISH_BLESS").is_some() {
        std::fs::write(&path, page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "{file} is out of date: run BURNISH_BLESS=1 cargo test --release --test docs");
}

/// One entry of a registry. `doc` is a summary, then lines such as `Formula: …`, which become a list.
fn entry(name: &str, aliases: &[&str], doc: &str, notes: &[String]) -> String {
    let (summary, facts) = doc.split_once('\n').unwrap_or((doc, ""));
    let (first, rest) = summary.split_at(summary.chars().next().map_or(0, char::len_utf8));
    let full_stop = if summary.ends_with('.') { "" } else { "." };
    let mut text = format!("\n### `{name}`\n\n{}{}{full_stop}\n", first.to_uppercase(), rest.replace('<', "\\<"));
    let also = (!aliases.is_empty()).then(|| format!("Also written: `{}`.", aliases.join("`, `")));
    let facts = facts.lines().filter(|line| !line.is_empty()).map(|fact| match fact.split_once(": ") {
        Some((label @ ("Formula" | "verl"), value)) => format!("{label}: `{}`", value.trim_end_matches('.')),
        _ => fact.to_owned(),
    });
    let facts: Vec<String> = facts.chain(also).chain(notes.iter().cloned()).map(|fact| format!("- {fact}\n")).collect();
    if !facts.is_empty() {
        text.push('\n');
        text.push_str(&facts.concat());
    }
    text
}

fn algorithms() -> String {
    let mut page = "# What there is to choose from\n\n\
        <!-- Rendered from the registries; `BURNISH_BLESS=1 cargo test --release --test docs` writes it. -->\n\n\
        Every name that a setting, a data row or a model may give. To add one, see [extending.md](extending.md).\n"
        .to_owned();
    let mut part = |title: &str, chosen_by: &str, entries: Vec<String>| {
        page.push_str(&format!("\n## {title}\n\nChosen by {chosen_by}.\n{}", entries.concat()));
    };
    let estimators = advantage::ESTIMATORS.iter().map(|e| {
        let needs = e.needs.iter().map(|need| format!("Needs {}.", need.describe()));
        entry(e.name, e.aliases, e.doc, &needs.collect::<Vec<_>>())
    });
    part("Advantage estimators", "`algorithm.adv_estimator`", estimators.collect());
    let losses = policy_loss::POLICY_LOSSES.iter().map(|l| entry(l.name, l.aliases, l.doc, &[]));
    part("Policy losses", "`actor_rollout_ref.actor.policy_loss.loss_mode`", losses.collect());
    let modes = aggregate::AGGREGATIONS.iter().map(|a| entry(a.name, &[], a.doc, &[]));
    let mode = "`actor_rollout_ref.actor.loss_agg_mode`: the weight w of each trained token, where N counts the trained tokens of the \
                mini-batch and S its sequences that have any";
    part("Loss aggregation", mode, modes.collect());
    let divergences = kl::KL_ESTIMATORS.iter().map(|k| entry(k.name, k.aliases, k.doc, &[]));
    let by = "`actor_rollout_ref.actor.kl_loss_type` and `algorithm.kl_penalty`. With a `+` behind the name (`k3+`) the value is the \
              estimator's and the gradient that of `k2`; d = log π − log π_ref";
    part("KL estimators", by, divergences.collect());
    let shapings = reward_shaping::SHAPINGS.iter().map(|s| entry(s.name, &[], s.doc, &[]));
    part("Reward shaping", "settings of these names, done in this order; s is the score of a response", shapings.collect());
    let filter = entry("filter_groups", &[], filter_groups::DOC, &[]);
    part("Dynamic sampling", "`algorithm.filter_groups.enable`", vec![filter]);
    let reweightings = pf_ppo::REWEIGHTINGS.iter().map(|r| entry(r.name, &[], r.doc, &[]));
    part("PF-PPO", "`algorithm.pf_ppo.reweight_method`, with `algorithm.use_pf_ppo`", reweightings.collect());
    let schedules = SCHEDULES.iter().map(|s| entry(s.name, &[], s.doc, &[]));
    part(
        "Learning-rate schedules",
        "`actor_rollout_ref.actor.optim.lr_scheduler_type` and, in `trainer sft`, `optim.lr_scheduler_type`",
        schedules.collect(),
    );
    let scorers = SCORERS.iter().map(|s| {
        let sources = s.data_sources.join("`, `");
        entry(s.name, &[], s.doc, &[format!("Data sources: `{sources}`")])
    });
    part("Scorers", "the data source of each row (the column that `data.reward_fn_key` names)", scorers.collect());
    let functions = FUNCTIONS.iter().map(|f| entry(f.name, &[], f.doc, &[]));
    part("Reward functions", "their name, one or several with weights; every scorer can be named too", functions.collect());
    let trackers = TRACKERS.iter().map(|t| entry(t.name, &[], t.doc, &[]));
    part("Trackers", "`trainer.logger`, one or a list", trackers.collect());
    let families = FAMILIES.iter().map(|f| entry(f.model_type, &[], f.doc, &[]));
    part("Model families", "`model_type` in the model's `config.json`", families.collect());
    let preparers = PREPARERS.iter().map(|p| entry(p.name, &[], p.doc, &[]));
    part("Data sets", "`trainer data NAME --output FOLDER`", preparers.collect());
    page
}

#[test]
fn generated_pages_are_up_to_date() {
    check("docs/config.md", &burnish::config::docs::page().unwrap());
    check("docs/algorithms.md", &algorithms());
    // The end of the page is rendered, the rest is written.
    let written = std::fs::read_to_string(root().join("docs/from-verl.md")).unwrap();
    let (head, _) = written.split_once("writes what follows. -->\n\n").unwrap();
    check("docs/from-verl.md", &format!("{head}writes what follows. -->\n\n{}", burnish::config::compat::page::page().unwrap()));
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.extension() {
            Some(extension) if extension == "md" => found.push(path),
            None if path.is_dir() => pages(&path, found),
            _ => {}
        }
    }
}

#[test]
fn links_and_paths_lead_somewhere() {
    let mut files = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "data/README.md"].map(|name| root().join(name)).to_vec();
    pages(&root().join("docs"), &mut files);
    let link = Regex::new(r"\]\(([^)#:]+)(#[^)]*)?\)").unwrap();
    // Paths with a placeholder (NAME) are patterns, not files.
    let path = Regex::new(r"`((?:src|config|recipes|tests|docs)/[a-z0-9_./-]+)`").unwrap();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let from = |base: &Path, target: &str| assert!(base.join(target).exists(), "{}: there is no {target}", file.display());
        link.captures_iter(&text).for_each(|found| from(file.parent().unwrap(), &found[1]));
        path.captures_iter(&text).for_each(|found| from(&root(), &found[1]));
    }
}

/// Every key that the pages set or name is a key of one of the two configurations.
#[test]
fn keys_that_pages_name_exist() {
    let config = burnish::config::docs::page().unwrap();
    let mut files = ["README.md", "data/README.md"].map(|name| root().join(name)).to_vec();
    pages(&root().join("docs"), &mut files);
    let key =
        Regex::new(r"(?:^|[^.\w/])((?:data|actor_rollout_ref|algorithm|trainer|reward_model|critic)(?:\.[a-z_]+)+)").unwrap();
    for file in files.iter().filter(|file| !file.ends_with("docs/config.md")) {
        let text = std::fs::read_to_string(file).unwrap();
        // What the console shows may be a mistake, and what is rendered are patterns.
        let text = text.split("writes what follows. -->").next().unwrap();
        let text: String = text.split("```console").map(|part| part.split_once("```").map_or(part, |(_, rest)| rest)).collect();
        for found in key.captures_iter(&text).map(|found| found[1].to_owned()) {
            let is_file = [".rs", ".yaml", ".json", ".md"].iter().any(|end| found.ends_with(end));
            let is_verls = burnish::config::compat::editions::keys()
                .any(|key| key.key == found || key.key.starts_with(&format!("{found}.")));
            let known = is_verls || config.contains(&format!("`{found}`")) || config.contains(&format!("### {found}\n"));
            assert!(is_file || known, "{}: there is no key {found}", file.display());
        }
    }
}
