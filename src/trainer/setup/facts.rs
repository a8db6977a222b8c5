//! Facts about a configuration of reinforcement learning, for `trainer doctor`.

use anyhow::Result;

use super::facts_of_rows::{answers, known_prompts, tags};
use super::inputs::TrainerInputs;
use super::samples::{can_sample, sampled};
use super::start::find;
use super::unused_options;
use crate::job::agents::Agents;
use crate::job::inputs::RunInputs;
use crate::job::lora_settings;
use crate::job::plan_facts::{ChatForm, begin_tokens, rate_plan, shared_rows, shown_row};
use crate::job::rank_device::rank_device;
use crate::job::sharding_plan::ShardingPlan;
use burnish_algorithm::advantage::Need;
use burnish_config::schema::ModelInit;
use burnish_config::{Loaded, PpoConfig};
use burnish_data::Prompt;
use burnish_distributed::Ranks;
use burnish_doctor::{EndTokens, Facts, PlanFacts, RatePlan};
use burnish_model::DecoderConfig;
use burnish_util::interrupt::Interrupt;

/// Number of prompts that are sampled without a request, and the work that this may cost: parameters × tokens.
const PROMPTS: usize = 16;
const CHEAP: f64 = 5e9;
/// Number of rows that are shown.
const SHOWN: usize = 2;

/// Reads all inputs of a run, and returns facts about them with the reward functions and their weights. `sample`: number of
/// prompts to sample responses to; `None` samples if it takes about a second.
///
/// # Errors
/// Everything that a run would refuse before its models; errors of sampling.
pub fn facts(mut loaded: Loaded<PpoConfig>, sample: Option<usize>) -> Result<(Facts, Vec<(String, f64)>)> {
    let ranks = Ranks::alone();
    let device = rank_device(loaded.config.trainer.device, &ranks);
    let RunInputs { weights, device, inputs } = find(&mut loaded, device, &Interrupt::default())?;
    let config = &loaded.config;
    let sharding = ShardingPlan::new(&ranks, config.trainer.gradient_slices, &config.trainer.resume());
    unused_options::warn(&loaded.tree, config, &inputs, &sharding)?;
    let decoder = inputs.decoder(config)?;
    let model = &config.actor_rollout_ref.model;
    lora_settings::adapter(&model.lora(), &decoder, model.path.as_path(), config.trainer.seed)?;
    let variables = config.data.apply_chat_template_kwargs.clone().into_iter().collect();
    let form = ChatForm::find(&inputs.tokenizer, &variables);
    let mut facts = Facts {
        has_chat_template: Some(form.is_of_chat_model(inputs.tokenizer.eos_ids())),
        prompts: known_prompts(&inputs.train, &form),
        val_prompts: known_prompts(&inputs.val, &form),
        plan: plan(config, &inputs, &decoder, &form)?,
        ..Facts::default()
    };
    let functions = functions(config);
    let tokens = PROMPTS * config.actor_rollout_ref.rollout.n * config.data.max_response_length;
    let is_cheap = decoder.num_parameters() as f64 * tokens as f64 <= CHEAP && !weights.are_missing();
    let prompts = match sample {
        Some(prompts) => prompts,
        None if is_cheap && can_sample(config, &inputs).is_ok() => PROMPTS,
        None => 0,
    };
    if prompts > 0 {
        can_sample(config, &inputs)?;
        weights.fetch(&mut loaded.config)?;
        facts.plan.samples = Some(sampled(&loaded.config, &inputs, &device, prompts)?);
    } else {
        weights.leave();
    }
    Ok((facts, functions))
}

