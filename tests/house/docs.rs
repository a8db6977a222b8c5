//! The generated documentation is up to date, and the files, keys and tests named in the other pages exist.
//!
//! `scripts/bless` rewrites the generated pages.

use std::path::{Path, PathBuf};

use burnish::algorithm::{
    advantage, aggregate, filter_groups, kl, pf_ppo, policy_loss, preference, ranking, reward_shaping, rollout_correction,
    teacher_loss,
};
use burnish::config::compat::page::item;
use burnish::convert::from_openrlhf::OPENRLHF;
use burnish::convert::from_trl::TRL;
use burnish::data::prepare::PREPARERS;
use burnish::model::FAMILIES;
use burnish::optim::OPTIMIZERS;
use burnish::optim::schedule::SCHEDULES;
use burnish::reward::{FUNCTIONS, SCORERS};
use burnish::tracking::TRACKERS;
use regex::Regex;

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Compares a generated page with its file, or writes it. Items of lists are wrapped.
pub(crate) fn check(file: &str, page: &str) {
    let page = page.lines().map(|line| line.strip_prefix("- ").map_or_else(|| format!("{line}\n"), item)).collect::<String>();
    let path = root().join(file);
    if std::env::var_os("BURNISH_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "{file} is out of date: run scripts/bless");
}

/// A doc string as text, with the names of functions, settings and files in backticks.
fn with_names(text: &str) -> String {
    let word =
        Regex::new(r"(?:seq-mean-)?token-(?:mean|sum)(?:-norm)?|\b([A-Za-z][\w./]*\w)(=[\w.|+-]*\w)?(?:\([^)]*\))?").unwrap();
    let is_name = |word: &str| {
        let capitals = word.chars().filter(char::is_ascii_uppercase).count();
        let is_class =
            capitals > 1 && word.chars().any(|c| c.is_ascii_lowercase()) && !["OpenRLHF", "SkyRL", "NaN"].contains(&word);
        is_class || word.contains(['_', '.', '/'])
    };
    let quoted = |part: &str| {
        let part = word.replace_all(part, |found: &regex::Captures| match found.get(1) {
            Some(name) if !is_name(name.as_str()) && found.get(2).is_none() => found[0].to_owned(),
            _ => format!("`{}`", &found[0]),
        });
        part.into_owned()
    };
    // Every second part is in backticks already.
    let parts: Vec<String> =
        text.split('`').enumerate().map(|(i, part)| if i % 2 == 0 { quoted(part) } else { part.to_owned() }).collect();
    parts.join("`")
}

/// One entry of a registry. `doc` is a summary, then lines such as `Formula: …`, which become a list.
fn entry(name: &str, aliases: &[&str], doc: &str, notes: &[String]) -> String {
    let (summary, facts) = doc.split_once('\n').unwrap_or((doc, ""));
    let (first, rest) = summary.split_at(summary.chars().next().map_or(0, char::len_utf8));
    let full_stop = if summary.ends_with('.') { "" } else { "." };
    let mut text = format!("\n### `{name}`\n\n{}{}{full_stop}\n", first.to_uppercase(), rest.replace('<', "\\<"));
    let also = (!aliases.is_empty()).then(|| format!("Also written: `{}`.", aliases.join("`, `")));
    let facts = facts.lines().filter(|line| !line.is_empty()).map(|fact| match fact.split_once(": ") {
        Some(("Formula", value)) => format!("Formula: `{}`", value.trim_end_matches('.')),
        Some(("Paper" | "Source", _)) | None => fact.to_owned(),
        Some((label, value)) => format!("{label}: {}", with_names(value)),
    });
    let facts: Vec<String> = facts.chain(also).chain(notes.iter().cloned()).map(|fact| format!("- {fact}\n")).collect();
    if !facts.is_empty() {
        text.push('\n');
        text.push_str(&facts.concat());
    }
    text
}

/// A row of the table at the start of a part: an entry's name, its doc string, and its requirements.
type Row = (&'static str, &'static str, Vec<String>);

/// The page of the registries while it is being written.
struct Page(String);

impl Page {
    fn part(&mut self, title: &str, chosen_by: &str, entries: impl Iterator<Item = String>) {
        self.part_with_table(title, chosen_by, &[], entries);
    }

    fn part_with_table(&mut self, title: &str, chosen_by: &str, rows: &[Row], entries: impl Iterator<Item = String>) {
        let mut table = String::new();
        for (name, doc, needs) in rows {
            let from = ["verl", "TRL", "OpenRLHF", "SkyRL", "prime-rl", "slime"]
                .into_iter()
                .filter(|library| doc.contains(&format!("\n{library}: ")));
            let when = doc.lines().find_map(|line| line.strip_prefix("When: ")).unwrap_or_default().trim_end_matches('.');
            let cells = [from.collect::<Vec<_>>().join(", "), needs.join("; "), with_names(when)];
            table.push_str(&format!("| [`{name}`](#{}) | {} |\n", self.anchor(name), cells.join(" | ")));
        }
        if !table.is_empty() {
            table.insert_str(0, "\n| Name | Where it comes from | What it needs | When to use it |\n|---|---|---|---|\n");
        }
        self.0.push_str(&format!("\n## {title}\n\nChosen by {chosen_by}.\n{table}{}", entries.collect::<String>()));
    }

    /// The anchor of the next entry of this name; a name can occur in several parts.
    fn anchor(&self, name: &str) -> String {
        match self.0.matches(&format!("\n### `{name}`\n")).count() {
            0 => name.to_owned(),
            before => format!("{name}-{before}"),
        }
    }
}

/// The requirements of a policy loss, without its formula.
fn loss_needs(loss: &policy_loss::PolicyLoss) -> Vec<String> {
    let aggregation = loss.aggregation.map(|mode| format!("is always aggregated by `{mode}`"));
    let prepared = loss.prepare.map(|_| "looks at the whole mini-batch first".to_owned());
    let to_rollout = loss.needs.contains(&advantage::Need::Rollout);
    let to_rollout =
        to_rollout.then(|| "takes its ratio to the policy that generated, and needs no old log-probabilities".to_owned());
    aggregation.into_iter().chain(prepared).chain(to_rollout).collect()
}

fn algorithms() -> String {
    let mut page = Page(
        "# What there is to choose from\n\n\
        <!-- Rendered from the registries; `scripts/bless` writes it. -->\n\n\
        Every name that a setting, a data row or a model may give. To add one, see [extending.md](extending.md).\n"
            .to_owned(),
    );
    let estimator_needs = |e: &advantage::Estimator| -> Vec<String> { e.needs.iter().map(|n| n.describe().to_owned()).collect() };
    let rows: Vec<Row> = advantage::ESTIMATORS.iter().map(|e| (e.name, e.doc, estimator_needs(e))).collect();
    let estimators = advantage::ESTIMATORS.iter().map(|e| {
        let needs: Vec<String> = estimator_needs(e).iter().map(|need| format!("Needs {need}.")).collect();
        entry(e.name, e.aliases, e.doc, &needs)
    });
    page.part_with_table("Advantage estimators", "`algorithm.adv_estimator`", &rows, estimators);
    let rows: Vec<Row> = policy_loss::POLICY_LOSSES.iter().map(|l| (l.name, l.doc, loss_needs(l))).collect();
    let losses = policy_loss::POLICY_LOSSES.iter().map(|l| {
        let needs: Vec<String> = loss_needs(l).iter().map(|needs| format!("It {needs}.")).collect();
        entry(l.name, l.aliases, l.doc, &needs)
    });
    let by = "`actor_rollout_ref.actor.policy_loss.loss_mode`; each is averaged by `actor_rollout_ref.actor.loss_agg_mode` unless it says \
              otherwise. One that looks at the whole mini-batch first takes one more pass of the model, without gradient, where the \
              mini-batch is cut into micro-batches";
    page.part_with_table("Policy losses", by, &rows, losses);
    let preference_needs = |l: &preference::PreferenceLoss| -> Vec<String> {
        let matched = matches!(l.form, preference::Form::Matched(..)).then(|| "the whole mini-batch first".to_owned());
        let gold = l.gold.is_some().then(|| "a gold answer in each row".to_owned());
        l.needs().iter().map(|need| need.describe().to_owned()).chain(matched).chain(gold).collect()
    };
    let rows: Vec<Row> = preference::PREFERENCE_LOSSES.iter().map(|l| (l.name, l.doc, preference_needs(l))).collect();
    let losses = preference::PREFERENCE_LOSSES.iter().map(|l| {
        let needs: Vec<String> = preference_needs(l).iter().map(|need| format!("Needs {need}.")).collect();
        entry(l.name, l.aliases, l.doc, &needs)
    });
    let by = "`algorithm.loss_type` of `trainer dpo`, one or a list. Δ⁺ and Δ⁻ are log π − log π_ref of the chosen and of the rejected \
              answer, Δ is their difference, and LS is log σ; with `algorithm.f_divergence_type`, δ is the difference of f′(Δ⁺) = s⁺ and \
              f′(Δ⁻) = s⁻";
    page.part_with_table("Preference losses", by, &rows, losses);
    let losses = teacher_loss::TEACHER_LOSSES.iter().map(|l| entry(l.name, &[], l.doc, &[]));
    let by = "`distillation.distillation_loss.loss_mode`, next to the distances of [distillation.md](distillation.md#on-policy): policy \
              gradients that read the sampled token; T is the teacher";
    page.part("Losses under a teacher", by, losses);
    let losses = ranking::RANKING_LOSSES.iter().map(|l| entry(l.name, &[], l.doc, &[]));
    let by = "`algorithm.loss_type` of `trainer rm`: r⁺ is the score of the chosen answer, r⁻ that of the rejected one";
    page.part("Losses of reward models", by, losses);
    let modes = aggregate::AGGREGATIONS.iter().map(|a| entry(a.name, &[], a.doc, &[]));
    let mode = "`actor_rollout_ref.actor.loss_agg_mode`: the weight w of each trained token, where N counts the trained tokens of the \
                mini-batch and S its sequences, including sequences without trained tokens";
    page.part("Loss aggregation", mode, modes);
    let divergences = kl::KL_ESTIMATORS.iter().map(|k| entry(k.name, k.aliases, k.doc, &[]));
    let by = "`actor_rollout_ref.actor.kl_loss_type` and `algorithm.kl_penalty`. With a `+` behind the name (`k3+`) the value is the \
              estimator's and the gradient that of `k2`; d = log π − log π_ref";
    page.part("KL estimators", by, divergences);
    let criteria = rollout_correction::CRITERIA.iter().map(|c| {
        let older = c
            .older_name
            .map(|older| format!("In verl up to 0.7: `{older}`, which is taken too, with bounds of r instead of 1/r."));
        entry(c.name, &[], c.doc, older.as_slice())
    });
    let by = "`algorithm.rollout_correction.rollout_rs`, one or several joined by commas, with bounds from `rollout_rs_threshold`: these \
              criteria reject tokens or sequences for which r = π/π_rollout, of the policy that is trained and the one that generated, \
              is too far from 1. Importance weights, the veto and bypass mode have their own settings \
              ([config.md](config.md#algorithmrollout_correction)); what OpenRLHF and TRL do, in these settings: \
              [from-openrlhf.md](from-openrlhf.md#rollout-correction)";
    page.part("Rollout correction", by, criteria);
    let shapings = reward_shaping::SHAPINGS.iter().map(|s| entry(s.name, &[], s.doc, &[]));
    page.part("Reward shaping", "settings of these names, done in this order; s is the score of a response", shapings);
    let filter = entry("filter_groups", &[], filter_groups::DOC, &[]);
    page.part("Dynamic sampling", "`algorithm.filter_groups.enable`", std::iter::once(filter));
    let reweightings = pf_ppo::REWEIGHTINGS.iter().map(|r| entry(r.name, &[], r.doc, &[]));
    page.part("PF-PPO", "`algorithm.pf_ppo.reweight_method`, with `algorithm.use_pf_ppo`", reweightings);
    let schedules = SCHEDULES.iter().map(|s| entry(s.name, s.aliases, s.doc, &[]));
    page.part(
        "Learning-rate schedules",
        "`actor_rollout_ref.actor.optim.lr_scheduler_type` and, in `trainer sft`, `optim.lr_scheduler_type`",
        schedules,
    );
    let optimizers = OPTIMIZERS.iter().map(|o| {
        let rows = o.options.iter().map(|row| format!("`{}` (default `{}`): {}", row.name, row.default, row.doc));
        entry(o.name, o.aliases, o.doc, &rows.collect::<Vec<_>>())
    });
    page.part(
        "Optimizers",
        "`actor_rollout_ref.actor.optim.optimizer`, `critic.optim.optimizer` and, in `trainer sft`, `optim.optimizer`; the options of each are \
         entries of `override_optimizer_config`",
        optimizers,
    );
    let scorers = SCORERS.iter().map(|s| {
        let sources = s.data_sources.join("`, `");
        entry(s.name, &[], s.doc, &[format!("Data sources: `{sources}`")])
    });
    page.part("Scorers", "the data source of each row (the column that `data.reward_fn_key` names)", scorers);
    let functions = FUNCTIONS.iter().map(|f| entry(f.name, &[], f.doc, &[]));
    let by = "`reward_model.reward_functions`, one or a list, with `reward_model.reward_weights`; every scorer can be named too";
    page.part("Reward functions", by, functions);
    let trackers = TRACKERS.iter().map(|t| entry(t.name, &[], t.doc, &[]));
    page.part("Trackers", "`trainer.logger`, one or a list", trackers);
    let families = FAMILIES.iter().map(|f| entry(f.model_type, &[], f.doc, &[]));
    page.part("Model families", "`model_type` in the model's `config.json`", families);
    let preparers = PREPARERS.iter().map(|p| {
        let files = (!p.files.is_empty()).then(|| format!("Input: {}", p.files));
        let notes: Vec<String> = files.into_iter().chain([format!("Licence: {}", p.licence)]).collect();
        entry(p.name, &[], p.doc, &notes)
    });
    page.part("Data sets", "`trainer data NAME --output FOLDER`", preparers);
    page.0
}

#[test]
fn generated_pages_are_up_to_date() {
    check("docs/config.md", &burnish::config::docs::page().unwrap());
    check("docs/algorithms.md", &algorithms());
    // The ends of these pages are generated, the rest is written by hand.
    let ends = [
        ("docs/from-verl.md", burnish::config::compat::page::page().unwrap()),
        ("docs/from-trl.md", burnish::convert::peers::page::page(&TRL)),
        ("docs/from-openrlhf.md", burnish::convert::peers::page::page(&OPENRLHF)),
    ];
    for (page, end) in ends {
        let written = std::fs::read_to_string(root().join(page)).unwrap();
        let (head, _) = written.split_once("writes what follows. -->\n\n").unwrap();
        check(page, &format!("{head}writes what follows. -->\n\n{end}"));
    }
}

/// Adds the pages of a folder and of its subfolders.
pub(crate) fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
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
    pages(&root().join("scripts"), &mut files);
    pages(&root().join("launch"), &mut files);
    pages(&root().join("skills"), &mut files);
    let link = Regex::new(r"\]\(([^)#:]+)(#[^)]*)?\)").unwrap();
    // Paths with a placeholder (NAME) are patterns, not files.
    let path = Regex::new(r"`((?:src|crates|config|recipes|tests|docs|scripts|launch|benches)/[a-z0-9_./-]+)`").unwrap();
    // Scripts are named in commands, too.
    let script = Regex::new(r"(?m)(?:^|[\s`])(scripts/[a-z0-9_./-]*[a-z0-9_])").unwrap();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let from = |base: &Path, target: &str| assert!(base.join(target).exists(), "{}: there is no {target}", file.display());
        link.captures_iter(&text).for_each(|found| from(file.parent().unwrap(), &found[1]));
        path.captures_iter(&text).for_each(|found| from(&root(), &found[1]));
        script.captures_iter(&text).for_each(|found| from(&root(), &found[1]));
    }
}

