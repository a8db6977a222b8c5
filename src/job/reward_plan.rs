//! The reward functions of a configuration, ready to be called: `reward_model`, `reward` and `custom_reward_function`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Error, Result, ensure};

use burnish_config::schema::{self, REMOTE, RewardConfig, RewardKeys, RewardManager};
use burnish_data::{GroundTruthKey, RowNeeds};
use burnish_reward::math_verify::{self, MathVerify};
use burnish_reward::python::{self, CodeSource, Pool, PoolOptions, Style};
use burnish_reward::remote::{Remote, RemoteOptions};
use burnish_reward::sandbox::{Sandbox, SandboxOptions};
use burnish_reward::{OnError, Reward, RewardOptions, RewardService, Rewards, RowPart, Runs, Services, Tagged};
use burnish_util::interrupt::Interrupt;
use burnish_util::secret::remember;

/// The rewards of a configuration. Its Python functions are already started, so that errors come before a model is loaded, and so
/// that the columns that they read are known.
pub(crate) struct RewardPlan<'a> {
    keys: RewardKeys<'a>,
    pool: Option<Arc<Pool>>,
    pub needs: RowNeeds,
    interrupt: Interrupt,
}

impl<'a> RewardPlan<'a> {
    /// # Errors
    /// A file of functions that cannot be called.
    pub(crate) fn start(keys: RewardKeys<'a>, interrupt: &Interrupt) -> Result<Self> {
        let pool = custom(&keys, interrupt)?;
        let needs = needs(&keys.functions(), pool.as_deref());
        Ok(Self { keys, pool, needs, interrupt: interrupt.clone() })
    }

    /// Returns the processes of the user's functions, if there are any.
    pub(crate) fn pool(&self) -> Option<Arc<Pool>> {
        self.pool.clone()
    }

    /// Returns true if a reward function uses the rule of each row's data source.
    pub(crate) fn asks_rules(&self) -> bool {
        let own = |name: &str| self.pool.as_ref().is_some_and(|pool| pool.functions().iter().any(|f| f.name == name));
        let asks =
            |name: &str| burnish_reward::function(name).is_some_and(|function| function.needs.contains(&RewardService::Rules));
        self.keys.functions().iter().any(|name| asks(name) && !own(name))
    }

    /// Refuses settings by which rows lack what a built-in function reads. `reward_fn_key`: the setting and its value.
    ///
    /// # Errors
    /// The first function that cannot score any row.
    pub(crate) fn check_keys(&self, reward_fn_key: (&str, Option<&str>), ground_truth: &GroundTruthKey) -> Result<()> {
        let names = self.keys.functions();
        let own = |name: &str| self.pool.as_ref().is_some_and(|pool| pool.functions().iter().any(|f| f.name == name));
        for name in names.iter().filter(|name| !own(name)) {
            let needs = needs_of(name, None);
            let (key, column) = reward_fn_key;
            ensure!(
                !needs.data_source || column.is_some(),
                "{key}=null: rows have no data source, by which the reward function `{name}` chooses a scorer; write {key}=COLUMN, or name \
                 a function for all rows: reward_model.reward_functions=[NAME], or custom_reward_function.path=FILE.py"
            );
            ensure!(
                !needs.ground_truth || *ground_truth != GroundTruthKey::None,
                "data.label_key='': rows have no answers, with which the reward function `{name}` compares; write data.label_key=COLUMN"
            );
        }
        Ok(())
    }

