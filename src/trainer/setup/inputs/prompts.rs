//! Reads the prompts of training and validation.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};

use crate::job::agents::Agents;
use crate::job::problems::Problems;
use crate::job::words::ToLayer;
use burnish_config::PpoConfig;
use burnish_config::schema::{Location, OneOrMany};
use burnish_data::{
    AgentRows, GroundTruthKey, Prompt, PromptForm, PromptOptions, RowNeeds, RowSelection, Take, Tokenizer, load_prompts,
};

/// The prompts of training and validation.
pub(super) struct Prompts {
    pub train: Vec<Arc<Prompt>>,
    pub val: Vec<Arc<Prompt>>,
}

impl Prompts {
    /// Reads and tokenizes the rows.
    ///
    /// # Errors
    /// If a file or row cannot be read, with its key and place.
    pub(super) fn read(config: &PpoConfig, tokenizer: &Tokenizer, needs: RowNeeds, agents: Option<&Agents>) -> Result<Self> {
        let keys = config.actor_rollout_ref.rollout.conversations();
        let rows = agents.map(Agents::rows).transpose()?;
        let rows = rows.unwrap_or_else(|| AgentRows { ignores_names: !keys.agent.read_agent_name, ..AgentRows::default() });
        let data = &config.data;
        let read = |part: &Part| prompts(config, needs, tokenizer, &rows, part);
        let (files, take) = (&data.train_files, (data.train_max_samples, data.shuffle));
        let mut problems = Problems::default();
        let train = problems.note(read(&Part { key: "data.train_files", files, take }));
        let take = (data.val_max_samples, data.validation_shuffle);
        let val = data.val_files.as_ref().map_or(Ok(vec![]), |files| read(&Part { key: "data.val_files", files, take }));
        match (train, problems.note(val)) {
            (Some(train), Some(val)) => Ok(Self { train, val }),
            _ => Err(problems.into_error()),
        }
    }
}

/// The files of training or validation.
struct Part<'a> {
    key: &'static str,
    files: &'a OneOrMany<Location>,
    /// The maximum number of rows, -1 = all, and true to draw random rows.
    take: (i64, bool),
}

fn prompts(
    config: &PpoConfig,
    needs: RowNeeds,
    tokenizer: &Tokenizer,
    agents: &AgentRows,
    &Part { key, files, take: (max, shuffle) }: &Part,
) -> Result<Vec<Arc<Prompt>>> {
    let data = &config.data;
    let seed = data.seed.unwrap_or(config.trainer.seed);
    let take = usize::try_from(max).ok().map(|max| Take { max, shuffle, seed });
    let options = PromptOptions {
        form: PromptForm {
            key: data.prompt_key.clone(),
            apply_chat_template: data.apply_chat_template,
            input_template: data.input_template.clone(),
        },
        reward_fn_key: data.reward_fn_key.clone(),
        ground_truth: GroundTruthKey::new(data.label_key.as_deref(), GroundTruthKey::default()),
        max_prompt_length: data.max_prompt_length,
        truncation: data.truncation.to_layer(),
        filter_overlong_prompts: data.filter_overlong_prompts,
        needs: RowNeeds { columns: needs.columns || config.distillation.context_key().is_some(), ..needs },
        chat_kwargs: data.apply_chat_template_kwargs.clone().into_iter().collect(),
        agents: agents.clone(),
        reading: RowSelection { take, on_malformed: data.on_malformed_row.to_layer() },
    };
    let files = files.paths();
    refuse_dumps_of_inputs(config, key, &files)?;
    let prompts = load_prompts(&files, tokenizer, &options).context(key)?;
    Ok(prompts.into_iter().map(Arc::new).collect())
}

/// Refuses input files that the run would overwrite with its files `STEP.jsonl`.
fn refuse_dumps_of_inputs(config: &PpoConfig, key: &str, files: &[PathBuf]) -> Result<()> {
    let trainer = &config.trainer;
    let folders =
        [("trainer.rollout_data_dir", &trainer.rollout_data_dir), ("trainer.validation_data_dir", &trainer.validation_data_dir)];
    for file in files.iter().filter_map(|file| file.canonicalize().ok()) {
        let is_dump = file.extension().is_some_and(|extension| extension == "jsonl")
            && file.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| stem.parse::<u64>().is_ok());
        for (setting, folder) in folders.iter().filter_map(|(setting, folder)| Some((setting, folder.as_ref()?))) {
            let same = folder.as_path().canonicalize().is_ok_and(|folder| file.parent() == Some(&folder));
            ensure!(
                !(is_dump && same),
                "{setting}={folder} would overwrite the rows of {key}, {}: the run writes its files STEP.jsonl there; name another folder",
                file.display()
            );
        }
    }
    Ok(())
}
