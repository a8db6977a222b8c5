//! Options of TRL's RLOO, GRPO and PPO trainers.

use crate::peers::OptionTreatment::{Ignored, Key, Read, Refused};
use crate::peers::TreatmentRow;

const NATIVE: &str = "the built-in engine generates, directly with the trained weights";
const COUNTED: &str = "TRL computes it from other options";
const NO_UPLOAD: &str = "a run never uploads";

pub(super) const ROWS: &[TreatmentRow] = &[
    // The batch.
    ("num_generations rloo_k", "", Read("`actor_rollout_ref.rollout.n`")),
    ("generation_batch_size", "", Read("`data.train_batch_size`, in prompts: divided by `num_generations`")),
    ("steps_per_generation", "", Read("`data.train_batch_size`, in micro-batches; default `gradient_accumulation_steps`")),
    ("num_iterations num_ppo_epochs", "", Read("`actor_rollout_ref.actor.ppo_epochs`")),
    ("num_mini_batches", "", Read("`data.train_batch_size`, as a multiple of `actor_rollout_ref.actor.ppo_mini_batch_size`")),
    ("total_episodes", "", Read("`trainer.total_training_steps`: divided by the responses of a step, rounded up")),
    ("world_size num_total_batches micro_batch_size local_batch_size", "", Ignored(COUNTED)),
    ("batch_size local_mini_batch_size mini_batch_size", "", Ignored(COUNTED)),
    (
        "local_rollout_forward_batch_size",
        "",
        Read("`log_prob_micro_batch_size_per_gpu` of `actor_rollout_ref.rollout` and `.ref`; does not change results"),
    ),
    // Prompts and responses.
    (
        "max_prompt_length",
        "",
        Read("`data.max_prompt_length`, `data.truncation=left`; 512 in editions without it, where longer prompts are errors"),
    ),
    ("max_completion_length response_length", "", Read("`data.max_response_length`")),
    ("shuffle_dataset", "rloo grpo", Key("data.shuffle")),
    ("chat_template_kwargs", "", Key("data.apply_chat_template_kwargs")),
    ("temperature", "", Key("actor_rollout_ref.rollout.temperature")),
    ("top_p", "", Key("actor_rollout_ref.rollout.top_p")),
    ("top_k", "", Key("actor_rollout_ref.rollout.top_k")),
    ("min_p", "", Key("actor_rollout_ref.rollout.min_p")),
    ("repetition_penalty", "", Key("actor_rollout_ref.rollout.repetition_penalty")),
    (
        "generation_kwargs",
        "",
        Read("vLLM's names: `actor_rollout_ref.rollout.*`; `max_new_tokens`: `data.max_response_length`; others are refused"),
    ),
    (
        "stop_token",
        "",
        Read("`eos` is the default here; null: `actor_rollout_ref.rollout.ignore_eos=true`, unless `missing_eos_penalty` is set"),
    ),
    ("stop_token_id", "", Read("`actor_rollout_ref.rollout.stop_token_ids`, in addition to the tokenizer's end token")),
    ("num_generations_eval", "", Read("`actor_rollout_ref.rollout.val_kwargs.n`, with an evaluation; default `num_generations`")),
    ("pad_to_multiple_of", "rloo grpo", Ignored("there is no padding")),
    ("ds3_gather_for_generation cache_implementation", "", Ignored(NATIVE)),
    ("use_vllm", "grpo", Read("the built-in engine generates; `vllm_importance_sampling_correction` takes effect")),
    ("use_vllm", "rloo", Ignored(NATIVE)),
    ("vllm_mode vllm_model_impl vllm_enable_sleep_mode", "", Ignored(NATIVE)),
    ("vllm_server_base_url vllm_server_host vllm_server_port vllm_server_timeout", "", Ignored(NATIVE)),
    ("vllm_group_port vllm_gpu_memory_utilization vllm_max_model_length vllm_tensor_parallel_size", "", Ignored(NATIVE)),
    ("vllm_device vllm_dtype vllm_enable_prefix_caching vllm_max_model_len", "", Ignored(NATIVE)),
    ("vllm_structured_outputs_regex vllm_guided_decoding_regex", "", Refused("sampling with a grammar is not supported")),
    ("use_transformers_continuous_batching transformers_continuous_batching_config use_transformers_paged", "", Ignored(NATIVE)),
    ("max_tool_calling_iterations", "", Key("actor_rollout_ref.rollout.agent.max_tool_calling_iterations")),
    // Rewards.
    (
        "reward_funcs",
        "",
        Read("`reward_model.reward_functions`: TRL's own, or `module.function` as `custom_reward_function.path`, `.name`"),
    ),
    (
        "reward_model_name_or_path",
        "",
        Read("`reward_model.enable=true reward_model.model.path=…`, the first of `reward_functions`"),
    ),
    (
        "reward_model_path",
        "",
        Read(
            "`reward_model.model.path` with `input_tokenizer=null` ([details](reward-models.md)); for PPO also `critic.model.path`",
        ),
    ),
    ("sft_model_path", "", Read("`actor_rollout_ref.model.path`")),
    ("reward_weights", "", Key("reward_model.reward_weights")),
    (
        "reward_clip_range",
        "",
        Read("`algorithm.reward_clip_range`, before the KL term; the original trainer's ± bound needs `normalize_reward`"),
    ),
    ("normalize_reward", "", Key("algorithm.normalize_reward")),
    ("whiten_rewards", "ppo", Key("algorithm.whiten_rewards")),
    ("whiten_rewards", "rloo", Ignored("TRL's RLOO trainer ignores it; here algorithm.whiten_rewards has this effect")),
    ("missing_eos_penalty", "", Key("algorithm.missing_eos_penalty")),
    ("mask_truncated_completions", "", Key("algorithm.mask_truncated_completions")),
    // Advantages.
    ("normalize_advantages normalize_advantage", "", Read("`algorithm.normalize_advantages=sequences`")),
    (
        "scale_rewards",
        "",
        Read("`algorithm.scale_rewards` of `adv_estimator=trl_grpo`; older editions: `true` is `group`, `false` is `none`"),
    ),
    ("multi_objective_aggregation", "", Read("`algorithm.adv_estimator`: `trl_grpo`, or `trl_gdpo` for `normalize_then_sum`")),
    ("gamma", "", Key("algorithm.gamma")),
    ("lam", "", Key("algorithm.lam")),
    // Losses.
    ("beta", "grpo", Read("`actor_rollout_ref.actor.use_kl_loss=true`, `kl_loss_coef`, `kl_loss_type`")),
    ("beta", "rloo", Read("`algorithm.use_kl_in_reward=true algorithm.kl_penalty=k1`, `algorithm.kl_ctrl.kl_coef`")),
    ("kl_coef", "", Read("`algorithm.use_kl_in_reward=true`, `algorithm.kl_ctrl.kl_coef`")),
    ("kl_estimator", "", Read("`algorithm.kl_penalty`: `k1`, `k3`")),
    (
        "use_bias_correction_kl",
        "",
        Read("`kl_loss_type=k3+`, else `k3`; with several updates per batch `k3` and `use_bias_correction_kl=true`"),
    ),
    ("epsilon cliprange", "", Read("`actor_rollout_ref.actor.clip_ratio`")),
    ("epsilon_high", "", Read("`actor_rollout_ref.actor.clip_ratio_high`; minus 1 for `cispo`")),
    ("delta", "", Key("@actor.policy_loss.delta")),
    ("loss_type", "grpo", Read("`actor_rollout_ref.actor.policy_loss.loss_mode` and `loss_agg_mode`, see [Losses](#losses)")),
    ("importance_sampling_level", "", Read("`sequence`: `policy_loss.loss_mode=gspo`")),
    ("sapo_temperature_pos", "", Read("`actor_rollout_ref.actor.tau_pos`, with `loss_type=sapo`")),
    ("sapo_temperature_neg", "", Read("`actor_rollout_ref.actor.tau_neg`, with `loss_type=sapo`")),
    ("vespo_k_pos", "", Read("`policy_loss.vespo_k_pos`, with `loss_type=vespo`")),
    ("vespo_lambda_pos", "", Read("`policy_loss.vespo_lambda_pos`, with `loss_type=vespo`")),
    ("vespo_k_neg", "", Read("`policy_loss.vespo_k_neg`, with `loss_type=vespo`")),
    ("vespo_lambda_neg", "", Read("`policy_loss.vespo_lambda_neg`, with `loss_type=vespo`")),
    ("top_entropy_quantile", "", Key("@actor.policy_loss.top_entropy_quantile")),
    ("entropy_coef", "", Key("@actor.entropy_coeff")),
    ("use_adaptive_entropy", "", Key("@actor.use_adaptive_entropy")),
    ("entropy_coef_min", "", Key("@actor.entropy_coef_min")),
    ("entropy_coef_max", "", Key("@actor.entropy_coef_max")),
    ("entropy_coef_delta", "", Key("@actor.entropy_coef_delta")),
    ("entropy_target", "", Key("@actor.entropy_target")),
    ("off_policy_mask_threshold", "", Key("@actor.policy_loss.off_policy_mask_threshold")),
    ("cast_lm_head_to_fp32", "", Ignored("the head is always float32")),
    ("use_liger_loss", "", Ignored("the head always works in chunks of tokens")),
    ("token_level_kl", "", Ignored("it has no effect in TRL")),
    ("vf_coef", "", Ignored("the critic has its own optimizer, AdamW, and a factor of the loss cancels in it")),
    ("cliprange_value", "", Key("critic.cliprange_value")),
    ("model_adapter_name ref_adapter_name", "", Refused("the reference is the policy without its adapter")),
    (
        "vllm_importance_sampling_correction",
        "",
        Read("`algorithm.rollout_correction` with `--use_vllm`, see [the table](from-openrlhf.md#rollout-correction)"),
    ),
    (
        "vllm_importance_sampling_mode",
        "",
        Read("`rollout_correction.rollout_is`: `token` or `sequence`, with bounds that truncate or reject"),
    ),
    ("vllm_importance_sampling_clip_max vllm_importance_sampling_cap", "", Read("`rollout_correction.rollout_is_threshold`")),
    (
        "vllm_importance_sampling_clip_min",
        "",
        Read("`rollout_correction.rollout_is_threshold_lower`, or the lower bound of `rollout_is_threshold`"),
    ),
    // The reference.
    ("sync_ref_model", "", Key("actor_rollout_ref.ref.sync_ref_model")),
    ("ref_model_mixup_alpha", "", Key("actor_rollout_ref.ref.ref_model_mixup_alpha")),
    ("ref_model_sync_steps", "", Read("`actor_rollout_ref.ref.ref_model_sync_steps`, in steps; TRL counts updates")),
    // What is shown.
    ("log_completions", "", Read("`trainer.log_completions`; `trainer.num_sample_generations` limits the steps")),
    ("num_completions_to_print", "", Read("`trainer.log_completions=N`, with `--log_completions`")),
    ("num_sample_generations", "", Key("trainer.num_sample_generations")),
    ("log_unique_prompts wandb_log_unique_prompts", "", Ignored("samples are printed without a filter")),
    ("log_multimodal", "", Ignored("prompts are text only")),
    ("log_completions_hub_repo", "", Ignored(NO_UPLOAD)),
];
