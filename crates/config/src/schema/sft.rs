//! Supervised fine-tuning. Meaning and defaults: `config/sft_trainer.yaml`.

use serde::{Deserialize, Serialize};

use super::actor::CheckpointConfig;
use super::loadable::Schema;
use super::location_setting::LocationSetting;
use super::optim::StageOptimConfig;
use super::stage::{self, StageConfig, StageKeys, StageModelConfig, StageTrainerConfig, stage_data};
use super::types::{OneOrMany, choices};
use crate::{Kind, Report};

/// The configuration of `trainer sft`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SftConfig {
    pub data: SftDataConfig,
    pub model: StageModelConfig,
    pub algorithm: SftAlgorithmConfig,
    pub optim: StageOptimConfig,
    pub checkpoint: CheckpointConfig,
    pub trainer: StageTrainerConfig,
}

stage_data! {
    /// The examples.
    SftDataConfig {
        messages_key: Option<String>,
        text_key: Option<String>,
        completion_key: Option<String>,
        prompt_key: String,
        response_key: String,
        prompt_dict_keys: Option<OneOrMany<String>>,
        response_dict_keys: Option<OneOrMany<String>>,
        chat_template_kwargs_key: String,
        loss_mask: OneOrMany<LossPart>,
        loss_roles: OneOrMany<String>,
        assistant_mask: AssistantMaskMethod,
        packing: Option<PackingMethod>,
        packing_length: Option<usize>,
    }
}

choices! {
    /// The part of a row that is trained on.
    pub enum LossPart {
        /// The usual part for rows of this form.
        Auto = "auto",
        /// Everything.
        All = "all",
        /// The assistant's messages.
        Assistant = "assistant",
        /// The text after the prompt.
        Completion = "completion",
    }
}

choices! {
    /// The method to find the assistant's tokens.
    pub enum AssistantMaskMethod {
        Auto = "auto",
        GenerationTags = "generation_tags",
        Prefix = "prefix",
    }
}

choices! {
    /// The method to pack rows into units of the batch.
    pub enum PackingMethod {
        Bfd = "bfd",
        BfdSplit = "bfd_split",
        Wrapped = "wrapped",
    }
}

impl SftDataConfig {
    /// Returns the maximum number of tokens of a unit of the batch.
    pub fn unit_length(&self) -> usize {
        self.packing.and(self.packing_length).unwrap_or(self.max_length)
    }

    /// Checks the rules that the types cannot express.
    pub(super) fn validate(&self, report: &mut Report) {
        let columns = [
            ("data.messages_key", &self.messages_key),
            ("data.text_key", &self.text_key),
            ("data.completion_key", &self.completion_key),
        ];
        let set: Vec<&str> = columns.iter().filter(|(_, column)| column.is_some()).map(|(key, _)| *key).collect();
        if let [first, second, ..] = set[..] {
            let message = format!("`{first}` and `{second}` are both set, but a row has only one of these forms");
            report.wrong(second, message, format!("write {second}=null or {first}=null"));
        }
        let parts = &self.loss_mask;
        if parts.len() > 1 && parts.iter().any(|part| matches!(part, LossPart::Auto | LossPart::All)) || parts.is_empty() {
            let help = "write auto, all, assistant, completion or [assistant, completion]";
            report.wrong("data.loss_mask", "`data.loss_mask` must be one of its words, or [assistant, completion]", help);
        }
        if self.loss_roles.is_empty() {
            report.wrong(
                "data.loss_roles",
                "`data.loss_roles` is empty: nothing would be trained on",
                "write data.loss_roles=[assistant]",
            );
        }
        let others = self.loss_roles.iter().find(|role| *role != "assistant");
        if let Some(role) = others.filter(|_| self.assistant_mask == AssistantMaskMethod::GenerationTags) {
            let message = format!("`data.loss_roles` has `{role}`, but a chat template marks only the assistant's messages");
            report.wrong("data.assistant_mask", message, "write data.assistant_mask=prefix");
        }
        let (unit, longest) = (self.unit_length(), self.max_length);
        if self.packing == Some(PackingMethod::Bfd) && unit < longest {
            let message = format!("`data.packing_length` is {unit}, but one row may have {longest} tokens");
            report.wrong("data.packing_length", message, "write data.packing_length=null or more, or data.packing=bfd_split");
        }
        if self.use_dynamic_bsz && self.max_token_len_per_gpu < unit {
            let message =
                format!("`data.max_token_len_per_gpu` is {}, but one unit may have {unit} tokens", self.max_token_len_per_gpu);
            report.wrong("data.max_token_len_per_gpu", message, format!("write data.max_token_len_per_gpu={unit} or more"));
        }
    }
}

/// The loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SftAlgorithmConfig {
    pub loss_type: String,
    pub label_smoothing: f64,
    pub neftune_noise_alpha: Option<f64>,
}

impl StageConfig for SftConfig {
    const NAME: &'static str = "sft";

    fn stage(&self) -> StageKeys<'_> {
        let Self { data, model, algorithm: _, optim, checkpoint, trainer } = self;
        StageKeys { data: data.stage(), model, optim, checkpoint, trainer }
    }
}

impl Schema for SftConfig {
    const KIND: Kind = Kind::Sft;

    fn locations(&mut self) -> Vec<LocationSetting<'_>> {
        stage::locations(&mut self.model, &mut self.data.train_files, &mut self.data.val_files)
    }

    fn validate(&self, report: &mut Report) {
        stage::validate(self.stage(), report);
        self.data.validate(report);
    }
}
