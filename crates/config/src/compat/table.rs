//! The table of verl's keys that are not settings here: those that are renamed, ignored or refused, with the reason. A key
//! without a row is a setting, listed in `docs/config.md`.
//!
//! A pattern is a dotted key. `*` stands for one part or its end, `**` for any number of parts, none included. The first row that
//! matches counts. To make one of these keys a setting: give it a default under `config/`, a field, and delete its row.

/// The treatment of a key of verl's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The key has this name here; a final `**` also renames all keys below it.
    Renamed(&'static str),
    /// `true` sets this key to this value, whatever else it is set to; `false` has no effect.
    Means(&'static str, &'static str),
    /// `true` gives this key, if it is unset, the value of that other key of verl's.
    Chooses(&'static str, &'static str),
    /// The key is accepted and is a no-op, for this reason.
    Ignored(&'static str),
    /// Like [`Fate::Ignored`], unless the key is a setting.
    Unread(&'static str),
    /// The key is accepted at its default. Any other value would change the run and is refused, for this reason; not a setting
    /// that the pattern also matches.
    Refused(&'static str),
}
use Fate::{Chooses, Ignored, Means, Refused, Renamed, Unread};

const ONE_TEACHER: &str = "one teacher judges all rows";
const PROCESSES: &str =
    "as many processes train as are started, one for each device: `mpirun -n N trainer …` (docs/scale-out.md)";
const WHOLE: &str = "weights are whole in each process";
const SHARDED: &str = "optimizer state is shared out over the processes, weights are whole in each, and nothing leaves the device (docs/scale-out.md)";
const TOGETHER: &str = "all models are in the processes that train, and none has devices of its own";
const ONE_PATIENCE: &str = "one patience holds for all models";
const ONE_DTYPE: &str = "weights, optimizer and losses are float32; the model's dtype chooses the numbers of matrix products";
const NO_DROPOUT: &str = "dropout is not applied: the policy that samples is the one that is trained";
const OWN_SEED: &str = "trainer.seed is the seed";
const GENERATION_READS: &str = "generation reads model.path, rollout and its own data alone";
const NATIVE: &str = "the native engine generates, with the trained weights themselves";
const NO_ACTIVATIONS: &str = "activations are kept on the device";
const QWEN_IS_HERMES: &str = "it is SGLang's name for the calls of Qwen 2.5, which are those of hermes";
const AGENT_LOOP: &str = "a conversation is led by the loop that rollout.agent.default_agent_loop or the row names";
const KEEPS_IDS: &str =
    "nothing is rendered again: the ids that were sampled stay, and what is appended is the difference of two renderings";
const NO_ASYNC: &str = "generation and training take turns";
const NO_IMAGES: &str = "prompts are text";
const PLAIN_LORA: &str = "adapters are plain LoRA, as PEFT starts them";
const NO_MOE: &str = "there are no mixture-of-experts models";
const NO_MTP: &str = "there is no multi-token prediction";
const NO_PADDING: &str = "always so: rows are packed without padding, and a prompt passes once for its responses";
const NO_PROFILER: &str = "there is no profiler; timing_s/* has the time of each phase";
const NO_PYTHON: &str =
    "the only Python code that is run is that of rewards, tools and environments, and algorithm.custom_adv_estimator";
const NO_LIBRARY: &str = "the only Python code that is run is that of rewards, tools and environments and, of a module that registers advantage estimators, algorithm.custom_adv_estimator.path=pkg://MODULE";
const NO_QAT: &str = "there is no quantisation";
const NO_RAY: &str = "there is no Ray";
const NO_REWARD_SERVER: &str = "the reward model scores in this process, by forward passes, or behind reward_model.remote_url";
const NO_SKIP: &str = "every response is generated anew";
const NO_TORCH: &str = "there is no torch: the fused operations are built in";
const NO_TRANSFER_QUEUE: &str = "data stays in one process";
const NO_READER: &str = "nothing reads it: every prompt keeps its ids and its messages";
const OWN_CONFIG: &str = "a model is what its own config.json says: change it there";
const OPTIMIZER_BY_NAME: &str = "optim.optimizer alone names the optimizer, by torch's name or bitsandbytes'";
const RECOMPUTE: &str = "enable_gradient_checkpointing of the model chooses between memory and arithmetic";
const OWN_WEIGHTS: &str = "weights are read from the model's folder; init=random draws them instead";
const SAVES_AT_ONCE: &str = "a checkpoint is written before the next step, and verified when it is loaded";

/// Rows for every kind of configuration.
pub const EVERYWHERE: &[(&str, Fate)] = &[
    ("**._target_", Ignored("it names a Python class")),
    ("**.profiler.**", Ignored(NO_PROFILER)),
    ("global_profiler.**", Ignored(NO_PROFILER)),
    ("trainer.npu_profile.**", Ignored(NO_PROFILER)),
    ("trainer.profile_steps", Ignored(NO_PROFILER)),
    ("trainer.profile_interval", Ignored(NO_PROFILER)),
    ("trainer.controller_nsight_options.**", Ignored(NO_PROFILER)),
    ("trainer.worker_nsight_options.**", Ignored(NO_PROFILER)),
    ("ray_init.**", Ignored(NO_RAY)),
    ("ray_kwargs.**", Ignored(NO_RAY)),
    ("trainer.ray_wait_register_center_timeout", Ignored(NO_RAY)),
    ("trainer.nnodes", Ignored(PROCESSES)),
    ("trainer.n_gpus_per_node", Ignored(PROCESSES)),
    ("trainer.default_hdfs_dir", Ignored("checkpoints are local")),
    ("trainer.del_local_ckpt_after_load", Ignored("a loaded checkpoint stays, so that a killed run loses nothing")),
    ("trainer.esi_redundant_time", Ignored("there is no elastic server to make way for")),
    ("trainer.use_legacy_worker_impl", Ignored("there is one implementation")),
    ("trainer.use_v1", Ignored("there is one implementation")),
    ("trainer.rl_logging_board_dir", Ignored("there is no such tracker")),
    ("trainer.tensorboard_dir", Ignored("the environment variable TENSORBOARD_DIR names the folder")),
    ("**.external_lib", Refused(NO_LIBRARY)),
    ("**.trust_remote_code", Ignored(NO_PYTHON)),
    ("**.use_shm", Ignored("files are read in place")),
    ("**.optim.optimizer_impl", Ignored(OPTIMIZER_BY_NAME)),
    ("**.override_optimizer_config.optimizer_cpu_offload", Ignored(SHARDED)),
    ("**.override_optimizer_config.offload_fraction", Ignored(SHARDED)),
    ("**.override_optimizer_config.optimizer_offload_fraction", Ignored(SHARDED)),
    ("**.override_optimizer_config.overlap_cpu_optimizer_d2h_h2d", Ignored(SHARDED)),
    ("**.override_optimizer_config.use_precision_aware_optimizer", Ignored(ONE_DTYPE)),
    ("**.override_optimizer_config.decoupled_weight_decay", Refused("AdamW decouples it, Adam does not: set optim.optimizer")),
    ("**.optim.lr_decay_steps", Renamed("**.optim.total_training_steps")),
    ("**.optim.lr_min", Renamed("**.optim.min_lr")),
    ("**.optim.weight_decay_incr_style", Refused("the weight decay is constant")),
    ("**.optim.use_checkpoint_opt_param_scheduler", Ignored("after a resume, too, the schedule is that of the settings")),
    ("**.optim.decay_type", Renamed("**.optim.lr_scheduler_type")),
    ("**.optim.min_lr_factor", Renamed("**.optim.min_lr_ratio")),
    ("**.optim.lr_decay_ratio", Refused("the length of the schedule is counted in steps: set total_training_steps")),
    ("**.optim.lr_start", Renamed("**.optim.lr_warmup_init")),
    ("**.optim.init_lr_ratio", Ignored("the warm-up starts from 0")),
    ("**.optim.wd_incr_style", Refused("the weight decay is constant")),
    ("**.optim.master_weights", Ignored(ONE_DTYPE)),
    ("**.optim.store_param_remainders", Ignored(ONE_DTYPE)),
    ("**.optim.name", Renamed("**.optim.optimizer")),
    (
        "**.optim.muon_*",
        Refused(
            "optimizer=Muon is torch's, with its options in override_optimizer_config: momentum, nesterov, ns_steps, adjust_lr_fn",
        ),
    ),
    ("**.optim.*_dtype", Ignored(ONE_DTYPE)),
    ("**.optim.use_precision_aware_optimizer", Ignored(ONE_DTYPE)),
    ("**.optim.use_*_optimizer", Ignored(SHARDED)),
    ("**.checkpoint.mbridge_config.**", Ignored(SAVES_AT_ONCE)),
    ("**.checkpoint.async_save", Ignored(SAVES_AT_ONCE)),
    ("**.checkpoint.strict", Ignored(SAVES_AT_ONCE)),
    ("**.veomni.**", Ignored(SHARDED)),
    ("**.torchtitan.**", Ignored(SHARDED)),
    ("**.mtp.enable", Refused(NO_MTP)),
    ("**.mtp.enable_*", Refused(NO_MTP)),
    ("**.mtp.**", Ignored(NO_MTP)),
    ("**.lora.rank", Renamed("**.lora_rank")),
    ("**.lora.alpha", Renamed("**.lora_alpha")),
    ("**.lora.target_modules", Renamed("**.target_modules")),
    ("**.lora.exclude_modules", Renamed("**.exclude_modules")),
    ("**.lora.adapter_path", Renamed("**.lora_adapter_path")),
    ("**.lora.type", Refused(PLAIN_LORA)),
    ("**.lora.dropout", Refused(NO_DROPOUT)),
    ("**.lora.dropout_position", Ignored("there is no dropout")),
    ("**.lora.lora_A_init_method", Ignored(PLAIN_LORA)),
    ("**.lora.lora_B_init_method", Refused(PLAIN_LORA)),
    ("**.lora.merge", Ignored("generation runs the adapter beside the weights; trainer export merges it")),
    ("**.lora.dtype", Ignored(ONE_DTYPE)),
    ("**.lora.freeze_*", Ignored(NO_IMAGES)),
    ("**.lora.a2a_experimental", Ignored(WHOLE)),
    ("**.lora.fully_sharded_loras", Ignored(WHOLE)),
    ("**.use_liger", Ignored(NO_TORCH)),
    ("**.use_fused_kernels", Ignored(NO_TORCH)),
    ("**.fused_kernel_options.**", Ignored(NO_TORCH)),
    ("**.tiled_mlp.**", Ignored(NO_TORCH)),
    ("**.use_torch_compile", Ignored(NO_TORCH)),
    ("**.qat.enable", Refused(NO_QAT)),
    ("**.qat.**", Ignored(NO_QAT)),
    ("**.use_remove_padding", Ignored(NO_PADDING)),
    ("**.use_prefix_grouper", Ignored(NO_PADDING)),
    ("**.pad_to_length", Ignored(NO_PADDING)),
    ("**.entropy_from_logits_with_chunking", Ignored("the head always works in chunks of tokens")),
    ("**.entropy_from_logits_chunk_size", Ignored("the head always works in chunks of tokens")),
    ("**.entropy_checkpointing", Ignored("the head always works in chunks of tokens")),
    ("**.fsdp_config.*dtype", Ignored(ONE_DTYPE)),
    ("**.fsdp_config.mixed_precision.**", Ignored(ONE_DTYPE)),
    ("**.fsdp_config.seed", Ignored(OWN_SEED)),
    ("**.fsdp_config.**", Ignored(SHARDED)),
    ("**.override_transformer_config.*_fusion", Ignored(NO_TORCH)),
    ("**.override_transformer_config.attention_backend", Ignored(NO_TORCH)),
    ("**.override_transformer_config.persist_layer_norm", Ignored(NO_TORCH)),
    ("**.override_transformer_config.*dropout", Refused(NO_DROPOUT)),
    ("**.override_transformer_config.*dtype", Ignored(ONE_DTYPE)),
    ("**.override_transformer_config.fp8*", Refused(NO_QAT)),
    ("**.override_transformer_config.moe_*", Ignored(NO_MOE)),
    ("**.override_transformer_config.recompute_*", Ignored(RECOMPUTE)),
    ("**.override_transformer_config.account_for_*", Ignored(WHOLE)),
    ("**.override_transformer_config.num_layers_in_*", Ignored(WHOLE)),
    ("**.override_transformer_config.deallocate_pipeline_outputs", Ignored(WHOLE)),
    ("**.override_transformer_config.**", Refused(OWN_CONFIG)),
    ("**.override_mcore_model_config.**", Refused(OWN_CONFIG)),
    ("**.megatron.dtype", Ignored(ONE_DTYPE)),
    ("**.megatron.seed", Ignored(OWN_SEED)),
    ("**.megatron.use_dist_checkpointing", Refused(OWN_WEIGHTS)),
    ("**.megatron.**", Ignored(SHARDED)),
    ("**.strategy", Ignored(SHARDED)),
    ("**.ulysses_sequence_parallel_size", Ignored(WHOLE)),
    ("**.nccl_timeout", Unread(ONE_PATIENCE)),
    ("**.gradient_checkpointing_kwargs.**", Ignored("whole blocks are computed again")),
    ("**.enable_activation_offload", Ignored(NO_ACTIVATIONS)),
    ("**.load_weight", Refused(OWN_WEIGHTS)),
    ("**.hf_config_path", Refused("config.json is read from the model's folder")),
    ("**.router_replay.mode", Refused(NO_MOE)),
    ("**.router_replay.**", Ignored(NO_MOE)),
    ("**.enable_rollout_routing_replay", Ignored(NO_MOE)),
    ("**.moe_load_balance_metrics_interval", Ignored(NO_MOE)),
    ("**.freeze_vision_tower", Ignored(NO_IMAGES)),
];

/// The rows of a rollout group's engine settings; `trainer generate` has the same group without the prefix.
macro_rules! engine {
    ($at:literal) => {
        &[
            (concat!($at, "name"), Ignored("the native engine generates")),
            (concat!($at, "mode"), Ignored(NO_ASYNC)),
            (concat!($at, "dtype"), Ignored("generation computes in the numbers of training")),
            (concat!($at, "quantization"), Refused(NO_QAT)),
            (concat!($at, "quantization_config_file"), Ignored(NO_QAT)),
            (concat!($at, "gpu_memory_utilization"), Ignored(NATIVE)),
            (concat!($at, "cudagraph_capture_sizes"), Ignored("a decode step is recorded for the next power of two of its sequences")),
            (concat!($at, "free_cache_engine"), Ignored(NATIVE)),
            (concat!($at, "load_format"), Ignored(NATIVE)),
            (concat!($at, "layered_summon"), Ignored(NATIVE)),
            (concat!($at, "multi_stage_wake_up"), Ignored(NATIVE)),
            (concat!($at, "disable_log_stats"), Ignored(NATIVE)),
            (concat!($at, "skip_tokenizer_init"), Ignored(NATIVE)),
            (concat!($at, "router_config_path"), Ignored(NATIVE)),
            (concat!($at, "update_weights_bucket_megabytes"), Ignored(NATIVE)),
            (concat!($at, "use_fire_sampling"), Refused("all tokens of a response are sampled alike")),
            (concat!($at, "engine_kwargs.**"), Ignored(NATIVE)),
            (concat!($at, "checkpoint_engine.**"), Ignored(NATIVE)),
            (concat!($at, "layer_name_map.**"), Ignored(NATIVE)),
            (concat!($at, "enable_chunked_prefill"), Ignored("a prompt is never cut; max_num_batched_tokens limits a pass")),
            (concat!($at, "enable_prefix_caching"), Ignored("the samples of a prompt always share its prefill")),
            (concat!($at, "scheduling_policy"), Ignored("prompts are taken in order")),
            (concat!($at, "seed"), Ignored("trainer.seed is the seed of sampling")),
            (concat!($at, "full_determinism"), Ignored("generation is always deterministic on the CPU")),
            (concat!($at, "*_parallel_size"), Ignored(WHOLE)),
            (concat!($at, "nnodes"), Ignored(TOGETHER)),
            (concat!($at, "n_gpus_per_node"), Ignored(TOGETHER)),
            (concat!($at, "disaggregation.enabled"), Refused(TOGETHER)),
            (concat!($at, "disaggregation.**"), Ignored(TOGETHER)),
            (concat!($at, "prometheus.**"), Ignored("there is no server to watch")),
            (concat!($at, "trace.**"), Ignored("trajectories are not traced; trainer.rollout_data_dir writes them to files")),
            (concat!($at, "skip.enable"), Refused(NO_SKIP)),
            (concat!($at, "skip.**"), Ignored(NO_SKIP)),
            (concat!($at, "skip_rollout"), Refused(NO_SKIP)),
            (concat!($at, "skip_dump_dir"), Ignored(NO_SKIP)),
            (concat!($at, "over_sample_rate"), Refused("as many responses are generated as are used")),
            (
                concat!($at, "single_turn_response_length"),
                Refused("every turn may have what is left of data.max_response_length"),
            ),
            (concat!($at, "sglang_engine_mode"), Ignored(NATIVE)),
            (concat!($at, "server.**"), Ignored(NATIVE)),
            // Conversations.
            (concat!($at, "agent.custom_async_server.path"), Refused(NATIVE)),
            (concat!($at, "agent.custom_async_server.**"), Ignored(NATIVE)),
            (
                concat!($at, "agent.num_workers"),
                Ignored("one process leads all conversations, and each has its own for Python"),
            ),
            (concat!($at, "agent.agent_loop_manager_class"), Refused(AGENT_LOOP)),
            (concat!($at, "multi_turn.max_turns"), Renamed(concat!($at, "multi_turn.max_assistant_turns"))),
            (concat!($at, "multi_turn.completion_callback"), Refused(AGENT_LOOP)),
            (concat!($at, "multi_turn.use_inference_chat_template"), Ignored(KEEPS_IDS)),
            (concat!($at, "multi_turn.tokenization_sanity_check_mode"), Ignored(KEEPS_IDS)),
            (concat!($at, "multi_turn.num_repeat_rollouts"), Ignored("rollout.n alone counts the responses")),
            (concat!($at, "chat_scheduler.**"), Refused(AGENT_LOOP)),
        ]
    };
}
pub(super) const RL_ENGINE: &[(&str, Fate)] = engine!("actor_rollout_ref.rollout.");
pub(super) const GENERATION_ENGINE: &[(&str, Fate)] = engine!("rollout.");

/// Rows of reinforcement learning.
pub(super) const RL: &[(&str, Fate)] = &[
    // Other spellings.
    ("actor_rollout_ref.actor.ppo_micro_batch_size", Renamed("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu")),
    ("actor_rollout_ref.*.log_prob_micro_batch_size", Renamed("actor_rollout_ref.*.log_prob_micro_batch_size_per_gpu")),
    ("actor_rollout_ref.actor.optim.clip_grad", Renamed("actor_rollout_ref.actor.grad_clip")),
    ("actor_rollout_ref.actor.optim.warmup_style", Renamed("actor_rollout_ref.actor.optim.lr_scheduler_type")),
    ("actor_rollout_ref.actor.optim.lr_decay_style", Renamed("actor_rollout_ref.actor.optim.lr_scheduler_type")),
    ("actor_rollout_ref.actor.checkpoint.contents", Renamed("actor_rollout_ref.actor.checkpoint.save_contents")),
    ("actor_rollout_ref.actor.rollout_correction.**", Renamed("algorithm.rollout_correction.**")),
    ("actor_rollout_ref.model.tokenizer_path", Renamed("data.tokenizer")),
    ("critic.checkpoint.contents", Renamed("critic.checkpoint.save_contents")),
    ("critic.ppo_micro_batch_size", Renamed("critic.ppo_micro_batch_size_per_gpu")),
    ("critic.forward_micro_batch_size", Renamed("critic.forward_micro_batch_size_per_gpu")),
    ("critic.optim.clip_grad", Renamed("critic.grad_clip")),
    ("critic.optim.warmup_style", Renamed("critic.optim.lr_scheduler_type")),
    ("critic.optim.lr_decay_style", Renamed("critic.optim.lr_scheduler_type")),
    ("reward_manager.name", Renamed("reward_model.reward_manager")),
    ("reward.reward_manager.name", Renamed("reward_model.reward_manager")),
    ("reward.custom_reward_function.**", Renamed("custom_reward_function.**")),
    ("reward_model.num_workers", Renamed("reward.num_workers")),
    ("reward_model.sandbox_fusion.**", Renamed("reward.sandbox_fusion.**")),
    ("sandbox_fusion.**", Renamed("reward.sandbox_fusion.**")),
    ("reward.reward_kwargs.**", Renamed("reward_model.reward_kwargs.**")),
    ("reward_model.overlong_buffer.**", Renamed("reward_model.reward_kwargs.overlong_buffer_cfg.**")),
    ("reward.reward_model.enable", Renamed("reward_model.enable")),
    ("reward.reward_model.model_path", Renamed("reward_model.model.path")),
    ("reward_model.micro_batch_size", Renamed("reward_model.micro_batch_size_per_gpu")),
    ("trainer.remove_previous_ckpt_in_save", Means("trainer.max_actor_ckpt_to_keep", "1")),
    // The policy.
    ("actor_rollout_ref.hybrid_engine", Refused("actor and rollout always share one set of weights")),
    (
        "actor_rollout_ref.model.custom_chat_template",
        Refused("the chat template is the tokenizer's: put it into tokenizer_config.json"),
    ),
    ("actor_rollout_ref.model.override_config.attn_implementation", Ignored(NO_TORCH)),
    ("actor_rollout_ref.model.override_config.moe_config.**", Ignored(NO_MOE)),
    ("actor_rollout_ref.model.override_config.model_config.**", Renamed("actor_rollout_ref.model.override_config.**")),
    ("actor_rollout_ref.ref.optim.**", Ignored("the reference is not trained")),
    ("actor_rollout_ref.*.profile.**", Ignored(NO_PROFILER)),
    ("trainer.checkpoint_callback_class", Refused(NO_PYTHON)),
    ("actor_rollout_ref.model.torch_dtype", Ignored(ONE_DTYPE)),
    ("actor_rollout_ref.actor.calculate_entropy", Ignored("the entropy is always reported")),
    ("actor_rollout_ref.*.rollout_n", Ignored("actor_rollout_ref.rollout.n alone counts the responses")),
    ("actor_rollout_ref.actor.sum_pi_squared_checkpointing", Ignored("the head always works in chunks of tokens")),
    ("model_engine", Ignored("it chooses a training framework")),
    // Data.
    (
        "data.custom_cls.path",
        Refused("dataset classes of your own cannot be run: only rewards, tools and environments may be Python"),
    ),
    ("data.custom_cls.name", Ignored(NO_PYTHON)),
    ("data.sampler.class_path", Refused(NO_PYTHON)),
    ("data.sampler.class_name", Ignored(NO_PYTHON)),
    ("data.datagen.path", Refused(NO_PYTHON)),
    ("data.datagen.name", Ignored(NO_PYTHON)),
    ("data.tool_config_path", Renamed("actor_rollout_ref.rollout.multi_turn.tool_config_path")),
    ("data.function_tool_path", Renamed("actor_rollout_ref.rollout.multi_turn.function_tool_path")),
    ("data.need_tools_kwargs", Ignored("it only asks for a warning: a tool gets what the row has for it")),
    ("data.filter_overlong_prompts_workers", Ignored("the filter runs in one process")),
    ("data.dataloader_num_workers", Ignored("rows are read before the first step")),
    ("data.return_multi_modal_inputs", Ignored(NO_IMAGES)),
    ("data.mm_processor_kwargs.**", Ignored(NO_IMAGES)),
    ("data.image_key", Refused(NO_IMAGES)),
    ("data.image_patch_size", Ignored(NO_IMAGES)),
    ("data.video_key", Refused(NO_IMAGES)),
    ("data.audio_key", Refused(NO_IMAGES)),
    ("data.return_raw_input_ids", Ignored(NO_READER)),
    ("data.return_raw_chat", Ignored(NO_READER)),
    ("data.return_full_prompt", Ignored(NO_READER)),
    // Critic and rewards.
    ("critic.fsdp.*dtype", Ignored(ONE_DTYPE)),
    ("critic.fsdp.mixed_precision.**", Ignored(ONE_DTYPE)),
    ("critic.fsdp.seed", Ignored(OWN_SEED)),
    ("critic.fsdp.**", Ignored(SHARDED)),
    ("critic.kl_ctrl.**", Ignored("nothing reads it: algorithm.kl_ctrl holds the KL controller")),
    ("critic.rollout_n", Ignored("actor_rollout_ref.rollout.n alone counts the responses")),
    ("critic.model.tokenizer_path", Ignored("the critic reads the tokens of the policy")),
    ("critic.model.override_config.moe_config.**", Ignored(NO_MOE)),
    ("critic.model.override_config.**", Refused(OWN_CONFIG)),
    ("critic.model.custom_chat_template", Ignored("the critic reads the tokens of the policy")),
    ("reward_model.reward_loop_class_name", Refused(NO_PYTHON)),
    ("reward_model.reward_loop_module_path", Refused(NO_PYTHON)),
    ("reward_model.launch_reward_fn_async", Ignored("responses are always scored while others are generated")),
    ("reward_model.use_reward_loop", Ignored("responses are always scored while others are generated")),
    ("reward_model.reward_loop_source", Ignored(NO_PYTHON)),
    ("reward_model.reward_kwargs.**", Unread("only the reward manager dapo has settings")),
    ("reward_model.model.override_config.**", Refused(OWN_CONFIG)),
    ("reward_model.rollout.**", Ignored(NO_REWARD_SERVER)),
    ("reward_model.enable_resource_pool", Ignored(TOGETHER)),
    ("reward_model.nnodes", Ignored(TOGETHER)),
    ("reward_model.n_gpus_per_node", Ignored(TOGETHER)),
    ("reward_manager.module.path", Refused(NO_PYTHON)),
    ("reward_manager.source", Refused(NO_PYTHON)),
    ("reward_manager.**", Ignored(NO_PYTHON)),
    ("reward.reward_manager.module.path", Refused(NO_PYTHON)),
    ("reward.reward_manager.source", Refused(NO_PYTHON)),
    ("reward.reward_manager.**", Ignored(NO_PYTHON)),
    ("reward.reward_model.rollout.**", Ignored(NO_REWARD_SERVER)),
    ("reward.reward_model.**", Ignored(TOGETHER)),
    // The algorithm.
    ("algorithm.filter_groups.max_inflight_gen_batches", Ignored("batches are sampled one after another")),
    (
        "distillation.distillation_loss.policy_loss_mode",
        Refused("the policy gradient of a teacher is of the loss vanilla, as in verl"),
    ),
    ("distillation.teacher_models.teacher_model.inference.**", Ignored("the teacher makes forward passes in this process")),
    ("distillation.teacher_models.teacher_model.num_replicas", Ignored(TOGETHER)),
    ("distillation.teacher_models.teacher_model.key", Ignored(ONE_TEACHER)),
    ("distillation.teacher_models.**", Refused(ONE_TEACHER)),
    ("distillation.teacher_key", Ignored(ONE_TEACHER)),
    ("distillation.n_gpus_per_node", Ignored(TOGETHER)),
    ("distillation.nnodes", Ignored(TOGETHER)),
    // The run.
    ("skip.*.enable", Refused(NO_SKIP)),
    ("skip.**", Ignored(NO_SKIP)),
    ("trainer.v1.trainer_mode", Refused(NO_ASYNC)),
    ("trainer.v1.sampler.custom_sampler.path", Refused(NO_PYTHON)),
    ("trainer.v1.**", Ignored(NO_ASYNC)),
    ("transfer_queue.**", Ignored(NO_TRANSFER_QUEUE)),
    // Experiments of verl.
    ("async_training.**", Ignored(NO_ASYNC)),
    ("rollout.nnodes", Ignored(TOGETHER)),
    ("rollout.n_gpus_per_node", Ignored(TOGETHER)),
    ("rollout.total_rollout_steps", Ignored(NO_ASYNC)),
    ("rollout.total_epochs", Ignored(NO_ASYNC)),
    ("rollout.test_freq", Ignored(NO_ASYNC)),
    ("rollout.max_concurrent_samples_per_replica", Ignored(NO_ASYNC)),
    ("trainer.n_env_gpus_per_node", Ignored(TOGETHER)),
    ("trainer.n_rollout_gpus_per_node", Ignored(TOGETHER)),
    ("env.**", Refused("there are no simulated environments")),
    ("actor_rollout_ref.actor.num_images_in_input", Refused(NO_IMAGES)),
    ("actor_rollout_ref.*.engine.**", Ignored(SHARDED)),
    ("critic.engine.**", Ignored(SHARDED)),
    ("actor_rollout_ref.actor.model_engine", Ignored("it chooses a training framework")),
];

/// Rows of supervised fine-tuning: `fsdp_sft_trainer` (until 2026-01) and `sft_trainer`.
pub(super) const SFT: &[(&str, Fate)] = &[
    ("trainer.wandb_proxy", Ignored("the environment variable https_proxy does the same")),
    ("model.partial_pretrain", Renamed("model.path")),
    ("data.micro_batch_size", Renamed("data.micro_batch_size_per_gpu")),
    ("data.multiturn.enable", Chooses("data.messages_key", "data.multiturn.messages_key")),
    ("data.multiturn.messages_key", Ignored("data.multiturn.enable is not true, so prompt_key and response_key are read")),
    ("data.multiturn.tools_key", Renamed("data.tools_key")),
    ("data.multiturn.enable_thinking_key", Renamed("data.enable_thinking_key")),
    ("data.chat_template", Renamed("model.custom_chat_template")),
    ("data.enable_thinking_default", Refused("data.apply_chat_template_kwargs.enable_thinking holds for all examples")),
    ("optim.warmup_steps_ratio", Renamed("optim.lr_warmup_steps_ratio")),
    ("trainer.resume_path", Refused("set trainer.resume_mode=resume_path and trainer.resume_from_path")),
    ("optim.lr_scheduler", Renamed("optim.lr_scheduler_type")),
    ("optim.warmup_style", Renamed("optim.lr_scheduler_type")),
    ("optim.lr_decay_style", Renamed("optim.lr_scheduler_type")),
    ("trainer.checkpoint.**", Renamed("checkpoint.**")),
    ("model.override_config.attn_implementation", Ignored(NO_TORCH)),
    ("model.override_config.**", Refused(OWN_CONFIG)),
    (
        "data.custom_cls.path",
        Refused("dataset classes of your own cannot be run: only rewards, tools and environments may be Python"),
    ),
    ("data.custom_cls.name", Ignored(NO_PYTHON)),
    ("data.ignore_input_ids_mismatch", Refused("an example whose messages do not add up is an error")),
    ("data.pad_mode", Ignored(NO_PADDING)),
    ("data.balance_dp_token", Ignored("trainer.balance_batch says what slices have alike")),
    ("data.num_workers", Ignored("rows are read before the first step")),
    ("engine.qat.enable", Refused(NO_QAT)),
    ("engine.enable_fp8", Refused(NO_QAT)),
    ("engine.*dtype", Ignored(ONE_DTYPE)),
    ("engine.mixed_precision.**", Ignored(ONE_DTYPE)),
    ("engine.seed", Ignored(OWN_SEED)),
    ("engine.use_dist_checkpointing", Refused(OWN_WEIGHTS)),
    ("engine.**", Ignored(SHARDED)),
];

/// Rows of `trainer eval`.
pub(super) const EVALUATION: &[(&str, Fate)] = &[];

/// Rows of `trainer generate`. verl's generation server takes the configuration of reinforcement learning.
pub(super) const GENERATION: &[(&str, Fate)] = &[
    ("actor_rollout_ref.rollout.n", Renamed("data.n_samples")),
    ("actor_rollout_ref.rollout.**", Renamed("rollout.**")),
    ("actor_rollout_ref.model.path", Renamed("model.path")),
    ("data.train_files", Renamed("data.path")),
    ("data.max_prompt_length", Renamed("rollout.prompt_length")),
    ("data.max_response_length", Renamed("rollout.response_length")),
    ("data.tokenizer", Renamed("model.tokenizer_path")),
    ("data.tool_config_path", Renamed("rollout.multi_turn.tool_config_path")),
    ("data.function_tool_path", Renamed("rollout.multi_turn.function_tool_path")),
    ("data.**", Unread(GENERATION_READS)),
    ("trainer.**", Unread(GENERATION_READS)),
    ("actor_rollout_ref.**", Ignored(GENERATION_READS)),
    ("actor.**", Ignored(GENERATION_READS)),
    ("critic.**", Ignored(GENERATION_READS)),
    ("algorithm.**", Ignored(GENERATION_READS)),
    ("reward_model.**", Ignored(GENERATION_READS)),
    ("custom_reward_function.**", Ignored(GENERATION_READS)),
    ("reward.**", Unread(GENERATION_READS)),
    ("rollout.n", Ignored("data.n_samples counts the responses")),
    ("rollout.val_kwargs.**", Ignored(GENERATION_READS)),
    ("rollout.calculate_log_probs", Ignored("generation writes texts")),
    ("rollout.logprobs_mode", Ignored("generation writes texts")),
    ("rollout.log_prob_*", Ignored("generation writes texts")),
];

/// Values of settings that verl has and this program has not: the key, the values, the value that is used instead, and why.
pub const VALUES: &[(&str, &[&str], &str, &str)] = &[
    (
        "trainer.logger",
        &["rl_logging_board"],
        "file",
        "there is no such tracker; `trainer report` shows responses token by token",
    ),
    ("actor_rollout_ref.rollout.multi_turn.format", &["qwen", "qwen25"], "hermes", QWEN_IS_HERMES),
    ("rollout.multi_turn.format", &["qwen", "qwen25"], "hermes", QWEN_IS_HERMES),
];
