//! Options of TRL's trainers of preferences, reward models and distillation. They come first: other trainers use some names differently.

use crate::peers::OptionTreatment::{Ignored, Key, Read, Refused};
use crate::peers::TreatmentRow;

const REFERENCE_STAYS: &str = "the reference never changes, so that its log-probabilities are computed once";
const NOT_PADDED: &str = "rows are packed without padding, as separate sequences";
const TOGETHER: &str = "prompt and response are truncated together, to max_length";
const CAUSAL: &str = "all models are decoders";

pub(super) const ROWS: &[TreatmentRow] = &[
    // Pairs and labelled responses.
    ("beta", "dpo kto orpo cpo tpo", Key("algorithm.beta")),
    ("loss_type", "dpo", Read("`algorithm.loss_type`, a name or a list, with the same names")),
    ("loss_type", "kto", Read("`algorithm.loss_type`, with the same names")),
    (
        "loss_type",
        "cpo",
        Read("`algorithm.loss_type`: `sigmoid` → `cpo`, `hinge` → `cpo_hinge`, `ipo` → `cpo_ipo`; `simpo`, `alphapo`"),
    ),
    (
        "loss_type",
        "tpo",
        Read("`algorithm.loss_type`: `sigmoid` → `tpo`, `hinge` → `tpo_hinge`, `ipo` → `tpo_ipo`, `tpo-l` → `tpo_l`"),
    ),
    ("tpo_alpha", "", Key("algorithm.tpo_alpha")),
    ("tpo_l_gamma", "", Key("algorithm.tpo_l_gamma")),
    ("loss_weights", "", Key("algorithm.loss_weights")),
    ("label_smoothing", "", Key("algorithm.label_smoothing")),
    ("ld_alpha", "", Key("algorithm.ld_alpha")),
    ("f_divergence_type", "", Key("algorithm.f_divergence_type")),
    ("f_alpha_divergence_coef", "", Key("algorithm.f_alpha_divergence_coef")),
    ("use_weighting", "dpo", Key("algorithm.use_weighting")),
    ("discopop_tau", "", Key("algorithm.discopop_tau")),
    ("cpo_alpha", "", Key("algorithm.cpo_alpha")),
    ("simpo_gamma", "", Key("algorithm.simpo_gamma")),
    ("alpha", "cpo", Key("algorithm.alpha")),
    ("desirable_weight", "", Key("algorithm.desirable_weight")),
    ("undesirable_weight", "", Key("algorithm.undesirable_weight")),
    (
        "precompute_ref_log_probs precompute_ref_batch_size",
        "",
        Ignored("always on: `ref.precompute_log_prob` computes log-probabilities before the first step"),
    ),
    ("reference_free", "dpo", Refused("the loss always compares with the reference")),
    ("rpo_alpha", "dpo", Refused("write it as `loss_type: [sigmoid, sft]` with `loss_weights: [1.0, rpo_alpha]`")),
    ("force_use_ref_model", "dpo", Ignored("the reference is the model before training")),
    ("ref_model_init_kwargs", "dpo kto", Refused("a model is loaded as its config.json describes: edit that file")),
    ("max_target_length base_model_attribute_name", "dpo kto", Ignored(CAUSAL)),
    ("label_pad_token_id", "", Ignored(NOT_PADDED)),
    ("use_logits_to_keep use_num_logits_to_keep", "dpo", Ignored("the head always works in chunks of tokens")),
    ("tools", "dpo", Refused("the tools of a row are read from its column `tools`")),
    ("max_prompt_length", "dpo kto orpo cpo", Refused(TOGETHER)),
    ("max_completion_length", "dpo kto", Refused(TOGETHER)),
    ("sync_ref_model", "dpo kto", Refused(REFERENCE_STAYS)),
    ("ref_model_mixup_alpha ref_model_sync_steps", "dpo kto", Ignored(REFERENCE_STAYS)),
    ("max_completion_length", "orpo cpo", Refused(TOGETHER)),
    ("generate_during_eval", "", Refused("validation only computes losses: run `trainer generate`")),
    ("is_encoder_decoder", "", Ignored(CAUSAL)),
    ("padding_value", "", Ignored(NOT_PADDED)),
    (
        "max_length",
        "dpo kto orpo cpo tpo reward gkd gold",
        Read("`data.max_length`; null (no truncation) becomes `data.truncation=error`"),
    ),
    ("truncation_mode", "dpo", Read("`data.truncation`: `right` for `keep_start`, `left` for `keep_end`")),
    ("padding_free pad_to_multiple_of", "dpo kto tpo reward gkd gold", Ignored(NOT_PADDED)),
    ("eval_on_start", "dpo kto orpo cpo tpo reward gkd gold", Ignored("validation runs every `test_freq` steps and at the end")),
    // Reward models.
    ("center_rewards_coefficient", "", Key("algorithm.center_rewards_coefficient")),
    // Distillation on given responses.
    (
        "assistant_only_loss completion_only_loss truncation_mode",
        "gkd gold",
        Ignored("rows are always conversations, truncated on the left"),
    ),
    ("teacher_model_name_or_path", "gkd", Read("`teacher.path`")),
    ("teacher_model_init_kwargs", "gkd", Refused("a model is loaded as its config.json describes: edit that file")),
    ("beta", "gkd", Key("algorithm.beta")),
    ("lmbda", "gkd", Read("refused above 0: responses come from the data")),
    ("loss_type", "gkd gold", Refused("the loss is always the distance from the teacher")),
    (
        "shuffle_dataset",
        "gkd gold",
        Ignored("every epoch shuffles the rows, as in transformers; data.shuffle=false keeps their order"),
    ),
    ("seq_kd", "gkd gold", Refused("write the teacher's responses first, with `trainer generate`")),
    ("temperature max_new_tokens", "gkd", Ignored("responses come from the data, not from sampling")),
    // Online DPO.
    ("judge", "online_dpo", Refused("set a reward function or a reward model")),
    ("gpu_memory_utilization", "online_dpo", Ignored("the built-in engine generates, directly with the trained weights")),
    ("generation_kwargs", "online_dpo", Refused("set actor_rollout_ref.rollout.*, such as top_k")),
    ("beta", "online_dpo", Read("`actor_rollout_ref.actor.policy_loss.dpo_beta`; one value for all epochs")),
    ("loss_type", "online_dpo", Read("`actor_rollout_ref.actor.policy_loss.dpo_loss_type`: `sigmoid`, or `ipo_sum` for `ipo`")),
    ("max_new_tokens", "online_dpo", Read("`data.max_response_length`")),
    ("max_length", "online_dpo", Ignored("data.max_prompt_length and data.max_response_length limit the sequences")),
    ("reward_model_path", "online_dpo", Read("`reward_model.enable=true reward_model.model.path=FOLDER`")),
    ("use_vllm", "online_dpo", Ignored("the built-in engine generates, directly with the trained weights")),
    ("missing_eos_penalty", "online_dpo", Key("algorithm.missing_eos_penalty")),
];
