//! Options of TRL's trainers that distil a teacher. They come first: other trainers use some names differently.

use crate::peers::OptionTreatment::{Ignored, Key, Read, Refused};
use crate::peers::TreatmentRow;

const NATIVE: &str = "the built-in engine generates, directly with the trained weights";
const NO_SERVER: &str = "the teacher is a model in the training processes";
const GIVEN: &str = "responses come from the data, not from sampling";
const OF_SCRIPT: &str = "an option of a script around the trainer";
const REVISION: &str = "name the revision with the teacher: ORG/NAME@REVISION";
const CONFIG: &str = "a model is loaded as its config.json describes: edit that file";

pub(super) const ROWS: &[TreatmentRow] = &[
    // The teacher.
    ("teacher_model_name_or_path", "iw_opd", Read("`distillation.teacher_models.teacher_model.model_path`")),
    ("teacher_model_name_or_path", "gold", Read("`teacher.path`")),
    ("teacher_model_revision", "iw_opd gold", Refused(REVISION)),
    ("teacher_model_init_kwargs", "iw_opd gold", Refused(CONFIG)),
    ("use_teacher_server teacher_model_server_url", "", Refused(NO_SERVER)),
    // IW-OPD.
    (
        "generation_batch_size",
        "iw_opd",
        Read(
            "`data.train_batch_size`: the prompts of one process; times `num_generations` it must be the responses of an update",
        ),
    ),
    ("max_prompt_length", "iw_opd", Read("`data.max_prompt_length`; default `max_length` minus `max_completion_length`")),
    ("max_length", "iw_opd", Read("`data.max_prompt_length`, plus `max_completion_length`")),
    ("lmbda", "iw_opd", Read("refused below 1: every response is the policy's")),
    (
        "distillation_objective",
        "",
        Read("`distillation.distillation_loss.loss_mode`: `iw_opd`; `jsd` is `forward_kl`, `jsd` or `reverse_kl`, by `beta`"),
    ),
    ("beta", "iw_opd", Read("`distillation.distillation_loss.beta`, with `distillation_objective=jsd`")),
    ("iw_opd_gamma", "", Read("`distillation.distillation_loss.iw_opd_gamma`")),
    ("iw_opd_epsilon", "", Read("`distillation.distillation_loss.iw_opd_epsilon`")),
    (
        "loss_top_k",
        "",
        Read("`distillation.distillation_loss.loss_top_k`, with `distillation_objective=jsd`; 1 is refused with `beta` above 0"),
    ),
    ("loss_add_tail", "", Read("`distillation.distillation_loss.loss_add_tail`, with `distillation_objective=jsd`")),
    ("reverse_kl_top_1_mode", "", Refused("distillation.distillation_loss.loss_support chooses the tokens")),
    (
        "use_vllm",
        "iw_opd",
        Read("the built-in engine generates; without it and with `top_p` or `top_k`, `rollout.logprobs_mode=raw_logprobs`"),
    ),
    ("vllm_sync_frequency", "", Ignored(NATIVE)),
    ("log_completions_steps", "iw_opd", Ignored("trainer.num_sample_generations limits the steps")),
    // Self-distillation.
    ("teacher_model_kind", "", Read("`distillation.teacher_model_kind`, with the same names")),
    ("teacher_update_rate", "", Key("distillation.teacher_update_rate")),
    ("teacher_sync_steps", "", Read("`distillation.teacher_sync_steps`, in steps; TRL counts updates")),
    ("teacher_prompt_template", "", Key("distillation.teacher_prompt_template")),
    (
        "distillation_mode",
        "",
        Read("`distillation.distillation_loss.loss_mode`: `sampled_token`, or a divergence on `loss_top_k` tokens"),
    ),
    (
        "distillation_alpha",
        "",
        Read("`distillation.distillation_loss.loss_mode`: `forward_kl` for 0, `reverse_kl` for 1, else `jsd` with this `beta`"),
    ),
    ("distillation_topk", "", Read("`distillation.distillation_loss.loss_top_k` and `loss_support=student`, with `topk_logits`")),
    ("distillation_add_tail", "", Read("`distillation.distillation_loss.loss_add_tail`, with `topk_logits`")),
    ("distillation_is_clip", "", Key("distillation.distillation_loss.distillation_is_clip")),
    ("num_loss_tokens_to_skip", "", Key("distillation.distillation_loss.num_loss_tokens_to_skip")),
    ("generate_from_teacher", "", Refused("every response is the policy's")),
    ("use_vllm", "sdft sdpo", Ignored(NATIVE)),
    ("diagnostics_warning_interval diagnostics_flat_tolerance", "", Ignored("`trainer doctor` names groups with equal rewards")),
    ("full_logit_distillation", "", Refused("set distillation.distillation_loss.loss_mode=jsd, with loss_top_k")),
    (
        "sync_ref_model ref_model_mixup_alpha ref_model_sync_steps",
        "sdft sdpo",
        Refused("set distillation.teacher_model_kind=ema and distillation.teacher_update_rate"),
    ),
    ("beta epsilon epsilon_high importance_sampling_level", "sdft", Ignored("SDFTTrainer has no rewards")),
    ("loss_type scale_rewards reward_weights", "sdft", Ignored("SDFTTrainer has no rewards")),
    ("top_entropy_quantile", "sdft sdpo", Refused("the teacher judges every token")),
    ("distillation_weight", "sdft", Refused("the teacher's loss is the only loss: multiply the learning rate instead")),
    // SDPO.
    (
        "distillation_weight",
        "sdpo",
        Read("`distillation.distillation_loss.distillation_loss_coef`: w/(1 − w) of the weight w; 1: `use_task_rewards=false`"),
    ),
    ("beta", "sdpo", Ignored("TRL's loss does not read it")),
    (
        "loss_type",
        "sdpo",
        Read("`actor_rollout_ref.actor.loss_agg_mode`, with `distillation_weight` below 1; see [Losses](#losses)"),
    ),
    ("use_successful_as_teacher", "", Key("distillation.sdpo.use_successful_as_teacher")),
    ("dont_reprompt_on_self_success", "", Key("distillation.sdpo.dont_reprompt_on_self_success")),
    ("success_reward_threshold", "", Key("distillation.sdpo.success_reward_threshold")),
    ("max_reprompt_len", "", Key("distillation.sdpo.max_reprompt_len")),
    ("reprompt_template", "", Key("distillation.sdpo.reprompt_template")),
    ("solution_template", "", Key("distillation.sdpo.solution_template")),
    ("feedback_template", "", Key("distillation.sdpo.feedback_template")),
    ("include_environment_feedback", "", Key("distillation.sdpo.include_environment_feedback")),
    ("environment_feedback_only_without_solution", "", Key("distillation.sdpo.environment_feedback_only_without_solution")),
    ("remove_thinking_from_demonstration", "", Key("distillation.sdpo.remove_thinking_from_demonstration")),
    ("teacher_regularization", "", Refused("set distillation.teacher_model_kind")),
    ("ema_update_rate", "", Refused("set distillation.teacher_update_rate")),
    ("sdpo_policy_loss_mode", "", Refused("set distillation.distillation_loss.use_task_rewards and its distillation_loss_coef")),
    // GOLD.
    ("use_uld_loss", "", Read("`algorithm.loss_type`: `uld`, otherwise `jsd`")),
    ("beta", "gold", Key("algorithm.beta")),
    ("temperature", "gold", Read("`algorithm.temperature`, without `use_uld_loss`; nothing is sampled")),
    (
        "teacher_tokenizer_name_or_path",
        "",
        Read("with `use_uld_loss` refused unless it is the teacher: the tokenizer is the one in `teacher.path`"),
    ),
    ("uld_token_merge_strategy", "", Read("`algorithm.uld_token_merge_strategy`, with `use_uld_loss`")),
    ("use_extended_uld", "", Read("`algorithm.use_extended_uld`, with `use_uld_loss`")),
    ("uld_use_hybrid_loss", "", Read("`algorithm.uld_use_hybrid_loss`, with `use_uld_loss`")),
    ("uld_hybrid_matched_weight", "", Read("`algorithm.uld_hybrid_matched_weight`, with `use_uld_loss`")),
    ("uld_hybrid_unmatched_weight", "", Read("`algorithm.uld_hybrid_unmatched_weight`, with `use_uld_loss`")),
    ("uld_crossentropy_weight", "", Read("`algorithm.uld_crossentropy_weight`, with `use_uld_loss`")),
    ("uld_distillation_weight", "", Read("`algorithm.uld_distillation_weight`, with `use_uld_loss`")),
    ("uld_student_temperature", "", Read("`algorithm.uld_student_temperature`, with `use_uld_loss`")),
    ("uld_teacher_temperature", "", Read("`algorithm.uld_teacher_temperature`, with `use_uld_loss`")),
    ("uld_skip_student_eos", "", Read("`algorithm.uld_skip_student_eos`, with `use_uld_loss`")),
    ("uld_skip_teacher_eos", "", Read("`algorithm.uld_skip_teacher_eos`, with `use_uld_loss`")),
    ("lmbda", "gold", Read("refused above 0: responses come from the data")),
    ("num_generations", "gold", Refused("responses come from the data: write a row several times to count it several times")),
    ("generation_batch_size steps_per_generation", "gold", Ignored(GIVEN)),
    ("top_p top_k max_completion_length use_vllm", "gold", Ignored(GIVEN)),
    ("log_completions log_completions_steps num_completions_to_print wandb_log_unique_prompts", "gold", Ignored(GIVEN)),
    ("packing", "gold", Refused("rows are distilled one by one")),
    ("packing_strategy eval_packing", "gold", Ignored("rows are distilled one by one")),
    ("callbacks", "gold", Refused("callbacks are not run")),
    ("student_model_revision", "gold", Refused("name the revision with the model: ORG/NAME@REVISION")),
    ("trl_project wandb_entity wandb_project wandb_run_group", "gold", Ignored(OF_SCRIPT)),
    ("hub_model_revision overwrite_hub_revision push_to_hub_revision", "gold", Ignored(OF_SCRIPT)),
];
