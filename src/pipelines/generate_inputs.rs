//! The inputs of `trainer generate`: tokenizer, prompts, the table that gets the responses, and the model's configuration.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::generate_conversations::ConversationRows;
use crate::job::agents::{AgentSettings, Agents, EndpointSettings, custom_loop_config, of_conversations};
use crate::job::generation::sampling;
use crate::job::hub_names::{self, Weights};
use crate::job::memory_estimate::MemoryEstimate;
use crate::job::models::check_model;
use crate::job::second_model::note_other_tokenizer;
use crate::job::template_date;
use crate::job::token_rules::token_rules;
use crate::job::unused_options::{ProcessKinds, UnusedOption, warn_of_unused};
use crate::job::words::ToLayer;
use burnish_config::Loaded;
use burnish_config::schema::{self, GenerationConfig, Location};
use burnish_data::prompts::warn_of_ends;
use burnish_data::rows::{FileRows, MEDIA_COLUMNS, Row};
use burnish_data::{
    AGENT_NAME, GroundTruthKey, MESSAGES, Prompt, PromptForm, PromptOptions, PromptText, RowNeeds, RowSelection, RowTable,
    TemplateVariables, Tokenizer, Truncation, columns_of_question, load_prompts, name_unread, with_remedies,
};
use burnish_model::DecoderConfig;
use burnish_model::hf_config::HfConfig;
use burnish_rollout::{Logprobs, TokenRules};
use burnish_util::fs::refuse_input;
use burnish_util::interrupt::Interrupt;

/// The inputs of a generation, without the weights.
pub(super) struct GenerateInputs {
    pub config: GenerationConfig,
    pub decoder: DecoderConfig,
    pub tokenizer: Tokenizer,
    pub table: RowTable,
    /// The token ids of each row's prompt.
    pub prompts: Vec<Vec<u32>>,
    pub rules: Option<TokenRules>,
    /// The conversations of the rows; `None` if every response is one turn.
    pub talks: Option<ConversationRows>,
    /// The weights, which may still have to be downloaded.
    pub weights: Weights,
}

impl GenerateInputs {
    /// Resolves Hub names; reads and checks the tokenizer, the prompts and the model's configuration.
    pub(super) fn read(mut loaded: Loaded<GenerationConfig>) -> Result<Self> {
        let weights = hub_names::find(&mut loaded)?;
        let config = loaded.config;
        let rollout = &config.rollout;
        // The scorer of the responses is not known here, so the reward of an environment is kept.
        let keys = rollout.conversations();
        let seen = || json!({"data": config.data, "actor_rollout_ref": {"model": config.model, "rollout": rollout}});
        let settings = AgentSettings {
            keys,
            process: config.reward.process(),
            prompt_length: rollout.prompt_length,
            response_length: rollout.response_length,
            max_model_len: rollout.max_model_len,
            scores_by_rule: true,
            custom_loop_config: custom_loop_config(&keys, (rollout.prompt_length, rollout.response_length), seen),
            endpoint: EndpointSettings {
                sampling: sampling(&rollout.sampling(), rollout.response_length, Logprobs::default()),
                variables: config.data.apply_chat_template_kwargs.clone().into_iter().collect(),
                ignore_eos: rollout.ignore_eos,
                stop_token_ids: rollout.stop_token_ids.clone(),
            },
        };
        let mut agents = Agents::start(&settings, &Interrupt::default())?;
        let processes = agents.as_ref().map(Agents::processes).unwrap_or_default();
        warn_of_unused::<GenerationConfig>(&loaded.tree, &unused_options(&config, processes))?;
        let model = &config.model;
        let folder = model.tokenizer_path.as_ref().unwrap_or(&model.path);
        let tokenizer = Tokenizer::load_with_template(folder.as_path(), model.custom_chat_template.as_deref())
            .context("model.tokenizer_path (by default model.path)")?
            .with_ends_of(model.path.as_path())
            .context("model.path")?;
        if model.tokenizer_path.is_some() {
            note_other_tokenizer("model.tokenizer_path", &tokenizer, model.path.as_path())?;
        }
        let tokenizer = template_date::dated(tokenizer, config.data.chat_template_date.as_deref(), None)?;
        let files = config.data.path.paths();
        let output = ("data.output_path", config.data.output_path.as_path());
        refuse_input(output, files.iter().map(|file| ("data.path", file.as_path())))?;
        for id in &config.rollout.stop_token_ids {
            let known = tokenizer.vocab_size();
            ensure!((*id as usize) < known, "rollout.stop_token_ids has {id}; ids of the tokenizer are below {known}");
        }
        let conversations = match &agents {
            Some(agents) => Some(conversations(&files, &tokenizer, &config, agents).context("data.path")?),
            None => None,
        };
        let prompts: Vec<(usize, Vec<u32>)> = match &conversations {
            Some(conversations) => conversations.iter().map(|prompt| (prompt.index, prompt.ids.clone())).collect(),
            None => prompts(&files, &tokenizer, &config).context("data.path")?,
        };
        template_date::note(tokenizer.date(), &mut loaded.tree);
        let mut table = RowTable::read(&files).context("data.path")?;
        let mut kept = vec![false; table.len()];
        prompts.iter().for_each(|(row, _)| kept[*row] = true);
        if kept.contains(&false) {
            table.retain(kept)?;
        }
        let prompts: Vec<Vec<u32>> = prompts.into_iter().map(|(_, ids)| ids).collect();
        warn_of_columns(&table, &config, agents.is_some())?;
        let hf = HfConfig::read_overridden(model.path.as_path(), model.override_config.clone()).context("model.path")?;
        let decoder = hf.decoder().context("model.path")?;
        if let (Some(agents), Some(prompts)) = (&mut agents, &conversations) {
            let model_type = hf.json.get("model_type").and_then(|name| name.as_str()).unwrap_or_default();
            agents.set_prompt_parts(&tokenizer, chat_kwargs(&config), (model_type, decoder.max_position_embeddings))?;
            agents.check(prompts.iter())?;
        }
        let keys = config.rollout.token_rules();
        let rules = token_rules(&keys, "rollout", &loaded.tree, &tokenizer, decoder.vocab_size)?;
        let talks = agents.zip(conversations).map(|(agents, prompts)| ConversationRows { agents, prompts });
        let inputs = Self { config, decoder, tokenizer, table, prompts, rules, talks, weights };
        let (longest, shorten) = match inputs.config.rollout.max_model_len {
            Some(longest) => (longest, "rollout.max_model_len"),
            None => (
                inputs.longest_prompt() + inputs.config.rollout.response_length,
                "rollout.prompt_length or rollout.response_length",
            ),
        };
        check_model(&inputs.decoder, &inputs.tokenizer, longest, shorten).with_context(|| {
            format!("the model in {} and the tokenizer in {}", inputs.config.model.path, inputs.tokenizer_folder())
        })?;
        Ok(inputs)
    }