fn plan(config: &PpoConfig, inputs: &TrainerInputs, decoder: &DecoderConfig, form: &ChatForm) -> Result<PlanFacts> {
    let (model, tokenizer) = (&config.actor_rollout_ref.model, &inputs.tokenizer);
    let lora = model.lora();
    let ids = |prompt: &Prompt| prompt.ids.clone();
    let shown = inputs.train.iter().take(SHOWN).map(|prompt| shown_row(tokenizer, prompt.place(), &prompt.ids, &[]));
    Ok(PlanFacts {
        parameters: Some(decoder.num_parameters()),
        has_adapter: lora.rank > 0 || lora.adapter_path.is_some(),
        is_random: model.init == ModelInit::Random,
        steps: inputs.total_steps,
        rates: if config.trainer.val_only { vec![] } else { rates(config, inputs.total_steps)? },
        compares_groups: inputs.estimator.as_ref().is_some_and(|estimator| estimator.needs(Need::Group)),
        begins: Some(begin_tokens(tokenizer, inputs.train.iter().map(|prompt| prompt.ids.as_slice()))),
        ends: Some(ends(config, inputs, decoder, form)),
        tags: tags(config, inputs),
        answers: answers(config, inputs),
        shared_rows: Some(shared_rows(
            inputs.train.iter().map(|prompt| ids(prompt)),
            inputs.val.iter().map(|prompt| ids(prompt)),
            |i| inputs.val[i].place(),
        )),
        shown: shown.collect::<Result<_>>()?,
        ..PlanFacts::default()
    })
}

fn rates(config: &PpoConfig, steps: u64) -> Result<Vec<RatePlan>> {
    let actor = rate_plan("actor_rollout_ref.actor.optim", &config.actor_rollout_ref.actor.optim, steps)?;
    let critic = config.has_critic().then(|| rate_plan("critic.optim", &config.critic.optim, steps)).transpose()?;
    // Rates of critics are not compared: their heads are new.
    Ok(std::iter::once(actor).chain(critic.map(|rate| RatePlan { has_known_range: false, ..rate })).collect())
}

fn ends(config: &PpoConfig, inputs: &TrainerInputs, decoder: &DecoderConfig, form: &ChatForm) -> EndTokens {
    let (rollout, tokenizer) = (&config.actor_rollout_ref.rollout, &inputs.tokenizer);
    let of_format = inputs.agents.as_ref().map(Agents::stop_ids).unwrap_or_default();
    let stops = tokenizer.stop_ids(rollout.ignore_eos, &[rollout.stop_token_ids.as_slice(), &of_format].concat());
    let text = |id: &u32| tokenizer.decode(&[*id], false).ok().filter(|text| !text.is_empty()).unwrap_or_else(|| id.to_string());
    let conversational = inputs.train.iter().any(|prompt| prompt.conversational);
    let turn_end = form.turn_end.filter(|_| conversational && !rollout.ignore_eos);
    let is_forbidden = |id: &u32| {
        inputs.rules.as_ref().is_some_and(|rules| {
            let allowed = rules.allowed.as_ref().is_none_or(|allowed| allowed.contains(id));
            let biased = rules.biases.iter().any(|(biased, bias)| biased == id && *bias <= -20.0);
            !allowed || biased || rules.bad_words.iter().any(|word| word.as_slice() == [*id])
        })
    };
    EndTokens {
        generates: true,
        ignores_eos: rollout.ignore_eos,
        stops: stops.iter().map(text).collect(),
        has_stop_text: !rollout.stop.is_empty(),
        turn_end: turn_end.as_ref().map(text),
        stops_at_turn_end: turn_end.is_none_or(|end| stops.contains(&end)),
        beyond_vocabulary: stops.iter().filter(|id| **id as usize >= decoder.vocab_size).map(text).collect(),
        are_forbidden: stops.iter().all(is_forbidden),
        limits: (rollout.sampling().min_tokens, config.data.max_response_length),
        unended: (0, 0),
    }
}

/// Returns the reward functions with their weights.
fn functions(config: &PpoConfig) -> Vec<(String, f64)> {
    let rewards = config.rewards();
    let weights = rewards.reward_weights.map(|weights| weights.to_vec()).unwrap_or_default();
    rewards.functions().into_iter().enumerate().map(|(i, name)| (name, weights.get(i).copied().unwrap_or(1.0))).collect()
}