    /// Returns the reward functions, with the services that the rules of these data sources need.
    ///
    /// # Errors
    /// If a function does not exist, a data source has no rule, or a service is missing, with the key that names it.
    pub(crate) fn rewards(self, data_sources: &BTreeSet<&str>) -> Result<Rewards> {
        let (keys, reward) = (&self.keys, self.keys.reward);
        let names = keys.functions();
        let by_rule = self.asks_rules();
        if by_rule {
            burnish_reward::check_sources(data_sources.iter().copied())?;
        }
        let mut own: Vec<Reward> = self.pool.iter().flat_map(python::functions).collect();
        own.extend(self.remote()?);
        let others = names.iter().map(String::as_str).filter(|name| own.iter().all(|reward| reward.name != *name));
        let sources = data_sources.iter().copied().filter(|_| by_rule);
        let services = Services::start(sources, others, self.sandbox()?, || self.math_verify())?;
        let options = RewardOptions {
            names,
            weights: keys.reward_weights.unwrap_or_default().to_vec(),
            settings: {
                let numbers = reward
                    .function_kwargs
                    .iter()
                    .map(|(name, own)| (name.clone(), own.iter().map(|(key, n)| (key.clone(), n.0)).collect()));
                numbers.collect()
            },
            own,
            services,
            on_error: match reward.on_error {
                schema::OnRewardError::Error => OnError::Error,
                schema::OnRewardError::Abstain => OnError::Abstain,
                schema::OnRewardError::Value => OnError::Value(reward.error_value as f32),
            },
            reports_accuracy: keys.model == Some(true) || keys.remote_url.is_some(),
        };
        Rewards::new(options).context("reward_model.reward_functions")
    }

    fn remote(&self) -> Result<Option<Reward>> {
        let (urls, reward) = (self.keys.remote_urls(), self.keys.reward);
        if self.keys.remote_url.is_none() {
            return Ok(None);
        }
        let token = reward.remote_token_env.as_ref().map(|name| {
            std::env::var(name).with_context(|| format!("reward.remote_token_env: the environment has no variable {name}"))
        });
        let remote = Remote::new(RemoteOptions {
            urls,
            timeout: Duration::from_secs_f64(reward.timeout),
            retries: reward.remote_retries,
            token: token.transpose()?.inspect(|token| remember(token)),
            interrupt: self.interrupt.clone(),
        });
        Ok(Some(Reward::new(REMOTE, Runs::Each(Arc::new(remote.context("reward_model.remote_url")?)))))
    }

    fn sandbox(&self) -> Result<Option<Sandbox>> {
        let settings = &self.keys.reward.sandbox_fusion;
        let start = |url: &String| {
            let (url, interrupt) = (url.clone(), self.interrupt.clone());
            let (max_concurrent, memory_limit_mb) = (settings.max_concurrent, settings.memory_limit_mb);
            Sandbox::new(SandboxOptions { url, max_concurrent, memory_limit_mb, interrupt })
        };
        settings.url.as_ref().map(start).transpose()
    }

    fn math_verify(&self) -> Result<MathVerify> {
        let source = CodeSource::BuiltIn { name: "math-verify", code: math_verify::CODE, functions: math_verify::QUESTIONS };
        let pool = Pool::start(source, pool_options(self.keys.reward, &self.interrupt))?;
        Ok(MathVerify::new(move |question, arguments| pool.call(question, arguments)))
    }
}

/// Warns if prompts end with the tag that a reward function expects at the beginning of a response. No response then earns that
/// part of the reward, and correct responses look wrong. `rows`: data source and prompt text of each row.
pub(crate) fn warn_of_prefilled<'a>(rewards: &Rewards, rows: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut counts: BTreeMap<Tagged, [usize; 2]> = BTreeMap::new();
    for (data_source, prompt) in rows {
        for tagged in rewards.tagged(data_source) {
            let ends = prompt.trim_end().ends_with(tagged.tag);
            let [all, ending] = counts.entry(tagged).or_default();
            *all += 1;
            *ending += usize::from(ends);
        }
    }
    for (Tagged { function, tag, is_prefilled }, [all, ending]) in counts {
        let key = format!("reward.function_kwargs.{function}.prefilled");
        if !is_prefilled && ending > 0 {
            tracing::warn!(
                "the reward function \"{function}\" expects responses that begin with {tag}, but {ending} of {all} prompts end with it: no \
                 response to them earns that part; write +{key}=true (reward_model.reward_functions must name {function}) to count the tag \
                 of the prompt"
            );
        }
        if is_prefilled && ending < all {
            tracing::warn!(
                "{key}=true puts {tag} before every response, and {} of {all} prompts do not end with it",
                all - ending
            );
        }
    }
}

