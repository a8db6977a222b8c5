//! The end of docs/features.md, rendered from the commands and the registries, and the counts that the README gives.

use burnish::algorithm::{
    advantage, aggregate, kl, pf_ppo, policy_loss, preference, ranking, reward_shaping, rollout_correction, teacher_loss,
};
use burnish::cli::Cli;
use burnish::config::compat::page::item;
use burnish::data::prepare::PREPARERS;
use burnish::model::FAMILIES;
use burnish::optim::OPTIMIZERS;
use burnish::optim::schedule::SCHEDULES;
use burnish::reward::{FUNCTIONS, SCORERS};
use burnish::tracking::TRACKERS;
use clap::CommandFactory;
use regex::Regex;

use crate::docs::{check, root};

/// Returns every kind of entry, as (its name, the title of its part of docs/algorithms.md, the names of its entries).
fn kinds() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    vec![
        ("advantage estimators", "Advantage estimators", advantage::ESTIMATORS.iter().map(|e| e.name).collect()),
        ("policy losses", "Policy losses", policy_loss::POLICY_LOSSES.iter().map(|l| l.name).collect()),
        ("preference losses", "Preference losses", preference::PREFERENCE_LOSSES.iter().map(|l| l.name).collect()),
        ("losses under a teacher", "Losses under a teacher", teacher_loss::TEACHER_LOSSES.iter().map(|l| l.name).collect()),
        ("losses of reward models", "Losses of reward models", ranking::RANKING_LOSSES.iter().map(|l| l.name).collect()),
        ("loss aggregations", "Loss aggregation", aggregate::AGGREGATIONS.iter().map(|a| a.name).collect()),
        ("KL estimators", "KL estimators", kl::KL_ESTIMATORS.iter().map(|k| k.name).collect()),
        ("criteria of rollout correction", "Rollout correction", rollout_correction::CRITERIA.iter().map(|c| c.name).collect()),
        ("steps of reward shaping", "Reward shaping", reward_shaping::SHAPINGS.iter().map(|s| s.name).collect()),
        ("methods of PF-PPO", "PF-PPO", pf_ppo::REWEIGHTINGS.iter().map(|r| r.name).collect()),
        ("learning-rate schedules", "Learning-rate schedules", SCHEDULES.iter().map(|s| s.name).collect()),
        ("optimizers", "Optimizers", OPTIMIZERS.iter().map(|o| o.name).collect()),
        ("scorers", "Scorers", SCORERS.iter().map(|s| s.name).collect()),
        ("reward functions", "Reward functions", FUNCTIONS.iter().map(|f| f.name).collect()),
        ("trackers", "Trackers", TRACKERS.iter().map(|t| t.name).collect()),
        ("model families", "Model families", FAMILIES.iter().map(|f| f.model_type).collect()),
        ("data sets", "Data sets", PREPARERS.iter().map(|p| p.name).collect()),
    ]
}

/// Commands without subcommands, each with its line of summary.
fn commands(prefix: &str, command: &clap::Command, rows: &mut String) {
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = format!("{prefix} {}", command.get_name());
        if command.has_subcommands() {
            commands(&name, command, rows);
        }
        if !command.is_subcommand_required_set() {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            rows.push_str(&format!("| `{name}` | {} |\n", about.replace('|', "\\|")));
        }
    }
}

fn names() -> String {
    let mut page = String::new();
    for (label, title, names) in kinds() {
        let anchor = title.to_lowercase().replace(' ', "-");
        let names = format!("{} [{label}](algorithms.md#{anchor}): `{}`", names.len(), names.join("`, `"));
        page.push_str(&item(&names));
    }
    let mut rows = "| `trainer` | Reinforcement learning (ppo_trainer.yaml) |\n".to_owned();
    commands("trainer", &Cli::command(), &mut rows);
    page + "\n## Commands\n\n| | |\n|---|---|\n" + &rows
}

#[test]
fn generated_page_of_features_is_up_to_date() {
    let written = std::fs::read_to_string(root().join("docs/features.md")).unwrap();
    let (head, _) = written.split_once("writes what follows. -->\n\n").unwrap();
    check("docs/features.md", &format!("{head}writes what follows. -->\n\n{}", names()));
}

#[test]
fn counts_in_the_readme_are_those_of_the_registries() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let mut found = 0;
    for (label, _, names) in kinds() {
        for count in Regex::new(&format!(r"(\d+) {label}")).unwrap().captures_iter(&readme) {
            assert_eq!(count[1], names.len().to_string(), "{label} in README.md");
            found += 1;
        }
    }
    assert!(found >= 2, "the README counts no entries in the form that is looked for");
    let lines = readme.lines().count();
    assert!(lines <= 100, "README.md has {lines} lines");
}
