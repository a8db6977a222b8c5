//! Options of TRL's RLOO, GRPO and PPO trainers.

use crate::peers::OptionTreatment::{Ignored, Key, Read, Refused};
use crate::peers::TreatmentRow;

const NATIVE: &str = "the native engine generates, with the trained weights themselves";
const COUNTED: &str = "the trainer computes it from the other options";
const NO_UPLOAD: &str = "a run uploads nothing";

pub const ROWS: &[TreatmentRow] = &[
    // The batch.
    ("num_generations rloo_k", "", Read("`actor_rollout_ref.rollout.n`")),
    ("generation_batch_size", "", Read("over `num_generations`: `data.train_batch_size`, in prompts")),
    (
        "steps_per_generation",
        "",
        Read(
            "`data.train_batch_size` as a multiple of the prompts of a micro-batch; its default is `gradient_accumulation_steps`",
        ),
    ),
    ("num_iterations num_ppo_epochs", "", Read("`actor_rollout_ref.actor.ppo_epochs`")),
    (
        "num_mini_batches",
        "",
        Read("`data.train_batch_size` as a multiple of `actor_rollout_ref.actor.ppo_mini_batch_size`, in prompts"),
    ),
    ("total_episodes", "", Read("`trainer.total_training_steps`: over the responses of a step, rounded up")),
    (
        "world_size num_total_batches micro_batch_size local_batch_size batch_size local_mini_batch_size mini_batch_size",
        "",
        Ignored(COUNTED),
    ),
    (
        "local_rollout_forward_batch_size",
        "",
        Read("`log_prob_micro_batch_size_per_gpu` of `actor_rollout_ref.rollout` and `.ref`; changes no result"),
    ),
    // Prompts and responses.
    (
        "max_prompt_length",
        "",
        Read(
            "`data.max_prompt_length` with `data.truncation=left`: the end of a longer prompt is kept. Editions without it have no limit: 512, and a longer prompt is an error",
        ),
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
        Read(
            "in it `temperature`, `top_p`, `top_k`, `min_p`, `repetition_penalty`, `presence_penalty`, `frequency_penalty`, `logit_bias`, `bad_words`, `allowed_token_ids`, `min_tokens`, `stop`, `stop_token_ids`, `ignore_eos` as `actor_rollout_ref.rollout.*`, `min_new_tokens` as its `min_tokens`, `max_new_tokens` as `data.max_response_length`; others are refused by name",
        ),
    ),
    (
        "stop_token",
        "",
        Read(
            "`eos` is what always happens; without a stop token the original trainers go on after the end token: `actor_rollout_ref.rollout.ignore_eos=true`, unless `missing_eos_penalty` is set",
        ),
    ),
    ("stop_token_id", "", Read("`actor_rollout_ref.rollout.stop_token_ids`, a list, beside the tokenizer's own")),
    (
        "num_generations_eval",
        "",
        Read("`actor_rollout_ref.rollout.val_kwargs.n`, where there is an evaluation; the default is `num_generations`"),
    ),
    ("pad_to_multiple_of", "rloo grpo", Ignored("nothing is padded")),
    ("ds3_gather_for_generation cache_implementation", "", Ignored(NATIVE)),
    ("use_vllm", "grpo", Read("the native engine generates; brings `vllm_importance_sampling_correction` into effect")),
    ("use_vllm", "rloo", Ignored(NATIVE)),
    (
        "vllm_mode vllm_model_impl vllm_enable_sleep_mode vllm_server_base_url vllm_server_host vllm_server_port",
        "",
        Ignored(NATIVE),
    ),
    (
        "vllm_server_timeout vllm_group_port vllm_gpu_memory_utilization vllm_max_model_length vllm_tensor_parallel_size",
        "",
        Ignored(NATIVE),
    ),
    ("vllm_structured_outputs_regex vllm_guided_decoding_regex", "", Refused("responses are sampled without a grammar")),
    ("use_transformers_continuous_batching transformers_continuous_batching_config use_transformers_paged", "", Ignored(NATIVE)),
    ("max_tool_calling_iterations", "", Key("actor_rollout_ref.rollout.agent.max_tool_calling_iterations")),
    // Rewards.
    (
        "reward_funcs",
        "",
        Read(
            "`reward_model.reward_functions`: `accuracy_reward`, `reasoning_accuracy_reward`, `think_format_reward`, `get_soft_overlong_punishment`, and `module.function`, which is `custom_reward_function.path` and `.name`",
        ),
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
            "`reward_model.enable=true reward_model.model.path=…` with `input_tokenizer=null`: the reward model reads query and response as they are ([reward-models.md](reward-models.md)); for PPO `critic.model.path` too",
        ),
    ),
    ("sft_model_path", "", Read("`actor_rollout_ref.model.path`")),
    ("reward_weights", "", Key("reward_model.reward_weights")),
    (
        "reward_clip_range",
        "",
        Read(
            "`algorithm.reward_clip_range`, before any KL term; a single number of the original trainer is ±, and acts with `normalize_reward` alone",
        ),
    ),
    ("normalize_reward", "", Key("algorithm.normalize_reward")),
    ("whiten_rewards", "ppo", Key("algorithm.whiten_rewards")),
    ("whiten_rewards", "rloo", Ignored("TRL's own RLOO trainer reads it nowhere; algorithm.whiten_rewards does it")),
    ("missing_eos_penalty", "", Key("algorithm.missing_eos_penalty")),
    ("mask_truncated_completions", "", Key("algorithm.mask_truncated_completions")),
    // Advantages.
    ("normalize_advantages normalize_advantage", "", Read("`algorithm.normalize_advantages=sequences`")),
    (
        "scale_rewards",
        "",
        Read(
            "`algorithm.scale_rewards` of `algorithm.adv_estimator=trl_grpo`; `true` and `false` of older editions are `group` and `none`",
        ),
    ),
    ("multi_objective_aggregation", "", Read("`algorithm.adv_estimator`: `trl_grpo`, `trl_gdpo` for `normalize_then_sum`")),
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
        Read(
            "`kl_loss_type=k3+`, whose gradient is that of TRL's corrected term where the ratio is 1, as it is with one update per batch; without it `k3`",
        ),
    ),
    ("epsilon cliprange", "", Read("`actor_rollout_ref.actor.clip_ratio`")),
    ("epsilon_high", "", Read("`actor_rollout_ref.actor.clip_ratio_high`; for `cispo` less 1")),
    ("delta", "", Key("@actor.policy_loss.delta")),
    ("loss_type", "grpo", Read("`actor_rollout_ref.actor.policy_loss.loss_mode` and `loss_agg_mode`, see [Losses](#losses)")),
    ("importance_sampling_level", "", Read("`sequence` is `policy_loss.loss_mode=gspo`")),
    ("sapo_temperature_pos", "", Read("`actor_rollout_ref.actor.tau_pos`, with `loss_type=sapo`")),
    ("sapo_temperature_neg", "", Read("`actor_rollout_ref.actor.tau_neg`, with `loss_type=sapo`")),
    ("vespo_k_pos", "", Read("`policy_loss.vespo_k_pos`, with `loss_type=vespo`")),
    ("vespo_lambda_pos", "", Read("`policy_loss.vespo_lambda_pos`, with `loss_type=vespo`")),
    ("vespo_k_neg", "", Read("`policy_loss.vespo_k_neg`, with `loss_type=vespo`")),
    ("vespo_lambda_neg", "", Read("`policy_loss.vespo_lambda_neg`, with `loss_type=vespo`")),
    ("top_entropy_quantile", "", Key("@actor.policy_loss.top_entropy_quantile")),
    ("entropy_coef", "", Key("@actor.entropy_coeff")),
    ("use_adaptive_entropy", "", Refused("the weight of the entropy bonus is constant: entropy_coef")),
    ("entropy_coef_min entropy_coef_max entropy_coef_delta entropy_target", "", Ignored("they belong to use_adaptive_entropy")),
    (
        "off_policy_mask_threshold",
        "",
        Refused("there is no such mask; algorithm.rollout_correction rejects sequences by their ratio"),
    ),
    ("cast_lm_head_to_fp32", "", Ignored("the head is float32")),
    ("use_liger_loss", "", Ignored("there is no torch: the head always works in chunks of tokens")),
    ("token_level_kl", "", Ignored("it changes no number in TRL")),
    ("vf_coef", "", Ignored("the critic has an optimizer of its own, AdamW, in which a factor of the loss cancels")),
    ("cliprange_value", "", Key("critic.cliprange_value")),
    (
        "model_adapter_name ref_adapter_name",
        "",
        Refused("the adapter is that of the policy; the reference is the policy without it"),
    ),
    (
        "vllm_importance_sampling_correction",
        "",
        Read("`algorithm.rollout_correction` with `--use_vllm`, see [the table](from-openrlhf.md#rollout-correction)"),
    ),
    ("vllm_importance_sampling_mode", "", Read("`rollout_is` of it: `token` or `sequence`, bounds that cut or reject")),
    ("vllm_importance_sampling_clip_max vllm_importance_sampling_cap", "", Read("`rollout_is_threshold` of it")),
    (
        "vllm_importance_sampling_clip_min",
        "",
        Read("`rollout_is_threshold_lower` of it, or the lower bound of `rollout_is_threshold`"),
    ),
    // The reference.
    ("sync_ref_model", "", Key("actor_rollout_ref.ref.sync_ref_model")),
    ("ref_model_mixup_alpha", "", Key("actor_rollout_ref.ref.ref_model_mixup_alpha")),
    (
        "ref_model_sync_steps",
        "",
        Read("`actor_rollout_ref.ref.ref_model_sync_steps`: steps of training, where TRL counts updates"),
    ),
    // What is shown.
    ("log_completions", "", Read("`trainer.log_completions`; at how many steps: `trainer.num_sample_generations`")),
    ("num_completions_to_print", "", Read("`trainer.log_completions=N`, with `--log_completions`")),
    ("num_sample_generations", "", Key("trainer.num_sample_generations")),
    ("log_unique_prompts wandb_log_unique_prompts", "", Ignored("samples are shown as they come")),
    ("log_multimodal", "", Ignored("prompts are text")),
    ("log_completions_hub_repo", "", Ignored(NO_UPLOAD)),
];
