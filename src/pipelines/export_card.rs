//! The model card of an export: README.md with the metadata that the Hub reads, and a summary of the training from the run's
//! record. The card is meant to be published: it has no secrets, and only the last part of absolute paths.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

use super::export_curve::Curve;
use burnish_checkpoint::step_of;
use burnish_hub::{HubName, RepoKind};
use burnish_run::{METRICS, RecordedSetting, RunInfo};
use burnish_util::foreign;
use burnish_util::secret::{HIDDEN, hide, is_secret};
use burnish_util::shell::command_line;

/// The line that marks a generated card; a README without it has another author.
const MARK: &str = "<!-- Written by `trainer export` of burnish";

/// The keys of the settings that every card shows, changed or not.
const ALWAYS: &[&str] = &[
    "algorithm.adv_estimator",
    "actor_rollout_ref.actor.policy_loss.loss_mode",
    "actor_rollout_ref.actor.optim.lr",
    "actor_rollout_ref.rollout.n",
    "data.train_batch_size",
    "optim.lr",
];
/// The parts of the settings that concern only this machine.
const OF_THE_MACHINE: &[&str] = &["trainer.", "checkpoint.", "ray_kwargs."];
/// Last parts of keys whose values are files and folders.
const PATHS: &[&str] = &["path", "train_files", "val_files", "tokenizer_path", "output_path"];
/// The keys of the training data and of the base model, for each kind of run.
const DATA: &[&str] = &["data.train_files", "data.val_files"];
const BASES: &[(&str, &str)] = &[("actor_rollout_ref.model.path", "actor_rollout_ref.model.init"), ("model.path", "model.init")];

/// Returns true if [`card`] wrote a README.
pub(crate) fn is_card(readme: &str) -> bool {
    readme.contains(MARK)
}

/// Writes the card of a part of a checkpoint, exported as an adapter or as all weights. `name` is the name under which the model
/// will be loaded.
pub fn card(part: &Path, is_adapter: bool, name: &str) -> String {
    Card::read(part, is_adapter, name).to_text()
}

struct Card<'a> {
    name: &'a str,
    is_adapter: bool,
    is_critic: bool,
    /// The step of the checkpoint.
    step: Option<u64>,
    /// The record of the run; `None` for a checkpoint that was moved away from it.
    run: Option<RunInfo>,
    curve: Curve,
}

/// The base model.
struct Base {
    /// The name to show: a Hub name, or the last part of a folder.
    shown: String,
    on_hub: bool,
    licence: Option<String>,
}

impl<'a> Card<'a> {
    fn read(part: &Path, is_adapter: bool, name: &'a str) -> Self {
        let checkpoint = [Some(part), part.parent()].into_iter().flatten().find(|path| step_of(path).is_ok());
        let step = checkpoint.and_then(|path| step_of(path).ok());
        let folder = checkpoint.and_then(Path::parent);
        let run = folder.and_then(|folder| RunInfo::read_damaged(folder).info);
        let curve = match (&run, folder) {
            (Some(run), Some(folder)) => Curve::read(&metrics(run, folder), step.unwrap_or(u64::MAX)),
            _ => Curve::default(),
        };
        let is_critic = part.file_name().is_some_and(|name| name == "critic");
        Self { name, is_adapter, is_critic, step, run, curve }
    }

    fn setting(&self, key: &str) -> Option<&Value> {
        self.run.as_ref()?.config.iter().find(|setting| setting.key == key).map(|setting| &setting.value)
    }

    fn base(&self) -> Option<Base> {
        let (path, init) = BASES.iter().find(|(path, _)| self.setting(path).is_some_and(Value::is_string))?;
        if self.setting(init).and_then(Value::as_str) == Some("random") {
            return None;
        }
        let text = self.setting(path)?.as_str()?;
        let folder = self.run.as_ref().map_or_else(PathBuf::new, |run| run.cwd.clone()).join(text);
        let named = || HubName::from_setting(text, RepoKind::Model).ok().flatten().map(|name| name.repo);
        let on_hub = of_cache(text).or_else(|| if folder.exists() { None } else { named() });
        let licence = licence(&folder.join("README.md"));
        Some(Base { on_hub: on_hub.is_some(), shown: on_hub.unwrap_or_else(|| public(text).into_owned()), licence })
    }