/// Refuses rows whose responses could never be scored, before sampling. `failures`: for each row its place and error, or `None`.
/// If errors do not end the run, only counts the rows.
///
/// # Errors
/// The first failure.
pub(crate) fn check_rows(rewards: &Rewards, failures: Vec<Option<(String, Error)>>) -> Result<()> {
    let total = failures.len();
    let mut failures = failures.into_iter().flatten();
    let Some((place, error)) = failures.next() else { return Ok(()) };
    let others = match failures.count() {
        0 => String::new(),
        others => format!(" ({} of {total} rows)", others + 1),
    };
    if rewards.fails() {
        return Err(error.context(format!("{place}{others}")));
    }
    tracing::warn!("responses to this row cannot be scored: {place}{others}: {error:#}");
    Ok(())
}

/// Starts the processes of `custom_reward_function`.
fn custom(keys: &RewardKeys, interrupt: &Interrupt) -> Result<Option<Arc<Pool>>> {
    let custom = keys.custom;
    let Some(path) = &custom.path else { return Ok(None) };
    let source = CodeSource::File {
        path: path.as_path().display().to_string(),
        names: custom.name.to_vec(),
        reward_kwargs: custom.reward_kwargs.clone().into_iter().collect(),
        positional: keys.manager == Some(RewardManager::Prime),
    };
    let pool = Pool::start(source, pool_options(keys.reward, interrupt)).context("custom_reward_function")?;
    for function in pool.functions() {
        let (name, batch) = (&function.name, function.style == Style::VerlBatch);
        ensure!(
            batch || keys.manager != Some(RewardManager::Batch),
            "reward_model.reward_manager=batch calls a function with lists (data_sources, solution_strs, ground_truths, extra_infos), \
             which {name} in {path} does not take; reward_manager=naive calls it for each response"
        );
    }
    Ok(Some(Arc::new(pool)))
}

/// Returns the limits of the Python processes.
pub(crate) fn pool_options(reward: &RewardConfig, interrupt: &Interrupt) -> PoolOptions {
    PoolOptions {
        python: reward.python.to_string(),
        num_workers: reward.num_workers,
        timeout: Duration::from_secs_f64(reward.timeout),
        start_timeout: Duration::from_secs_f64(reward.start_timeout),
        memory_limit_mb: reward.memory_limit_mb,
        cpu_limit: reward.cpu_limit,
        pass_env: reward.pass_env.clone(),
        interrupt: interrupt.clone(),
    }
}

/// Returns the parts of a row that these functions read.
fn needs(names: &[String], pool: Option<&Pool>) -> RowNeeds {
    names.iter().map(|name| needs_of(name, pool)).fold(RowNeeds::default(), |all, own| RowNeeds {
        data_source: all.data_source || own.data_source,
        ground_truth: all.ground_truth || own.ground_truth,
        solution: all.solution || own.solution,
        columns: all.columns || own.columns,
        prompt_text: all.prompt_text || own.prompt_text,
    })
}

fn needs_of(name: &str, pool: Option<&Pool>) -> RowNeeds {
    let own = pool.and_then(|pool| pool.functions().iter().find(|function| function.name == name));
    if let Some(own) = own {
        return RowNeeds {
            data_source: own.reads(RowPart::DataSource),
            ground_truth: own.reads(RowPart::GroundTruth),
            columns: own.style == Style::Trl,
            prompt_text: own.style == Style::OpenRlhf,
            ..RowNeeds::default()
        };
    }
    let reads = |part| burnish_reward::function(name).is_some_and(|function| function.reads.contains(&part));
    RowNeeds {
        data_source: reads(RowPart::DataSource),
        ground_truth: reads(RowPart::GroundTruth) || reads(RowPart::Solution),
        solution: reads(RowPart::Solution),
        prompt_text: name == REMOTE,
        ..RowNeeds::default()
    }
}