/// Every script has a line in the index of its folder.
#[test]
fn every_script_is_in_the_index_of_its_folder() {
    for folder in ["scripts", "scripts/goldens", "scripts/compare", "scripts/bench", "scripts/check", "launch"] {
        let folder = root().join(folder);
        let index = std::fs::read_to_string(folder.join("README.md")).unwrap();
        for entry in std::fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let ours = name != "README.md" && name != "__pycache__";
            let line = if entry.path().is_dir() { format!("`{name}/`") } else { format!("`{name}`") };
            assert!(!ours || index.contains(&line), "{} has no line {line}", folder.join("README.md").display());
        }
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
        // Consoles may show invalid keys, and generated parts contain patterns.
        let text = text.split("writes what follows. -->").next().unwrap();
        let text: String = text.split("```console").map(|part| part.split_once("```").map_or(part, |(_, rest)| rest)).collect();
        for found in key.captures_iter(&text).map(|found| found[1].to_owned()) {
            let is_file = [".rs", ".yaml", ".json", ".md", ".log"].iter().any(|end| found.ends_with(end));
            let is_verls = burnish::config::compat::editions::keys()
                .any(|key| key.key == found || key.key.starts_with(&format!("{found}.")));
            let known = is_verls || config.contains(&format!("`{found}`")) || config.contains(&format!("### {found}\n"));
            assert!(is_file || known, "{}: there is no key {found}", file.display());
        }
    }
}

/// Every test that the pages name exists.
#[test]
fn tests_that_pages_name_exist() {
    let named = Regex::new(r"`([a-z0-9_]+)` in `((?:src|crates|tests)/[a-z0-9_/-]+\.rs)`").unwrap();
    let mut files = Vec::new();
    pages(&root().join("docs"), &mut files);
    let mut count = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for found in named.captures_iter(&text) {
            let source = std::fs::read_to_string(root().join(&found[2])).unwrap();
            assert!(source.contains(&format!("fn {}(", &found[1])), "{}: {} has no {}", file.display(), &found[2], &found[1]);
            count += 1;
        }
    }
    assert!(count > 0, "the pages name no test in the form that is looked for");
}
