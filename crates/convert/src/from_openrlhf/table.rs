//! Options of OpenRLHF about models, data and losses, in today's and earlier spellings.

use crate::peers::OptionTreatment::{Ignored, Key, Read, Refused};
use crate::peers::TreatmentRow;

const MUON: &str = "Muon always uses 5 iterations and Nesterov momentum, as in DeepSpeed";
const ROUTER_LOSS: &str = "the model's config.json decides: set output_router_logits to true and router_aux_loss_coef there";
const PRETRAIN: &str = "a loss on a second data set is not supported";

pub(super) const ROWS: &[TreatmentRow] = &[
    // The batch.
    ("rollout.batch_size rollout_batch_size", "", Key("data.train_batch_size")),
    ("rollout.n_samples_per_prompt n_samples_per_prompt", "", Key("actor_rollout_ref.rollout.n")),
    ("rollout.vllm_generate_batch_size vllm_generate_batch_size", "", Read("`data.gen_batch_size`, with dynamic sampling")),
    (
        "train.batch_size train_batch_size",
        "",
        Read("`actor_rollout_ref.actor.ppo_mini_batch_size`, in prompts, not responses; in SFT `data.train_batch_size`"),
    ),
    (
        "train.micro_batch_size micro_train_batch_size",
        "",
        Read("`actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu`, in SFT `data.micro_batch_size_per_gpu`"),
    ),
    (
        "rollout.micro_batch_size micro_rollout_batch_size",
        "",
        Read("`log_prob_micro_batch_size_per_gpu` of `actor_rollout_ref.rollout` and `.ref`; does not change results"),
    ),
    ("train.dynamic_batch_enable use_dynamic_batch", "", Key("@actor.use_dynamic_bsz")),
    (
        "train.max_tokens_per_gpu train_max_tokens_per_gpu",
        "",
        Read("`actor_rollout_ref.actor.ppo_max_token_len_per_gpu`, at least one sequence; does not change results"),
    ),
    (
        "rollout.max_tokens_per_gpu rollout_max_tokens_per_gpu",
        "",
        Read("`log_prob_max_token_len_per_gpu` of `actor_rollout_ref.rollout` and `.ref`; does not change results"),
    ),
    ("train.max_epochs max_epochs", "", Read("`actor_rollout_ref.actor.ppo_epochs`, in SFT `trainer.total_epochs`")),
    ("train.num_episodes num_episodes", "", Key("trainer.total_epochs")),
    // Lengths and sampling.
    ("max_len", "train_ppo", Ignored("prompt_max_len and generate_max_len set the lengths")),
    ("eval_steps", "train_ppo", Ignored("this program does not validate")),
    ("prompt_max_len", "", Read("`data.max_prompt_length`, with `data.truncation=left`")),
    ("generate_max_len", "", Read("`data.max_response_length`")),
    (
        "data.max_len max_len",
        "",
        Read("minus `max_new_tokens`: `data.max_prompt_length`; alone: `rollout.max_model_len`; in SFT: `data.max_length`"),
    ),
    ("rollout.max_new_tokens max_new_tokens", "", Read("`data.max_response_length`")),
    ("rollout.temperature temperature", "", Key("actor_rollout_ref.rollout.temperature")),
    ("rollout.top_p top_p", "", Key("actor_rollout_ref.rollout.top_p")),
    // Models.
    (
        "actor.model_name_or_path model.model_name_or_path pretrain",
        "",
        Read("`actor_rollout_ref.model.path`, in SFT `model.path`: a folder, or a name on the Hub"),
    ),
    (
        "critic.model_name_or_path critic_pretrain",
        "",
        Read("`critic.model.path`; default: the reward model, or the policy with a remote reward"),
    ),
    (
        "reward.model_name_or_path reward_pretrain",
        "",
        Read("`reward_model.model.path`, a sequence classifier, with `input_tokenizer=null` ([details](reward-models.md))"),
    ),
    (
        "reward.remote_url remote_rm_url",
        "",
        Read("URLs: `reward_model.remote_url` ([details](remote-rewards.md)); a Python file: `custom_reward_function.path`"),
    ),
    (
        "actor.gradient_checkpointing_enable model.gradient_checkpointing_enable gradient_checkpointing",
        "",
        Key("@model.enable_gradient_checkpointing"),
    ),
    (
        "ds.param_dtype param_dtype bf16",
        "",
        Read("`dtype` of the model: `auto` for bf16; `float32` without `--bf16` in releases that have it; fp16 is refused"),
    ),
    ("ds.lora.rank lora_rank", "", Key("@model.lora_rank")),
    ("ds.lora.alpha lora_alpha", "", Key("@model.lora_alpha")),
    ("ds.lora.target_modules target_modules", "", Read("`target_modules` of the model")),
    ("ds.lora.dropout lora_dropout", "", Refused("dropout is not implemented")),
    ("ds.load_in_4bit load_in_4bit", "", Read("`load_in_4bit` and `bnb_4bit_use_double_quant` of the model, with LoRA")),
    ("actor.aux_loss_coef model.aux_loss_coef aux_loss_coef", "", Refused(ROUTER_LOSS)),
    // Data.
    (
        "data.prompt_dataset prompt_data data.dataset dataset",
        "",
        Read("`data.train_files`: the files of the split in local folders, or names on the Hub"),
    ),
    ("data.prompt_probs prompt_data_probs", "", Refused("an epoch reads every row of all files once")),
    (
        "data.dataset_probs dataset_probs",
        "",
        Read("`data.train_weights`, with one file per data set; the length of an epoch does not change"),
    ),
    ("data.prompt_split prompt_split data.dataset_split dataset_split train_split", "", Read("the split of `data.train_files`")),
    ("eval.split eval_split", "", Read("the split of `data.val_files`")),
    ("eval.dataset eval_dataset", "", Read("`data.val_files`")),
    (
        "eval.steps eval_steps",
        "",
        Read("`trainer.test_freq`, with an evaluation; −1 is `after_each_epoch` outside reinforcement learning"),
    ),
    ("eval.temperature eval_temperature", "", Read("`actor_rollout_ref.rollout.val_kwargs.temperature`, with an evaluation")),
    (
        "eval.n_samples_per_prompt eval_n_samples_per_prompt",
        "",
        Read("`actor_rollout_ref.rollout.val_kwargs.n`, with an evaluation"),
    ),
    ("data.max_samples max_samples", "", Read("`data.train_max_samples`, if given or below a million")),
    ("data.input_key input_key", "", Key("data.prompt_key")),
    (
        "data.output_key output_key",
        "",
        Read("`data.response_key` with a template, else `data.completion_key`; if not given, `data.messages_key`"),
    ),
    ("data.label_key label_key", "", Read("`data.label_key`; not given: `''`, rows without answers")),
    (
        "data.multiturn multiturn",
        "",
        Read("`data.messages_key` with `data.assistant_mask=prefix`; every assistant turn is trained on, even without it"),
    ),
    (
        "data.apply_chat_template apply_chat_template",
        "train_ppo_ray train_ppo",
        Read("`data.apply_chat_template`: a text becomes one user message; lists of messages always use the template"),
    ),
    (
        "data.apply_chat_template apply_chat_template",
        "train_dpo train_rm train_kto train_prm",
        Ignored("lists of messages always go through the chat template; a text is read verbatim"),
    ),
    (
        "data.apply_chat_template apply_chat_template",
        "",
        Read("the chat template applies to lists of messages alone; a difference in the recipe"),
    ),
    (
        "data.input_template input_template",
        "train_sft train_kd",
        Read("`model.custom_chat_template` with the same text; ignored with `apply_chat_template`"),
    ),
    (
        "data.input_template input_template",
        "train_ppo_ray train_ppo",
        Read("`data.input_template`; ignored with `apply_chat_template`"),
    ),
    (
        "data.input_template input_template",
        "",
        Read("refused: apply it to the prompts in the data; ignored with `apply_chat_template`"),
    ),
    ("data.tokenizer_chat_template tokenizer_chat_template", "", Key("model.custom_chat_template")),
    ("data.image_key image_key", "", Ignored("prompts are text only")),
    ("data.max_images_per_prompt max_images_per_prompt", "", Refused("prompts are text only")),
    ("actor.freeze_visual_encoder freeze_visual_encoder", "", Ignored("prompts are text only")),
    ("model.pretrain_mode_enable pretrain_mode", "", Read("`data.text_key`: the whole text of the input column is trained on")),
    ("pretrain_data", "", Refused(PRETRAIN)),
    ("pretrain_data_probs pretrain_split ptx_coef", "", Ignored(PRETRAIN)),
    // Losses.
    (
        "actor.policy_loss_type policy_loss_type",
        "",
        Read("`actor_rollout_ref.actor.policy_loss.loss_mode`: `vanilla` for `ppo`, `gspo`"),
    ),
    (
        "actor.loss_agg_mode",
        "",
        Read("`actor_rollout_ref.actor.loss_agg_mode`; default `token-mean`; `seq-mean-token-mean` for `gspo` and before 0.7.0"),
    ),
    ("actor.eps_clip eps_clip", "", Key("@actor.clip_ratio")),
    ("actor.eps_clip_low_high eps_clip_low_high", "", Read("`actor_rollout_ref.actor.clip_ratio_low`, `clip_ratio_high`")),
    ("actor.dual_clip dual_clip", "", Read("`actor_rollout_ref.actor.clip_ratio_c`; default 1e9")),
    ("actor.entropy_coef entropy_loss_coef", "", Key("@actor.entropy_coeff")),
    ("critic.value_clip value_clip", "", Key("critic.cliprange_value")),
    (
        "algo.kl.init_coef init_kl_coef",
        "",
        Read("`algorithm.use_kl_in_reward=true algorithm.kl_ctrl.kl_coef=…`, or `kl_loss_coef` with `algo.kl.use_loss`"),
    ),
    ("algo.kl.target kl_target", "", Read("`algorithm.kl_ctrl.type=adaptive`, `algorithm.kl_ctrl.target_kl`")),
    ("algo.kl.horizon kl_horizon", "", Key("algorithm.kl_ctrl.horizon")),
    (
        "algo.kl.estimator kl_estimator use_kl_estimator_k3",
        "",
        Read("`algorithm.kl_penalty` or `kl_loss_type`: `k1`, `k2`, `k3`"),
    ),
    (
        "algo.kl.use_loss use_kl_loss",
        "",
        Read("`actor_rollout_ref.actor.use_kl_loss=true`, `kl_loss_coef`, `kl_loss_type`, instead of a KL term in the reward"),
    ),
    ("algo.kl.unbiased_gradient", "", Read("`kl_loss_type` with `+`: the divergence's gradient; `use_bias_correction_kl=true`")),
    (
        "algo.advantage.is_correction_enable enable_vllm_is_correction",
        "",
        Read("`algorithm.rollout_correction`, see [Rollout correction](#rollout-correction)"),
    ),
    ("use_icepop", "", Read("the correction masks tokens, as with `vllm_is_correction_type=icepop`")),
    ("algo.advantage.is_correction_type vllm_is_correction_type", "", Read("`rollout_correction.rollout_is` and `rollout_rs`")),
    (
        "algo.advantage.is_correction_level",
        "",
        Read("`off`; `token` is `tis` with `clip`, `icepop` with `mask`; `seq` is `seq-mask-tis`"),
    ),
    ("algo.advantage.is_correction_mode", "", Read("see `is_correction_level`")),
    (
        "algo.advantage.is_correction_gating",
        "",
        Read("`ratio`, or `rollout_correction.rollout_rs`: `token` or `seq_mean`, then `_binary_kl` or `_tv`"),
    ),
    (
        "algo.advantage.is_correction_threshold vllm_is_truncated_threshold",
        "",
        Read("the bounds of `algorithm.rollout_correction`"),
    ),
    // Advantages and rewards.
    (
        "algo.advantage.estimator advantage_estimator",
        "",
        Read("`algorithm.adv_estimator`, see [Estimators](#estimators); early releases also whiten the advantages of `rloo`"),
    ),
    ("algo.advantage.gamma gamma", "", Key("algorithm.gamma")),
    ("algo.advantage.lambd lambd", "", Key("algorithm.lam")),
    ("algo.advantage.no_std_norm no_advantage_std_norm", "", Refused("whitening always divides by the standard deviation")),
    (
        "reward.normalize_enable normalize_reward",
        "",
        Refused("statistics stored in a reward model are not supported; see algorithm.normalize_reward"),
    ),
    (
        "reward.clip_range reward_clip_range",
        "",
        Read("`algorithm.baselined_clip_range`, or with `gae` `algorithm.reward_clip_range`"),
    ),
    (
        "reward.overlong_buffer_len overlong_buffer_len",
        "",
        Read("`reward_model.reward_manager=dapo`; `reward_model.reward_kwargs.overlong_buffer_cfg`: `enable`, `len`"),
    ),
    ("reward.overlong_penalty_factor overlong_penalty_factor", "", Read("`penalty_factor` of `overlong_buffer_cfg`")),
    ("reward.stop_properly_penalty_coef stop_properly_penalty_coef", "", Key("algorithm.stop_properly_penalty_coef")),
    (
        "algo.dynamic_filtering_enable dynamic_filtering",
        "",
        Read("`algorithm.filter_groups.enable=true algorithm.filter_groups.metric=seq_reward`"),
    ),
    ("algo.dynamic_filtering_range dynamic_filtering_reward_range", "", Read("`algorithm.filter_groups.mean_range=[LOW,HIGH]`")),
    (
        "critic.freezing_steps freezing_actor_steps",
        "",
        Read("`trainer.critic_warmup=N+1`, the first step that trains the policy"),
    ),
    // The optimizer.
    ("actor.adam.lr actor_learning_rate", "", Key("@optim.lr")),
    ("adam.lr learning_rate", "", Key("optim.lr")),
    ("critic.adam.lr critic_learning_rate", "", Key("critic.optim.lr")),
    (
        "actor.adam.betas critic.adam.betas adam.betas adam_betas",
        "",
        Read("`betas` of `actor_rollout_ref.actor.optim` and `critic.optim`, in SFT of `optim`"),
    ),
    ("actor.adam.eps critic.adam.eps adam.eps", "", Read("`eps` next to `betas`")),
    ("actor.adam.weight_decay critic.adam.weight_decay adam.weight_decay l2", "", Read("`weight_decay` next to `betas`")),
    (
        "actor.max_norm critic.max_norm max_norm",
        "",
        Read("`actor_rollout_ref.actor.grad_clip`, `critic.grad_clip`, in SFT `optim.clip_grad`"),
    ),
    (
        "actor.lr_scheduler critic.lr_scheduler lr_scheduler",
        "",
        Read("`lr_scheduler_type` next to `betas`, see [Schedules](#schedules); `reduce_lr_on_plateau`, `greedy` are refused"),
    ),
    ("actor.lr_warmup_ratio critic.lr_warmup_ratio lr_warmup_ratio", "", Read("`lr_warmup_steps_ratio` next to `betas`")),
    (
        "actor.min_lr_ratio critic.min_lr_ratio min_lr_ratio",
        "",
        Read("`min_lr_ratio` next to `betas`; 0.1 in editions without it"),
    ),
    ("actor.optim critic.optim optim", "", Read("`optimizer` next to `betas`: `adam` is AdamW, `muon` is Muon")),
    (
        "actor.muon.lr critic.muon.lr muon.lr",
        "",
        Read("with Muon: `lr` next to `betas`; Adam's rate becomes `override_optimizer_config.adamw_lr`"),
    ),
    ("actor.muon.momentum critic.muon.momentum muon.momentum", "", Read("`override_optimizer_config.momentum` next to `betas`")),
    ("actor.muon.ns_steps actor.muon.nesterov actor.muon.no_nesterov", "", Ignored(MUON)),
    ("critic.muon.ns_steps critic.muon.nesterov critic.muon.no_nesterov", "", Ignored(MUON)),
    ("muon.ns_steps muon.nesterov muon.no_nesterov", "", Ignored(MUON)),
    // Averages, agents, overlap.
    ("train.enable_ema enable_ema", "", Refused("an average of the weights (EMA) is not supported")),
    ("train.ema_beta ema_beta", "", Ignored("an option of the average of the weights")),
    (
        "train.agent_func_path agent_func_path",
        "",
        Read("`rollout.agent.agent_func_path`, `rollout.agent.default_agent_loop=text_environment_agent`; the only reward"),
    ),
    (
        "train.async_enable async_train train.async_queue_size async_queue_size",
        "",
        Ignored("generation and training take turns, with the newest weights"),
    ),
    ("train.partial_rollout_enable partial_rollout", "", Ignored("generation and training take turns, with the newest weights")),
];
