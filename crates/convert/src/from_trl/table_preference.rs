//! Options of TRL's trainers of preferences, reward models and distillation. They come first: some names mean other things elsewhere.

use crate::peers::OptionTreatment::{Ignored, Key, Read, Refused};
use crate::peers::TreatmentRow;

const REFERENCE_STAYS: &str = "the reference stays what it was at the start, so that its log-probabilities are computed once";
const NOT_PADDED: &str = "rows are packed without padding, each its own sequence";
const CAUSAL: &str = "models are decoders";

pub const ROWS: &[TreatmentRow] = &[
    // Pairs and labelled answers.
    ("beta", "dpo kto orpo cpo", Key("algorithm.beta")),
    ("loss_type", "dpo", Read("`algorithm.loss_type`, one or a list, by the same names")),
    ("loss_type", "kto", Read("`algorithm.loss_type`, by the same name")),
    (
        "loss_type",
        "cpo",
        Read("`algorithm.loss_type`: `sigmoid` is `cpo`, `hinge` `cpo_hinge`, `ipo` `cpo_ipo`; `simpo`, `alphapo`"),
    ),
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
        Ignored("always so: the reference's log-probabilities are computed before the first step, by `ref.precompute_log_prob`"),
    ),
    ("sync_ref_model", "dpo kto", Refused(REFERENCE_STAYS)),
    ("ref_model_mixup_alpha ref_model_sync_steps", "dpo kto", Ignored(REFERENCE_STAYS)),
    ("max_completion_length", "orpo cpo", Refused("an answer is cut with its prompt, to max_length tokens")),
    ("generate_during_eval", "", Refused("validation is a forward pass: `trainer generate` writes responses")),
    ("is_encoder_decoder", "", Ignored(CAUSAL)),
    ("padding_value", "", Ignored(NOT_PADDED)),
    (
        "max_length",
        "dpo kto orpo cpo reward gkd",
        Read("`data.max_length`; a null in a file cuts nothing: `data.truncation=error`"),
    ),
    ("truncation_mode", "dpo", Read("`data.truncation`: `right` for `keep_start`, `left` for `keep_end`")),
    ("padding_free pad_to_multiple_of", "dpo kto reward gkd", Ignored(NOT_PADDED)),
    ("eval_on_start", "dpo kto orpo cpo reward gkd", Ignored("validation comes with the steps of test_freq, and at the end")),
    // Reward models.
    ("center_rewards_coefficient", "", Key("algorithm.center_rewards_coefficient")),
    // Distillation on given answers.
    (
        "assistant_only_loss completion_only_loss truncation_mode",
        "gkd",
        Ignored("rows are conversations, cut at their beginning, whatever this says"),
    ),
    ("teacher_model_name_or_path", "gkd", Read("`teacher.path`")),
    ("teacher_model_init_kwargs", "gkd", Refused("a model is what its own config.json says: change it there")),
    ("beta", "gkd", Key("algorithm.beta")),
    ("lmbda", "gkd", Read("refused where it is above 0: answers are given ones")),
    ("loss_type", "gkd", Refused("the loss of GKDTrainer is the divergence alone, whatever this says")),
    (
        "shuffle_dataset",
        "gkd",
        Ignored("rows are shuffled anew in each epoch, as transformers does; data.shuffle=false keeps their order"),
    ),
    ("seq_kd", "gkd", Refused("let the teacher answer first: `trainer generate` with its folder writes the rows")),
    ("temperature max_new_tokens", "gkd", Ignored("nothing is sampled: answers are given ones")),
    // Online DPO.
    ("generation_kwargs", "online_dpo", Refused("sampling is set by actor_rollout_ref.rollout.*, such as its top_k")),
    ("beta", "online_dpo", Read("`actor_rollout_ref.actor.policy_loss.dpo_beta`; one for all epochs")),
    ("loss_type", "online_dpo", Read("`actor_rollout_ref.actor.policy_loss.dpo_loss_type`: `sigmoid`, and `ipo_sum` for `ipo`")),
    ("max_new_tokens", "online_dpo", Read("`data.max_response_length`")),
    (
        "max_length",
        "online_dpo",
        Ignored("whole sequences are trained on: data.max_prompt_length and data.max_response_length bound them"),
    ),
    ("reward_model_path", "online_dpo", Read("`reward_model.enable=true reward_model.model.path=FOLDER`")),
    ("use_vllm", "online_dpo", Ignored("the native engine generates, with the trained weights themselves")),
    ("missing_eos_penalty", "online_dpo", Key("algorithm.missing_eos_penalty")),
];