    /// Returns the Hub data sets that the run names.
    fn data_sets(&self) -> Vec<String> {
        let names = DATA.iter().flat_map(|key| texts(self.setting(key)));
        let mut repos: Vec<String> = names
            .filter_map(|name| HubName::from_setting(name, RepoKind::Dataset).ok().flatten())
            .map(|name| name.repo)
            .collect();
        repos.sort();
        repos.dedup();
        repos
    }

    fn to_text(&self) -> String {
        let text = [self.metadata(), self.introduction(), self.data(), self.training(), self.loading()].concat();
        hide(&text).into_owned()
    }

    fn metadata(&self) -> String {
        let base = self.base();
        let mut lines =
            vec!["---".to_owned(), format!("library_name: {}", if self.is_adapter { "peft" } else { "transformers" })];
        if !self.is_critic {
            lines.push("pipeline_tag: text-generation".to_owned());
        }
        if let Some(base) = base.as_ref().filter(|base| base.on_hub) {
            lines.push(format!("base_model: {}", yaml(&base.shown)));
        }
        lines.extend(base.and_then(|base| base.licence).map(|licence| format!("license: {}", yaml(&licence))));
        let list = |name: &str, items: &[String]| {
            let items = items.iter().map(|item| format!("\n- {}", yaml(item)));
            format!("{name}:{}", items.collect::<String>())
        };
        let data_sets = self.data_sets();
        if !data_sets.is_empty() {
            lines.push(list("datasets", &data_sets));
        }
        let mut tags = vec!["burnish".to_owned()];
        match self.run.as_ref().map(|run| run.kind.as_str()) {
            Some("ppo") => {
                tags.push("reinforcement-learning".to_owned());
                tags.extend(self.setting("algorithm.adv_estimator").and_then(Value::as_str).map(str::to_owned));
            }
            Some(kind) => tags.push(kind.to_owned()),
            None => {}
        }
        lines.push(list("tags", &tags));
        format!("{}\n---\n", lines.join("\n"))
    }

    fn introduction(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let base = self.base().map_or_else(
            || if self.run.is_some() { "It was trained from random weights.".to_owned() } else { String::new() },
            |base| match base.on_hub {
                true => format!("Its base model is [{0}](https://huggingface.co/{0}).", base.shown),
                false => format!("Its base model is `{}`, a folder on the machine of its training.", base.shown),
            },
        );
        let what = match (self.is_critic, self.is_adapter) {
            (true, _) => "a critic: it gives a number to each token, the reward that is still to be expected",
            (_, true) => "a LoRA adapter of a language model",
            _ => "a language model",
        };
        let steps = self.step.map(|step| format!(", after {step} steps of training")).unwrap_or_default();
        let title = self.name.rsplit('/').next().unwrap_or(self.name);
        format!(
            "\n{MARK} {version}. Replace this file as you like; without this line it is kept when the model is pushed again. -->\n\n# {title}\n\nThis is {what}{steps}. {base}\n"
        )
    }

    fn data(&self) -> String {
        let files = |key: &str| {
            let names: Vec<String> = texts(self.setting(key)).map(|name| format!("`{}`", public(name))).collect();
            names.join(", ")
        };
        let rows = [("training", "data.train_files"), ("validation", "data.val_files")].map(|(what, key)| (what, files(key)));
        let rows = rows.iter().filter(|(_, names)| !names.is_empty()).map(|(what, names)| format!("- {what}: {names}\n"));
        let rows: String = rows.collect();
        if rows.is_empty() { String::new() } else { format!("\n## Data\n\n{rows}") }
    }

    fn training(&self) -> String {
        let Some(run) = &self.run else {
            return "\n## Training\n\nThe record of the training run was not next to the checkpoint.\n".to_owned();
        };
        let mut text = "\n## Training\n\n".to_owned();
        let is_shown = |setting: &&RecordedSetting| {
            let written = !setting.from.starts_with("built-in ");
            let last = setting.key.rsplit('.').next().unwrap_or(&setting.key);
            let of_model = !OF_THE_MACHINE.iter().any(|part| setting.key.starts_with(part)) && !PATHS.contains(&last);
            (written && of_model || ALWAYS.contains(&setting.key.as_str())) && !setting.value.is_null()
        };
        let shown: Vec<String> = run.config.iter().filter(is_shown).map(setting).collect();
        if !shown.is_empty() {
            text.push_str(&format!(
                "The changed settings and the main ones; the others have the defaults of burnish {}.\n\n```yaml\n{}```\n\n",
                run.version,
                shown.concat()
            ));
        }
        // The path of the program is private.
        let words: Vec<Cow<str>> =
            ["trainer".into()].into_iter().chain(run.command.iter().skip(1).map(|word| public(word))).collect();
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        text.push_str(&format!("The command, with burnish {}:\n\n```sh\n{}\n```\n", run.version, command_line(&words)));
        if !self.curve.is_empty() {
            text.push_str(&format!("\n## Validation\n\n{}", self.curve.to_table()));
        }
        text
    }

