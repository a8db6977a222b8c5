//! Responses to the first prompts and their scores, before a run.

use anyhow::{Result, bail};
use burn::tensor::Device;

use super::inputs::TrainerInputs;
use super::lengthened::{Samples, lengthened};
use super::start::load_model;
use crate::job::generation::{native_engine, sampling};
use crate::job::words::ToLayer;
use crate::trainer::sampling::scoring::{self, DecodedResponse};
use burnish_config::PpoConfig;
use burnish_data::completes_stop;
use burnish_doctor::SampledGroups;
use burnish_engine::{Engine, GenerationRequest};
use burnish_reward::ScoreInput;
use burnish_rollout::Finish;
use burnish_util::rng::Stream;

/// Checks that responses can be sampled and scored by the policy and the reward functions alone.
///
/// # Errors
/// If conversations, a reward model or a server is needed.
pub(super) fn can_sample(config: &PpoConfig, inputs: &TrainerInputs) -> Result<()> {
    let needed = match () {
        () if inputs.agents.is_some() => "conversations",
        () if inputs.reward_model.is_some() => "the reward model",
        () if config.rewards().remote_url.is_some() => "a server of rewards",
        () => return Ok(()),
    };
    bail!("--sample: the run needs {needed}, and the doctor samples plain responses alone; leave --sample out")
}

/// Samples responses to the first training prompts, and scores them.
///
/// # Errors
/// If the model cannot be loaded, or a reward function fails.
pub(super) fn sampled(config: &PpoConfig, inputs: &TrainerInputs, device: &Device, prompts: usize) -> Result<SampledGroups> {
    let model = load_model(config, device)?;
    let rollout = &config.actor_rollout_ref.rollout;
    let (tokenizer, stop, n) = (&inputs.tokenizer, &rollout.stop, rollout.n);
    let prompts = &inputs.train[..prompts.min(inputs.train.len())];
    let ids: Vec<&[u32]> = prompts.iter().map(|prompt| prompt.ids.as_slice()).collect();
    let stops = |ids: &[u32]| completes_stop(tokenizer, stop, ids, false);
    let request = GenerationRequest {
        prompts: &ids,
        n,
        sampling: sampling(&rollout.sampling(), config.data.max_response_length, rollout.logprobs_mode.to_layer()),
        eos: &tokenizer.stop_ids(rollout.ignore_eos, &rollout.stop_token_ids),
        stops: if stop.is_empty() { None } else { Some(&stops) },
        rules: inputs.rules.as_ref(),
        stream: &|prompt, sample| Stream::new(config.trainer.seed, "doctor", &[prompt as u64, sample as u64]),
        finished: None,
        progress: None,
    };
    let responses = native_engine(&rollout.sampling()).generate(&model, &request)?;
    let cut = responses.iter().filter(|response| response.finish == Finish::Length).count();
    let decoded = responses.into_iter().map(|response| {
        let (text, raw) = (tokenizer.decode(&response.ids, true)?, tokenizer.decode(&response.ids, false)?);
        Ok(DecodedResponse { response, text, raw, episode: None, prompt_text: None, pending: None })
    });
    let decoded = decoded.collect::<Result<Vec<_>>>()?;
    let scored: Vec<ScoreInput> =
        decoded.iter().enumerate().map(|(i, response)| scoring::input(&prompts[i / n], response, 0)).collect();
    let pending = inputs.rewards.begin_all(&scored, config.reward.num_workers)?;
    let scores = inputs.rewards.complete(&scored, pending, |i| format!("scoring a response to {}", prompts[i / n].place()))?;
    let names: Vec<String> =
        scores.first().map_or_else(Vec::new, |score| score.components.iter().map(|component| component.name.clone()).collect());
    let abstained = names.into_iter().enumerate().map(|(i, name)| {
        let count = scores.iter().filter(|score| score.components.get(i).is_some_and(|one| one.reward.is_none())).count();
        (name, count)
    });
    let all = Samples { prompts, responses: &decoded, scores: &scores, n, limit: config.data.max_response_length };
    let lengthened = lengthened(&all, tokenizer, &inputs.rewards);
    let texts: Vec<&str> = decoded.iter().map(|response| response.text.as_str()).collect();
    Ok(SampledGroups {
        alike: texts.chunks(n).filter(|group| group.iter().all(|text| *text == group[0])).count(),
        abstained: abstained.collect(),
        example: decoded.first().map(|first| (first.raw.clone(), scores[0].score.map(f64::from))),
        groups: scores.chunks(n).map(|group| group.iter().map(|score| score.score.map(f64::from)).collect()).collect(),
        cut,
        lengthened,
    })
}
