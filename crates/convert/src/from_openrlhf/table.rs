//! Options of OpenRLHF that decide what is trained, in today's spelling and in those before.

use crate::peers::OptionTreatment::{Ignored, Key, Read, Refused};
use crate::peers::TreatmentRow;

const MUON: &str = "DeepSpeed's Muon takes 5 iterations and Nesterov's step whatever this says, and so does Muon here";
const NO_MOE: &str = "there are no mixture-of-experts models";
const PRETRAIN: &str = "there is no loss on a second data set";

pub const ROWS: &[TreatmentRow] = &[
    // The batch.
    ("rollout.batch_size rollout_batch_size", "", Key("data.train_batch_size")),
    ("rollout.n_samples_per_prompt n_samples_per_prompt", "", Key("actor_rollout_ref.rollout.n")),
    ("rollout.vllm_generate_batch_size vllm_generate_batch_size", "", Read("`data.gen_batch_size`, with dynamic sampling")),
    (
        "train.batch_size train_batch_size",
        "",
        Read("in responses; `actor_rollout_ref.actor.ppo_mini_batch_size` in prompts; in SFT `data.train_batch_size`"),
    ),
    (
        "train.micro_batch_size micro_train_batch_size",
        "",
        Read("`actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu`, in SFT `data.micro_batch_size_per_gpu`; changes no result"),
    ),
    (
        "rollout.micro_batch_size micro_rollout_batch_size",
        "",
        Read("`log_prob_micro_batch_size_per_gpu` of `actor_rollout_ref.rollout` and `.ref`; changes no result"),
    ),
    ("train.dynamic_batch_enable use_dynamic_batch", "", Key("@actor.use_dynamic_bsz")),
    (
        "train.max_tokens_per_gpu train_max_tokens_per_gpu",
        "",
        Read("`actor_rollout_ref.actor.ppo_max_token_len_per_gpu`, at least one whole response; changes no result"),
    ),
    (
        "rollout.max_tokens_per_gpu rollout_max_tokens_per_gpu",
        "",
        Read("`log_prob_max_token_len_per_gpu` of `actor_rollout_ref.rollout` and `.ref`, likewise"),
    ),
    ("train.max_epochs max_epochs", "", Read("`actor_rollout_ref.actor.ppo_epochs`, in SFT `trainer.total_epochs`")),
    ("train.num_episodes num_episodes", "", Key("trainer.total_epochs")),
    // Lengths and sampling.
    ("max_len", "train_ppo", Ignored("prompt_max_len and generate_max_len are the lengths")),
    ("eval_steps", "train_ppo", Ignored("this program validates nothing")),
    ("prompt_max_len", "", Read("`data.max_prompt_length`, with `data.truncation=left`")),
    ("generate_max_len", "", Read("`data.max_response_length`")),
    (
        "data.max_len max_len",
        "",
        Read(
            "prompt and response together: `data.max_prompt_length` is what `max_new_tokens` leaves; without that `actor_rollout_ref.rollout.max_model_len`; in SFT `data.max_length` with `data.truncation=right`",
        ),
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
        Read("`critic.model.path`; without it the reward model's, with a remote reward the policy's"),
    ),
    (
        "reward.model_name_or_path reward_pretrain",
        "",
        Read(
            "`reward_model.enable=true reward_model.model.path=FOLDER`, a sequence classifier, with `input_tokenizer=null` ([reward-models.md](reward-models.md))",
        ),
    ),
    (
        "reward.remote_url remote_rm_url",
        "",
        Read(
            "URLs: `reward_model.remote_url`, one or several ([remote-rewards.md](remote-rewards.md)); a server that fails is an error, not a missing reward. A Python file: `custom_reward_function.path=FILE custom_reward_function.name=reward_func`",
        ),
    ),
    (
        "actor.gradient_checkpointing_enable model.gradient_checkpointing_enable gradient_checkpointing",
        "",
        Key("@model.enable_gradient_checkpointing"),
    ),
    (
        "ds.param_dtype param_dtype bf16",
        "",
        Read(
            "`dtype` of the model: `auto` for bf16, which is bfloat16 on a GPU that computes in it; 0.5.3 without `--bf16` is `float32`; fp16 is refused",
        ),
    ),
    ("ds.lora.rank lora_rank", "", Key("@model.lora_rank")),
    ("ds.lora.alpha lora_alpha", "", Key("@model.lora_alpha")),
    ("ds.lora.target_modules target_modules", "", Read("`target_modules` of the model")),
    (
        "ds.lora.dropout lora_dropout",
        "train_ppo_ray train_ppo",
        Refused("dropout is not applied: the policy that samples is the one that is trained"),
    ),
    ("ds.lora.dropout lora_dropout", "", Refused("there is no dropout: the loss is that of the model as it will be used")),
    ("ds.load_in_4bit load_in_4bit", "", Refused("there are no quantised weights")),
    ("actor.aux_loss_coef model.aux_loss_coef aux_loss_coef", "", Refused(NO_MOE)),
    // Data.
    (
        "data.prompt_dataset prompt_data data.dataset dataset",
        "",
        Read("`data.train_files`: the files of that split, where the name is a local folder or file, one or several"),
    ),
    ("data.prompt_probs prompt_data_probs", "", Refused("rows of several files are read together, each once in an epoch")),
    (
        "data.dataset_probs dataset_probs",
        "",
        Read("`data.train_weights`, where each set is one file; an epoch has as many rows as the files have together"),
    ),
    (
        "data.prompt_split prompt_split data.dataset_split dataset_split train_split",
        "",
        Read("which files of a folder are `data.train_files`"),
    ),
    ("eval.split eval_split", "", Read("which files of a folder are `data.val_files`")),
    ("eval.dataset eval_dataset", "", Read("`data.val_files`")),
    (
        "eval.steps eval_steps",
        "",
        Read("`trainer.test_freq`, where there is an evaluation; outside reinforcement learning −1 is `after_each_epoch`"),
    ),
    (
        "eval.temperature eval_temperature",
        "",
        Read("`actor_rollout_ref.rollout.val_kwargs.temperature`, where there is an evaluation"),
    ),
    (
        "eval.n_samples_per_prompt eval_n_samples_per_prompt",
        "",
        Read("`actor_rollout_ref.rollout.val_kwargs.n`, where there is an evaluation"),
    ),
    ("data.max_samples max_samples", "", Read("`data.train_max_samples`, where it is given or less than a million")),
    ("data.input_key input_key", "", Key("data.prompt_key")),
    (
        "data.output_key output_key",
        "",
        Read(
            "`data.response_key`, behind a prompt in a template; `data.completion_key` where there is no template; without it a whole conversation is `data.messages_key`",
        ),
    ),
    ("data.label_key label_key", "", Read("the field `ground_truth` of the column `reward_model`, which the rows must have")),
    (
        "data.multiturn multiturn",
        "",
        Read(
            "`data.messages_key` with `data.assistant_mask=prefix`: every turn of the assistant is trained on; without it OpenRLHF trains on the last turn alone, which a recipe says",
        ),
    ),
    (
        "data.apply_chat_template apply_chat_template",
        "",
        Read(
            "prompts that are lists of messages go through the template, prompts that are text do not; a recipe says so where it matters",
        ),
    ),
    (
        "data.input_template input_template",
        "train_sft train_kd",
        Read("`model.custom_chat_template`, which writes a prompt as the template does; not read with `apply_chat_template`"),
    ),
    (
        "data.input_template input_template",
        "",
        Read("refused where it is given: write it into the column of the prompts; not read with `apply_chat_template`"),
    ),
    ("data.tokenizer_chat_template tokenizer_chat_template", "", Key("model.custom_chat_template")),
    ("data.image_key", "", Ignored("prompts are text")),
    ("data.max_images_per_prompt", "", Refused("prompts are text")),
    ("actor.freeze_visual_encoder", "", Ignored("prompts are text")),
    ("model.pretrain_mode_enable pretrain_mode", "", Read("`data.text_key`: all of the text in the input column is trained on")),
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
        Read(
            "`actor_rollout_ref.actor.loss_agg_mode`, the same names; editions without it: `token-mean`, in 0.5.3 and for `gspo` `seq-mean-token-mean`",
        ),
    ),
    ("actor.eps_clip eps_clip", "", Key("@actor.clip_ratio")),
    ("actor.eps_clip_low_high eps_clip_low_high", "", Read("`actor_rollout_ref.actor.clip_ratio_low`, `clip_ratio_high`")),
    ("actor.dual_clip dual_clip", "", Read("`actor_rollout_ref.actor.clip_ratio_c`; 1e9 where it is not set")),
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
        Read("`algorithm.kl_penalty`: `k1`, `k2`, `k3`, or `kl_loss_type`"),
    ),
    (
        "algo.kl.use_loss use_kl_loss",
        "",
        Read(
            "`actor_rollout_ref.actor.use_kl_loss=true` with `kl_loss_coef` and `kl_loss_type`, in place of the KL in the reward",
        ),
    ),
    (
        "algo.kl.unbiased_gradient",
        "",
        Read(
            "`kl_loss_type` with `+`, such as `k3+`: the value of the estimator, the gradient of the divergence where the ratio is 1",
        ),
    ),
    (
        "algo.advantage.is_correction_enable enable_vllm_is_correction",
        "",
        Read("`algorithm.rollout_correction`, see [Rollout correction](#rollout-correction)"),
    ),
    ("algo.advantage.is_correction_type vllm_is_correction_type", "", Read("`rollout_is` and `rollout_rs` of it")),
    (
        "algo.advantage.is_correction_level",
        "",
        Read("`off`; `token` with `clip` is `tis`, with `mask` `icepop`; `seq` is `seq-mask-tis`"),
    ),
    ("algo.advantage.is_correction_mode", "", Read("see `is_correction_level`")),
    ("algo.advantage.is_correction_gating", "", Read("`ratio`; `binary_kl` and `tv` are refused")),
    (
        "algo.advantage.is_correction_threshold vllm_is_truncated_threshold",
        "",
        Read("the bounds of `algorithm.rollout_correction`"),
    ),
    // Advantages and rewards.
    (
        "algo.advantage.estimator advantage_estimator",
        "",
        Read(
            "`algorithm.adv_estimator`, see [Estimators](#estimators); 0.5.3 whitens the advantages of `rloo`, too: `algorithm.normalize_advantages=tokens`",
        ),
    ),
    ("algo.advantage.gamma gamma", "", Key("algorithm.gamma")),
    ("algo.advantage.lambd lambd", "", Key("algorithm.lam")),
    ("algo.advantage.no_std_norm no_advantage_std_norm", "", Refused("advantages are whitened with their deviation")),
    (
        "reward.normalize_enable normalize_reward",
        "",
        Refused(
            "it applies the mean and deviation stored in the reward model; algorithm.normalize_reward standardises the scores of a batch",
        ),
    ),
    (
        "reward.clip_range reward_clip_range",
        "",
        Refused("fixed at ±10, after the baseline; algorithm.reward_clip_range clips before it"),
    ),
    (
        "reward.overlong_buffer_len overlong_buffer_len",
        "",
        Read("`reward_model.reward_manager=dapo` and `reward_model.reward_kwargs.overlong_buffer_cfg` with `enable`, `len`"),
    ),
    ("reward.overlong_penalty_factor overlong_penalty_factor", "", Read("`penalty_factor` of it")),
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
        Read("`trainer.critic_warmup=N+1`: there the policy is trained after step N, here from step `critic_warmup` on"),
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
    ("actor.adam.eps critic.adam.eps adam.eps", "", Read("`eps` beside it")),
    ("actor.adam.weight_decay critic.adam.weight_decay adam.weight_decay l2", "", Read("`weight_decay` beside it")),
    (
        "actor.max_norm critic.max_norm max_norm",
        "",
        Read("`actor_rollout_ref.actor.grad_clip`, `critic.grad_clip`, in SFT `optim.clip_grad`"),
    ),
    (
        "actor.lr_scheduler critic.lr_scheduler lr_scheduler",
        "",
        Read(
            "`lr_scheduler_type` beside `betas`: `cosine_with_min_lr` is `cosine`, and every other name of transformers but `reduce_lr_on_plateau` and `greedy`, which are refused",
        ),
    ),
    ("actor.lr_warmup_ratio critic.lr_warmup_ratio lr_warmup_ratio", "", Read("`lr_warmup_steps_ratio` beside it")),
    ("actor.min_lr_ratio critic.min_lr_ratio min_lr_ratio", "", Read("`min_lr_ratio` beside it; 0.1 in editions without it")),
    ("actor.optim critic.optim optim", "", Read("`optimizer` beside `betas`: `adam` is AdamW, `muon` Muon")),
    (
        "actor.muon.lr critic.muon.lr muon.lr",
        "",
        Read("with Muon `lr` beside `betas`, and the rate of Adam is `override_optimizer_config.adamw_lr`"),
    ),
    ("actor.muon.momentum critic.muon.momentum muon.momentum", "", Read("`override_optimizer_config.momentum` beside `betas`")),
    ("actor.muon.ns_steps actor.muon.nesterov actor.muon.no_nesterov", "", Ignored(MUON)),
    ("critic.muon.ns_steps critic.muon.nesterov critic.muon.no_nesterov", "", Ignored(MUON)),
    ("muon.ns_steps muon.nesterov muon.no_nesterov", "", Ignored(MUON)),
    // Averages, agents, overlap.
    ("train.enable_ema enable_ema", "", Refused("no average of the weights is kept")),
    ("train.ema_beta ema_beta", "", Ignored("it belongs to the average of the weights")),
    (
        "train.agent_func_path agent_func_path",
        "",
        Read(
            "`actor_rollout_ref.rollout.agent.agent_func_path` with `default_agent_loop=text_environment_agent`; its rewards are the score, and no other reward is read",
        ),
    ),
    (
        "train.async_enable async_train train.async_queue_size async_queue_size",
        "",
        Ignored("generation and training take turns, on the newest weights"),
    ),
    ("train.partial_rollout_enable partial_rollout", "", Ignored("generation and training take turns, on the newest weights")),
];