    fn loading(&self) -> String {
        let name = serde_json::Value::from(self.name).to_string();
        let code = match (self.is_critic, self.is_adapter) {
            (true, _) => format!(
                "from transformers import AutoModelForTokenClassification, AutoTokenizer\n\n\
                 tokenizer = AutoTokenizer.from_pretrained({name})\n\
                 model = AutoModelForTokenClassification.from_pretrained({name})\n"
            ),
            (_, true) => format!(
                "from peft import AutoPeftModelForCausalLM\nfrom transformers import AutoTokenizer\n\n\
                 tokenizer = AutoTokenizer.from_pretrained({name})\n\
                 model = AutoPeftModelForCausalLM.from_pretrained({name})\n"
            ),
            _ => format!(
                "from transformers import AutoModelForCausalLM, AutoTokenizer\n\n\
                 tokenizer = AutoTokenizer.from_pretrained({name})\n\
                 model = AutoModelForCausalLM.from_pretrained({name})\n"
            ),
        };
        format!("\n## Loading it\n\n```python\n{code}```\n")
    }
}

/// Returns the metrics file of a run: at the recorded path, or next to a moved record.
fn metrics(run: &RunInfo, folder: &Path) -> PathBuf {
    let recorded = run.cwd.join(&run.metrics);
    if recorded.is_file() { recorded } else { folder.join(METRICS) }
}

/// Formats one setting as a line of YAML.
fn setting(setting: &RecordedSetting) -> String {
    let secret = is_secret(&setting.key) && !setting.value.is_number();
    let value = if secret { Value::from(HIDDEN) } else { setting.value.clone() };
    format!("{}: {}\n", setting.key, public(&value.to_string()))
}

/// Returns the texts of a text or of a list of texts.
fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let one = value.and_then(Value::as_str);
    let several = value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    one.into_iter().chain(several)
}

/// Formats a text of one line as YAML, with JSON's quotes.
fn yaml(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(plain);
    let means_more = ["true", "false", "null", "yes", "no", "on", "off"].contains(&text.to_ascii_lowercase().as_str());
    if is_word && !means_more { text.to_owned() } else { Value::from(text).to_string() }
}

/// Shortens each absolute path of a text to its last part.
fn public(text: &str) -> Cow<'_, str> {
    static PATH: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r#"(^|[=\[,;\s'"({])(?:~[A-Za-z0-9_.-]*)?/(?:[^/,;\]\s'"(){}]+/)*([^/,;\]\s'"(){}]*)"#).ok());
    let last = |found: &Captures| format!("{}{}", &found[1], if found[2].is_empty() { "…" } else { &found[2] });
    PATH.as_ref().map_or(Cow::Borrowed(text), |pattern| pattern.replace_all(text, last))
}

/// Returns the Hub name of a model in the cache: `…/models--ORG--NAME/snapshots/COMMIT`.
fn of_cache(path: &str) -> Option<String> {
    let folder = path.split('/').find_map(|part| part.strip_prefix("models--"))?;
    path.contains("/snapshots/").then(|| folder.replacen("--", "/", 1))
}