    pub(super) fn tokenizer_folder(&self) -> &Location {
        self.config.model.tokenizer_path.as_ref().unwrap_or(&self.config.model.path)
    }

    /// Returns the number of tokens of the longest prompt. A prompt that an environment writes can have the full limit.
    pub(crate) fn longest_prompt(&self) -> usize {
        let agent = &self.config.rollout.agent;
        if self.talks.is_some() && (agent.environment.path.is_some() || agent.agent_func_path.is_some()) {
            return self.config.rollout.prompt_length;
        }
        self.prompts.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Estimates the memory of the generation.
    pub(super) fn memory(&self) -> MemoryEstimate {
        let GenerationConfig { data, rollout, model, trainer, .. } = &self.config;
        let lengths = (self.longest_prompt(), rollout.response_length);
        let side_by_side = data.batch_size.min(self.prompts.len()).saturating_mul(data.n_samples);
        let slots = rollout.max_num_seqs.min(side_by_side);
        let prompts = slots.min(side_by_side / data.n_samples.max(1));
        let mut memory = MemoryEstimate::new(self.decoder.clone(), None, trainer.device);
        memory.trajectories(side_by_side, lengths);
        memory.generation(slots, prompts, lengths, rollout.max_num_batched_tokens, model.dtype.is_bfloat16(trainer.device));
        memory
    }
}

/// Returns the settings without effect.
pub(super) fn unused_options(config: &GenerationConfig, processes: ProcessKinds) -> Vec<UnusedOption> {
    let rollout = &config.rollout;
    let why = match rollout.do_sample {
        true => "rollout.temperature=0 takes the most probable token",
        false => "rollout.do_sample=false takes the most probable token",
    };
    let greedy = !rollout.do_sample || rollout.temperature == 0.0;
    let never_stops = rollout.ignore_eos && rollout.stop.is_empty() && rollout.stop_token_ids.is_empty();
    let no_python = "there are no tools, users or environments in Python";
    let (no_process, no_python) = ((!processes.python && !processes.servers, no_python), (!processes.python, no_python));
    let of_processes = [
        (no_process, "reward.start_timeout"),
        (no_python, "reward.python"),
        (no_process, "reward.pass_env"),
        (no_python, "reward.cpu_limit"),
    ];
    let own = [
        (!rollout.do_sample, "rollout.temperature", why),
        (greedy, "rollout.top_k", why),
        (greedy, "rollout.top_p", why),
        (greedy, "rollout.min_p", why),
        (greedy, "trainer.seed", why),
        (never_stops, "rollout.min_tokens", "rollout.ignore_eos is true, and nothing else stops a response"),
    ];
    let of_agents = of_conversations(&rollout.conversations()).into_iter();
    // Their keys are the keys of training.
    let of_agents = of_agents.filter_map(|(unused, key, why)| Some((unused, key.strip_prefix("actor_rollout_ref.")?, why)));
    own.into_iter().chain(of_processes.map(|((unused, why), key)| (unused, key, why))).chain(of_agents).collect()
}

fn chat_kwargs(config: &GenerationConfig) -> TemplateVariables {
    config.data.apply_chat_template_kwargs.clone().into_iter().collect()
}

/// Returns the rows that begin conversations.
fn conversations(
    files: &[PathBuf],
    tokenizer: &Tokenizer,
    config: &GenerationConfig,
    agents: &Agents,
) -> Result<Vec<Arc<Prompt>>> {
    let columns = config.rollout.conversations().read_columns();
    let options = PromptOptions {
        form: form(config),
        reward_fn_key: Some("data_source".to_owned()),
        ground_truth: GroundTruthKey::default(),
        max_prompt_length: usize::MAX,
        truncation: Truncation::Error,
        filter_overlong_prompts: false,
        needs: RowNeeds { columns, ..RowNeeds::default() },
        chat_kwargs: chat_kwargs(config),
        agents: agents.rows()?,
        reading: reading(config),
    };
    let prompts = load_prompts(files, tokenizer, &options)?;
    say_cut(prompts.iter().map(|prompt| (prompt.ids.len(), prompt.place())), config);
    let prompts = prompts.into_iter();
    let cut = |prompt: Prompt| Ok(Prompt { ids: shortened(&prompt.ids, config, || prompt.place())?, ..prompt }.into());
    prompts.map(cut).collect()
}

/// Warns about columns that concern conversations.
///
/// # Errors
/// If the conversations would replace the column of prompts.
fn warn_of_columns(table: &RowTable, config: &GenerationConfig, has_agents: bool) -> Result<()> {
    let has = |name: &str| table.names().any(|column| column == name);
    ensure!(
        !has_agents || config.data.prompt_key != MESSAGES,
        "data.prompt_key={MESSAGES}: conversations are written to a column of this name; rename the column of the prompts"
    );
    if has_agents && has(MESSAGES) {
        tracing::warn!("data.path: the column \"{MESSAGES}\" is replaced by the conversations");
    }
    if !has_agents && has(AGENT_NAME) && config.rollout.agent.read_agent_name {
        tracing::warn!(
            "data.path: the column \"{AGENT_NAME}\" has no effect: every response is one turn, because neither tools nor users nor \
             environments are set (rollout.multi_turn, rollout.agent)"
        );
    }
    Ok(())
}

/// Shortens a prompt to at most `rollout.prompt_length` tokens.
fn shortened(ids: &[u32], config: &GenerationConfig, place: impl Fn() -> String) -> Result<Vec<u32>> {
    let max = config.rollout.prompt_length;
    ToLayer::<Truncation>::to_layer(config.data.truncation).apply(ids, max).with_context(|| {
        format!(
            "{}: the prompt has {} tokens, more than rollout.prompt_length={max}; raise it, or shorten such prompts with \
             data.truncation=left, right or middle",
            place(),
            ids.len()
        )
    })
}

/// Returns the position of every row and the token ids of its prompt.
fn prompts(files: &[PathBuf], tokenizer: &Tokenizer, config: &GenerationConfig) -> Result<Vec<(usize, Vec<u32>)>> {
    let (data, chat_kwargs) = (&config.data, chat_kwargs(config));
    let optional = [MEDIA_COLUMNS, columns_of_question(&data.prompt_key)].concat();
    let rows = FileRows::read(files, &[&data.prompt_key], &optional);
    let rows = rows.map_err(|error| with_remedies(error, &[("data.prompt_key", &data.prompt_key)]))?;
    name_unread(&rows, &[&[data.prompt_key.as_str()], &optional[..]].concat());
    if rows.is_empty() {
        bail!("no rows to respond to");
    }
    let (form, with) = (form(config), tokenizer.clone());
    let read = move |index, row: Row| {
        let ids = PromptText::from_row(&row, &form, &with, &chat_kwargs)?.ids;
        Ok((index, ids, row.values[&form.key].is_string() && !form.apply_chat_template))
    };
    let (prompts, malformed) = rows.each_or(reading(config).on_malformed, read)?;
    malformed.report("rows", rows.len())?;
    warn_of_ends(tokenizer, prompts.iter().filter(|(.., is_plain)| *is_plain).map(|(_, ids, _)| ids.as_slice()));
    say_cut(prompts.iter().map(|(index, ids, _)| (ids.len(), rows.place(*index))), config);
    prompts.iter().map(|(index, ids, _)| Ok((*index, shortened(ids, config, || rows.place(*index))?))).collect()
}

fn form(config: &GenerationConfig) -> PromptForm {
    let data = &config.data;
    PromptForm {
        key: data.prompt_key.clone(),
        apply_chat_template: data.apply_chat_template,
        input_template: data.input_template.clone(),
    }
}

fn reading(config: &GenerationConfig) -> RowSelection {
    RowSelection { take: None, on_malformed: config.data.on_malformed_row.to_layer() }
}

/// Logs the number of truncated prompts. `prompts`: tokens and place of each.
fn say_cut(prompts: impl Iterator<Item = (usize, String)>, config: &GenerationConfig) {
    let max = config.rollout.prompt_length;
    let mut long = prompts.filter(|(tokens, _)| *tokens > max && config.data.truncation != schema::DataTruncation::Error);
    if let Some((_, first)) = long.next() {
        let count = long.count() + 1;
        tracing::warn!(
            "{count} prompts have more than {max} tokens (rollout.prompt_length), and data.truncation cuts them; the first: {first}"
        );
    }
}
