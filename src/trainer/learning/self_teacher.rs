//! The teacher of on-policy distillation as a model: another one, or the policy itself, which is shown more than the policy
//! (self-distillation). A teacher that follows the policy is state of the run, saved in checkpoints.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

use crate::job::models::check_model;
use crate::job::words::ToLayer;
use crate::trainer::batch::Batch;
use crate::trainer::setup::inputs::TrainerInputs;
use burnish_config::PpoConfig;
use burnish_config::schema::TeacherModelKind;
use burnish_data::TeacherPromptForm;
use burnish_model::{CausalLm, Sequence};

const KIND: &str = "distillation.teacher_model_kind";

/// The model of the teacher.
pub enum TeacherModel {
    /// Another model, or the policy before the first step.
    Fixed(CausalLm),
    /// Follows the policy: W_T ← (1 − rate)·W_T + rate·W after every `every` steps.
    Average { model: CausalLm, rate: f64, every: u64 },
    /// The policy itself.
    Live,
}

impl TeacherModel {
    /// Returns the teacher made of the policy, if the settings choose one.
    ///
    /// # Errors
    /// If the average of an adapter is asked for.
    pub(crate) fn of_policy(config: &PpoConfig, policy: &CausalLm) -> Result<Option<Self>> {
        let distillation = &config.distillation;
        Ok(match distillation.kind() {
            None => None,
            Some(TeacherModelKind::Base) => Some(Self::Fixed(policy.without_adapter())),
            Some(TeacherModelKind::Live) => Some(Self::Live),
            Some(TeacherModelKind::Ema) => {
                let rank = config.actor_rollout_ref.model.lora_rank;
                ensure!(
                    rank == 0,
                    "{KIND}=ema: the averages of both matrices of an adapter are not the average of the weights; write {KIND}=base, or \
                     actor_rollout_ref.model.lora_rank=0"
                );
                let (rate, every) = (distillation.teacher_update_rate, distillation.teacher_sync_steps);
                Some(Self::Average { model: policy.without_adapter(), rate, every })
            }
        })
    }

    /// Returns the model that judges.
    pub(crate) fn get<'a>(&'a self, policy: &'a CausalLm) -> &'a CausalLm {
        match self {
            Self::Fixed(model) | Self::Average { model, .. } => model,
            Self::Live => policy,
        }
    }
}

/// The token ids that the teacher reads in place of the prompt of each row.
pub struct TeacherPrompts(BTreeMap<usize, Vec<u32>>);

impl TeacherPrompts {
    /// Composes the teacher's prompts of all training rows, if the teacher is shown more than the policy.
    ///
    /// # Errors
    /// If a row has no context, or the teacher cannot read prompt and response.
    pub(crate) fn compose(config: &PpoConfig, inputs: &TrainerInputs, teacher: &CausalLm) -> Result<Option<Self>> {
        if let Some(sdpo) = config.distillation.sdpo() {
            let longest = sdpo.max_reprompt_len + config.data.max_response_length;
            check_model(
                &teacher.config,
                &inputs.tokenizer,
                longest,
                "distillation.sdpo.max_reprompt_len, or write distillation.sdpo.enable=false",
            )
            .context(KIND)?;
            return Ok(None);
        }
        let Some(key) = config.distillation.context_key() else { return Ok(None) };
        let form = TeacherPromptForm {
            key: key.to_owned(),
            template: config.distillation.teacher_prompt_template.clone(),
            place: config.distillation.teacher_context.to_layer(),
            chat_kwargs: config.data.apply_chat_template_kwargs.clone().into_iter().collect(),
        };
        let mut prompts = BTreeMap::new();
        for prompt in &inputs.train {
            prompts.insert(prompt.index, form.ids(prompt, &inputs.tokenizer).context("data.train_files")?);
        }
        let longest = prompts.values().map(Vec::len).max().unwrap_or(0) + config.data.max_response_length;
        check_model(&teacher.config, &inputs.tokenizer, longest, "distillation.teacher_prompt_template").context(KIND)?;
        Ok(Some(Self(prompts)))
    }

    /// Returns what the teacher reads of a trajectory.
    ///
    /// # Panics
    /// If its prompt is not of a training row.
    pub(crate) fn sequence<'a>(&'a self, batch: &'a Batch, trajectory: usize) -> Sequence<'a> {
        Sequence { prompt: &self.0[&batch.prompt(trajectory).index], ..batch.sequence(trajectory) }
    }
}