/// Returns the licence in the metadata of a README.
fn licence(readme: &Path) -> Option<String> {
    let text = foreign::read_text(readme, foreign::SETTINGS).ok()?;
    let metadata = text.strip_prefix("---")?.split("\n---").next()?.to_owned();
    let line = metadata.lines().find_map(|line| line.strip_prefix("license:"))?;
    let licence = line.trim().trim_matches(['"', '\'']).to_owned();
    (!licence.is_empty()).then_some(licence)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;
    use burnish_util::secret::remember;

    #[test]
    fn absolute_paths_are_cut() {
        for (text, shown) in [
            ("/home/me/models/base", "base"),
            ("data.train_files=[/home/me/a.parquet,~/b.parquet]", "data.train_files=[a.parquet,b.parquet]"),
            ("--config=/root/x y.yaml", "--config=x y.yaml"),
            ("recipes/a.yaml", "recipes/a.yaml"),
            ("http://host:1/path", "http://host:1/path"),
            (r#"{"a":"/home/me/x"}"#, r#"{"a":"x"}"#),
            ("a=1/2", "a=1/2"),
            ("x=/home/me/", "x=…"),
        ] {
            assert_eq!(public(text), shown);
        }
        assert_eq!(of_cache("/c/hub/models--Qwen--Qwen2.5-0.5B/snapshots/0a").as_deref(), Some("Qwen/Qwen2.5-0.5B"));
        assert_eq!(of_cache("/c/models/x"), None);
        let quoted = ["gpt2", "a b", "yes", "-x", "Qwen/Qwen2.5"].map(yaml);
        assert_eq!(quoted, ["gpt2", "\"a b\"", "\"yes\"", "\"-x\"", "Qwen/Qwen2.5"]);
    }

    #[test]
    fn the_card_says_how_and_hides_what_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("base");
        fs::create_dir(&base).unwrap();
        fs::write(base.join("README.md"), "---\nlanguage: en\nlicense: apache-2.0\n---\n# Base\n").unwrap();
        remember("hunter22secret");
        let text = |path: &Path| path.display().to_string();
        let settings = vec![
            ("algorithm.adv_estimator".to_owned(), json!("rloo"), "built-in config/a.yaml:1:1".to_owned()),
            ("algorithm.kl_ctrl.kl_coef".to_owned(), json!(0.05), "recipe.yaml:3:4".to_owned()),
            ("algorithm.gamma".to_owned(), json!(1.0), "built-in config/a.yaml:2:1".to_owned()),
            ("trainer.project_name".to_owned(), json!("private project"), "override".to_owned()),
            ("actor_rollout_ref.model.path".to_owned(), json!(text(&base)), "override".to_owned()),
            ("data.train_files".to_owned(), json!(["/home/me/train.parquet", "openai/gsm8k"]), "override".to_owned()),
            ("reward.api_key".to_owned(), json!("sk-1234567"), "override".to_owned()),
        ];
        let mut run = RunInfo::new("ppo", "p", "e").with_settings(settings);
        run.command =
            ["/home/me/bin/trainer", "--config", "/home/me/recipe.yaml", "x.token=hunter22secret"].map(str::to_owned).to_vec();
        run.metrics = dir.path().join("metrics.jsonl");
        let rows: String =
            (0..=40).map(|step| format!("{{\"step\":{step},\"data\":{{\"val-core/a/acc/mean@1\":0.{step:02}}}}}\n")).collect();
        fs::write(&run.metrics, rows).unwrap();
        run.write(dir.path()).unwrap();
        let part = dir.path().join("global_step_20/actor");
        let card = card(&part, true, "org/my-model");
        assert!(is_card(&card) && !is_card("# Mine"));
        for sentence in [
            "---\nlibrary_name: peft\npipeline_tag: text-generation\nlicense: apache-2.0\ndatasets:\n- openai/gsm8k\ntags:\n- burnish\n\
             - reinforcement-learning\n- rloo\n---\n",
            "# my-model\n\nThis is a LoRA adapter of a language model, after 20 steps of training. Its base model is `base`",
            "- training: `train.parquet`, `openai/gsm8k`\n",
            "algorithm.kl_ctrl.kl_coef: 0.05\n",
            "algorithm.adv_estimator: \"rloo\"\n",
            "trainer --config recipe.yaml 'x.token=***'\n",
            "| 20 | 0.2 |\n",
            "AutoPeftModelForCausalLM.from_pretrained(\"org/my-model\")",
        ] {
            assert!(card.contains(sentence), "{sentence}\n{card}");
        }
        for unsaid in ["/home", "hunter22", "sk-1234567", "private project", "algorithm.gamma", "| 21 |", &text(dir.path())] {
            assert!(!card.contains(unsaid), "{unsaid}\n{card}");
        }
    }
}
