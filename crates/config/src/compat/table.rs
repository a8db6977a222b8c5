//! The table of verl's keys that are not settings: renamed, ignored and refused keys, with the reasons. A key without a row is a
//! setting, listed in `docs/config.md`.
//!
//! A pattern is a dotted key. `*` matches one part or its end, `**` any number of parts, including 0. The first matching row
//! counts. To make one of these keys a setting, add its default under `config/` and its field, and delete its row.

/// The treatment of a key of verl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyTreatment {
    /// The key has this name here; a final `**` also renames all keys below it.
    Renamed(&'static str),
    /// `true` sets this key to this value, and replaces any other value; `false` has no effect.
    Sets(&'static str, &'static str),
    /// `true` copies the value of the second key, a key of verl, to the first key if that is unset.
    SetsFrom(&'static str, &'static str),
    /// The key is accepted but has no effect, for this reason.
    Ignored(&'static str),
    /// Like [`KeyTreatment::Ignored`], unless the key is a setting.
    Unread(&'static str),
    /// The key is accepted only at its default, because any other value would change the run. Settings that also match the
    /// pattern are not affected.
    Refused(&'static str),
}
use KeyTreatment::{Ignored, Refused, Renamed, Sets, SetsFrom, Unread};

const ONE_TEACHER: &str = "one teacher judges all rows";
const PROCESSES: &str =
    "the number of ranks is the number of started processes, one per device: `mpirun -n N trainer …` (docs/scale-out.md)";
const ALL_WEIGHTS: &str = "each rank holds all weights";
const SHARDED: &str =
    "optimizer state is sharded over the ranks, each rank holds all weights, and nothing is offloaded (docs/scale-out.md)";
const TOGETHER: &str = "all models run in the training processes, none on separate devices";
const ONE_PATIENCE: &str = "one time limit applies to all models";
const ONE_DTYPE: &str = "weights, optimizer and losses are float32; the model's dtype sets the format of matmuls";
const NO_DROPOUT: &str = "dropout is not applied: the sampling policy is the trained policy";
const SEED_SETTING: &str = "trainer.seed is the seed";
const GENERATION_READS: &str = "generation reads only model.path, rollout and its own data";
const NATIVE: &str = "the native engine generates with the trained weights in memory";
const NO_ACTIVATIONS: &str = "activations are kept on the device";
const QWEN_IS_HERMES: &str = "it is SGLang's name for the format of Qwen 2.5, which is hermes";
const AGENT_LOOP: &str = "rollout.agent.default_agent_loop or the row selects the agent loop";
const KEEPS_IDS: &str = "sampled ids are kept and never rendered again; appended tokens are the difference of two renderings";
const NO_ASYNC: &str = "generation and training alternate";
const NO_IMAGES: &str = "prompts are text";
const PLAIN_LORA: &str = "adapters are plain LoRA with PEFT's initialisation";
const SAME_ROUTING: &str = "generation and training route with the same code and weights, in float32, in one process";
const ROUTER_LOSSES: &str = "the model's config.json decides: router_aux_loss_coef with output_router_logits, and router_z_loss_coef; override_config may set them";
const FREEZES_ROUTER: &str = "a frozen router is not supported for the critic";
const NO_MTP: &str = "multi-token prediction is not supported";
const NO_PADDING: &str = "always on: rows are packed without padding, and responses share the pass of their prompt";
const NO_PROFILER: &str = "there is no profiler; timing_s/* has the time of each phase";
const NO_PYTHON: &str =
    "only rewards, tools, environments, algorithm.custom_adv_estimator and actor.policy_loss.path may run Python code";
const NO_LIBRARY: &str = "only rewards, tools and environments may run Python code; for a module that registers advantage estimators set algorithm.custom_adv_estimator.path=pkg://MODULE, for one that registers policy losses set actor_rollout_ref.actor.policy_loss.path=pkg://MODULE";
const NO_QAT: &str = "quantisation is not supported";
const NO_RAY: &str = "there is no Ray";
const NO_REWARD_SERVER: &str =
    "the reward model scores by forward passes in this process, or on a server (reward_model.remote_url)";
const NO_SKIP: &str = "every response is newly generated";
const NO_TORCH: &str = "torch is not used: fused operations are built in";
const NO_TRANSFER_QUEUE: &str = "data stays in one process";
const NO_READER: &str = "it has no reader: every prompt keeps its ids and its messages";
const CONFIG_OF_MODEL: &str = "the model's config.json decides: change it there";
const OPTIMIZER_BY_NAME: &str = "only optim.optimizer names the optimizer, by the name in torch or bitsandbytes";
const RECOMPUTE: &str = "enable_gradient_checkpointing of the model trades memory for computation";
const WEIGHTS_OF_MODEL: &str = "weights are read from the model's folder, or drawn with init=random";
const SAVES_AT_ONCE: &str = "a checkpoint is written before the next step, and verified when it is loaded";

/// Rows for every kind of configuration.
pub(crate) const EVERYWHERE: &[(&str, KeyTreatment)] = &[
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
    ("trainer.del_local_ckpt_after_load", Ignored("a loaded checkpoint is kept, so that a killed run loses nothing")),
    ("trainer.esi_redundant_time", Ignored("elastic servers are not supported")),
    ("trainer.use_legacy_worker_impl", Ignored("there is one implementation")),
    ("trainer.use_v1", Ignored("there is one implementation")),
    ("trainer.rl_logging_board_dir", Ignored("this tracker is not supported")),
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
    (
        "**.override_optimizer_config.decoupled_weight_decay",
        Refused("AdamW decouples weight decay, Adam does not: set optim.optimizer"),
    ),
    ("**.optim.lr_decay_steps", Renamed("**.optim.total_training_steps")),
    ("**.optim.lr_min", Renamed("**.optim.min_lr")),
    ("**.optim.weight_decay_incr_style", Refused("the weight decay is constant")),
    ("**.optim.use_checkpoint_opt_param_scheduler", Ignored("the schedule always follows the settings, after a resume too")),
    ("**.optim.decay_type", Renamed("**.optim.lr_scheduler_type")),
    ("**.optim.min_lr_factor", Renamed("**.optim.min_lr_ratio")),
    ("**.optim.lr_decay_ratio", Refused("the length of the schedule is given in steps: set total_training_steps")),
    ("**.optim.lr_start", Renamed("**.optim.lr_warmup_init")),
    ("**.optim.init_lr_ratio", Ignored("the warm-up starts from 0")),
    ("**.optim.wd_incr_style", Refused("the weight decay is constant")),
    ("**.optim.master_weights", Ignored(ONE_DTYPE)),
    ("**.optim.store_param_remainders", Ignored(ONE_DTYPE)),
    ("**.optim.name", Renamed("**.optim.optimizer")),
    (
        "**.optim.muon_*",
        Refused(
            "optimizer=Muon is torch's Muon; set its options in override_optimizer_config: momentum, nesterov, ns_steps, adjust_lr_fn",
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
    ("**.lora.merge", Ignored("generation applies the adapter without merging it; trainer export merges it")),
    ("**.lora.dtype", Ignored(ONE_DTYPE)),
    ("**.lora.freeze_*", Ignored(NO_IMAGES)),
    ("**.lora.a2a_experimental", Ignored(ALL_WEIGHTS)),
    ("**.lora.fully_sharded_loras", Ignored(ALL_WEIGHTS)),
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
    ("**.fsdp_config.seed", Ignored(SEED_SETTING)),
    ("**.fsdp_config.**", Ignored(SHARDED)),
    ("**.override_transformer_config.*_fusion", Ignored(NO_TORCH)),
    ("**.override_transformer_config.attention_backend", Ignored(NO_TORCH)),
    ("**.override_transformer_config.persist_layer_norm", Ignored(NO_TORCH)),
    ("**.override_transformer_config.*dropout", Refused(NO_DROPOUT)),
    ("**.override_transformer_config.*dtype", Ignored(ONE_DTYPE)),
    ("**.override_transformer_config.fp8*", Refused(NO_QAT)),
    ("**.override_transformer_config.moe_*_loss_coeff", Ignored(ROUTER_LOSSES)),
    (
        "**.override_transformer_config.moe_*",
        Ignored("experts are computed on one device; the model's config.json describes its router"),
    ),
    ("**.override_transformer_config.recompute_*", Ignored(RECOMPUTE)),
    ("**.override_transformer_config.account_for_*", Ignored(ALL_WEIGHTS)),
    ("**.override_transformer_config.num_layers_in_*", Ignored(ALL_WEIGHTS)),
    ("**.override_transformer_config.deallocate_pipeline_outputs", Ignored(ALL_WEIGHTS)),
    ("**.override_transformer_config.**", Refused(CONFIG_OF_MODEL)),
    ("**.override_mcore_model_config.**", Refused(CONFIG_OF_MODEL)),
    ("**.megatron.dtype", Ignored(ONE_DTYPE)),
    ("**.megatron.seed", Ignored(SEED_SETTING)),
    ("**.megatron.use_dist_checkpointing", Refused(WEIGHTS_OF_MODEL)),
    ("**.megatron.**", Ignored(SHARDED)),
    ("**.strategy", Ignored(SHARDED)),
    ("**.ulysses_sequence_parallel_size", Ignored(ALL_WEIGHTS)),
    ("**.nccl_timeout", Unread(ONE_PATIENCE)),
    ("**.gradient_checkpointing_kwargs.**", Ignored("whole blocks are recomputed")),
    ("**.enable_activation_offload", Ignored(NO_ACTIVATIONS)),
    ("**.load_weight", Refused(WEIGHTS_OF_MODEL)),
    ("**.hf_config_path", Refused("config.json is read from the model's folder")),
    ("**.router_replay.**", Ignored(SAME_ROUTING)),
    ("**.enable_rollout_routing_replay", Ignored(SAME_ROUTING)),
    ("**.moe_load_balance_metrics_interval", Ignored("actor/router_max_violation and its neighbours are reported in every step")),
    ("**.freeze_vision_tower", Ignored(NO_IMAGES)),
];

/// The rows for the engine settings of a rollout group; `trainer generate` has the same group with a shorter prefix.
macro_rules! engine {
    ($at:literal) => {
        &[
            (concat!($at, "name"), Ignored("the native engine generates")),
            (concat!($at, "mode"), Ignored(NO_ASYNC)),
            (concat!($at, "dtype"), Ignored("generation uses the number format of training")),
            (concat!($at, "quantization"), Refused(NO_QAT)),
            (concat!($at, "quantization_config_file"), Ignored(NO_QAT)),
            (concat!($at, "gpu_memory_utilization"), Ignored(NATIVE)),
            (concat!($at, "cudagraph_capture_sizes"), Ignored("a decode step is recorded for the next power of two of the number of sequences")),
            (concat!($at, "free_cache_engine"), Ignored(NATIVE)),
            (concat!($at, "load_format"), Ignored(NATIVE)),
            (concat!($at, "layered_summon"), Ignored(NATIVE)),
            (concat!($at, "multi_stage_wake_up"), Ignored(NATIVE)),
            (concat!($at, "disable_log_stats"), Ignored(NATIVE)),
            (concat!($at, "skip_tokenizer_init"), Ignored(NATIVE)),
            (concat!($at, "router_config_path"), Ignored(NATIVE)),
            (concat!($at, "update_weights_bucket_megabytes"), Ignored(NATIVE)),
            (concat!($at, "use_fire_sampling"), Refused("all tokens of a response are sampled with the same settings")),
            (concat!($at, "engine_kwargs.**"), Ignored(NATIVE)),
            (concat!($at, "checkpoint_engine.**"), Ignored(NATIVE)),
            (concat!($at, "layer_name_map.**"), Ignored(NATIVE)),
            (concat!($at, "enable_chunked_prefill"), Ignored("prompts are not split; max_num_batched_tokens limits a pass")),
            (concat!($at, "enable_prefix_caching"), Ignored("the samples of a prompt always share its prefill")),
            (concat!($at, "scheduling_policy"), Ignored("prompts are taken in order")),
            (concat!($at, "seed"), Ignored("trainer.seed is the seed of sampling")),
            (concat!($at, "full_determinism"), Ignored("generation is always deterministic on the CPU")),
            (concat!($at, "*_parallel_size"), Ignored(ALL_WEIGHTS)),
            (concat!($at, "nnodes"), Ignored(TOGETHER)),
            (concat!($at, "n_gpus_per_node"), Ignored(TOGETHER)),
            (concat!($at, "disaggregation.enabled"), Refused(TOGETHER)),
            (concat!($at, "disaggregation.**"), Ignored(TOGETHER)),
            (concat!($at, "prometheus.**"), Ignored("there is no server to monitor")),
            (concat!($at, "trace.**"), Ignored("trajectories are not traced; trainer.rollout_data_dir writes them to files")),
            (concat!($at, "skip.enable"), Refused(NO_SKIP)),
            (concat!($at, "skip.**"), Ignored(NO_SKIP)),
            (concat!($at, "skip_rollout"), Refused(NO_SKIP)),
            (concat!($at, "skip_dump_dir"), Ignored(NO_SKIP)),
            (concat!($at, "over_sample_rate"), Refused("only responses that are used are generated")),
            (
                concat!($at, "single_turn_response_length"),
                Refused("every turn may use the rest of data.max_response_length"),
            ),
            (concat!($at, "sglang_engine_mode"), Ignored(NATIVE)),
            (concat!($at, "server.**"), Ignored(NATIVE)),
            // Conversations.
            (concat!($at, "agent.custom_async_server.path"), Refused(NATIVE)),
            (concat!($at, "agent.custom_async_server.**"), Ignored(NATIVE)),
            (
                concat!($at, "agent.num_workers"),
                Ignored("one process runs all conversations, with a Python process for each"),
            ),
            (concat!($at, "agent.agent_loop_manager_class"), Refused(AGENT_LOOP)),
            (concat!($at, "multi_turn.max_turns"), Renamed(concat!($at, "multi_turn.max_assistant_turns"))),
            (concat!($at, "multi_turn.completion_callback"), Refused(AGENT_LOOP)),
            (concat!($at, "multi_turn.use_inference_chat_template"), Ignored(KEEPS_IDS)),
            (concat!($at, "multi_turn.tokenization_sanity_check_mode"), Ignored(KEEPS_IDS)),
            (concat!($at, "multi_turn.num_repeat_rollouts"), Ignored("only rollout.n sets the number of responses")),
            (concat!($at, "chat_scheduler.**"), Refused(AGENT_LOOP)),
        ]
    };
}
pub(super) const RL_ENGINE: &[(&str, KeyTreatment)] = engine!("actor_rollout_ref.rollout.");
pub(super) const GENERATION_ENGINE: &[(&str, KeyTreatment)] = engine!("rollout.");

/// Rows of reinforcement learning.
pub(super) const RL: &[(&str, KeyTreatment)] = &[
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
    ("trainer.remove_previous_ckpt_in_save", Sets("trainer.max_actor_ckpt_to_keep", "1")),
    // The policy.
    ("actor_rollout_ref.hybrid_engine", Refused("actor and rollout always share one set of weights")),
    (
        "actor_rollout_ref.model.custom_chat_template",
        Refused("the tokenizer's chat template is used: put the template into tokenizer_config.json"),
    ),
    ("actor_rollout_ref.model.override_config.attn_implementation", Ignored(NO_TORCH)),
    ("actor_rollout_ref.model.override_config.model_config.**", Renamed("actor_rollout_ref.model.override_config.**")),
    ("actor_rollout_ref.ref.optim.**", Ignored("the reference is not trained")),
    ("actor_rollout_ref.*.profile.**", Ignored(NO_PROFILER)),
    ("trainer.checkpoint_callback_class", Refused(NO_PYTHON)),
    ("actor_rollout_ref.model.torch_dtype", Ignored(ONE_DTYPE)),
    ("actor_rollout_ref.actor.calculate_entropy", Ignored("the entropy is always reported")),
    ("actor_rollout_ref.*.rollout_n", Ignored("only actor_rollout_ref.rollout.n sets the number of responses")),
    ("actor_rollout_ref.actor.sum_pi_squared_checkpointing", Ignored("the head always works in chunks of tokens")),
    ("model_engine", Ignored("it selects a training framework")),
    // Data.
    (
        "data.custom_cls.path",
        Refused("custom dataset classes are not supported: only rewards, tools and environments may be Python"),
    ),
    ("data.custom_cls.name", Ignored(NO_PYTHON)),
    ("data.sampler.class_path", Refused(NO_PYTHON)),
    ("data.sampler.class_name", Ignored(NO_PYTHON)),
    ("data.datagen.path", Refused(NO_PYTHON)),
    ("data.datagen.name", Ignored(NO_PYTHON)),
    ("data.tool_config_path", Renamed("actor_rollout_ref.rollout.multi_turn.tool_config_path")),
    ("data.function_tool_path", Renamed("actor_rollout_ref.rollout.multi_turn.function_tool_path")),
    ("data.need_tools_kwargs", Ignored("it only enables a warning in verl; a tool always gets its arguments from the row")),
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
    ("critic.fsdp.seed", Ignored(SEED_SETTING)),
    ("critic.fsdp.**", Ignored(SHARDED)),
    ("critic.kl_ctrl.**", Ignored("it has no reader: algorithm.kl_ctrl holds the KL controller")),
    ("critic.rollout_n", Ignored("only actor_rollout_ref.rollout.n sets the number of responses")),
    ("critic.model.tokenizer_path", Ignored("the critic reads the tokens of the policy")),
    ("critic.model.override_config.model_config.**", Renamed("critic.model.override_config.**")),
    ("critic.model.override_config.moe_config.**", Ignored(FREEZES_ROUTER)),
    ("critic.model.custom_chat_template", Ignored("the critic reads the tokens of the policy")),
    ("reward_model.reward_loop_class_name", Refused(NO_PYTHON)),
    ("reward_model.reward_loop_module_path", Refused(NO_PYTHON)),
    ("reward_model.launch_reward_fn_async", Ignored("responses are always scored while others are generated")),
    ("reward_model.use_reward_loop", Ignored("responses are always scored while others are generated")),
    ("reward_model.reward_loop_source", Ignored(NO_PYTHON)),
    ("reward_model.reward_kwargs.**", Unread("only the reward manager dapo has such settings")),
    ("reward_model.model.override_config.**", Refused(CONFIG_OF_MODEL)),
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
        Refused("the policy gradient of a teacher uses the loss vanilla, as in verl"),
    ),
    ("distillation.teacher_models.teacher_model.inference.**", Ignored("the teacher runs forward passes in this process")),
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
    ("env.**", Refused("verl's simulated environments are not supported")),
    ("actor_rollout_ref.actor.num_images_in_input", Refused(NO_IMAGES)),
    ("actor_rollout_ref.*.engine.**", Ignored(SHARDED)),
    ("critic.engine.**", Ignored(SHARDED)),
    ("actor_rollout_ref.actor.model_engine", Ignored("it selects a training framework")),
];

/// Rows of supervised fine-tuning: `fsdp_sft_trainer` (until 2026-01) and `sft_trainer`.
pub(super) const SFT: &[(&str, KeyTreatment)] = &[
    ("trainer.wandb_proxy", Ignored("the environment variable https_proxy does the same")),
    ("model.partial_pretrain", Renamed("model.path")),
    ("data.micro_batch_size", Renamed("data.micro_batch_size_per_gpu")),
    ("data.multiturn.enable", SetsFrom("data.messages_key", "data.multiturn.messages_key")),
    ("data.multiturn.messages_key", Ignored("prompt_key and response_key are read unless data.multiturn.enable is true")),
    ("data.multiturn.tools_key", Renamed("data.tools_key")),
    ("data.multiturn.enable_thinking_key", Renamed("data.enable_thinking_key")),
    ("data.chat_template", Renamed("model.custom_chat_template")),
    (
        "data.enable_thinking_default",
        Refused("set data.apply_chat_template_kwargs.enable_thinking, which applies to all examples"),
    ),
    ("optim.warmup_steps_ratio", Renamed("optim.lr_warmup_steps_ratio")),
    ("trainer.resume_path", Refused("set trainer.resume_mode=resume_path and trainer.resume_from_path")),
    ("optim.lr_scheduler", Renamed("optim.lr_scheduler_type")),
    ("optim.warmup_style", Renamed("optim.lr_scheduler_type")),
    ("optim.lr_decay_style", Renamed("optim.lr_scheduler_type")),
    ("trainer.checkpoint.**", Renamed("checkpoint.**")),
    ("model.override_config.attn_implementation", Ignored(NO_TORCH)),
    (
        "data.custom_cls.path",
        Refused("custom dataset classes are not supported: only rewards, tools and environments may be Python"),
    ),
    ("data.custom_cls.name", Ignored(NO_PYTHON)),
    ("data.ignore_input_ids_mismatch", Refused("an example with inconsistent messages is an error")),
    ("data.pad_mode", Ignored(NO_PADDING)),
    ("data.balance_dp_token", Ignored("trainer.balance_batch balances slices by tokens or rows")),
    ("data.num_workers", Ignored("rows are read before the first step")),
    ("engine.qat.enable", Refused(NO_QAT)),
    ("engine.enable_fp8", Refused(NO_QAT)),
    ("engine.*dtype", Ignored(ONE_DTYPE)),
    ("engine.mixed_precision.**", Ignored(ONE_DTYPE)),
    ("engine.seed", Ignored(SEED_SETTING)),
    ("engine.use_dist_checkpointing", Refused(WEIGHTS_OF_MODEL)),
    ("engine.**", Ignored(SHARDED)),
];

/// Rows of `trainer eval`.
pub(super) const EVALUATION: &[(&str, KeyTreatment)] = &[];

/// Rows of `trainer generate`. verl's generation server reads the configuration of reinforcement learning.
pub(super) const GENERATION: &[(&str, KeyTreatment)] = &[
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
    ("rollout.n", Ignored("data.n_samples sets the number of responses")),
    ("rollout.val_kwargs.**", Ignored(GENERATION_READS)),
    ("rollout.calculate_log_probs", Ignored("generation writes only texts")),
    ("rollout.logprobs_mode", Ignored("generation writes only texts")),
    ("rollout.log_prob_*", Ignored("generation writes only texts")),
];

/// Values of settings that only verl has: the key, the values, the value that is used instead, and the reason.
pub const VALUES: &[(&str, &[&str], &str, &str)] = &[
    (
        "trainer.logger",
        &["rl_logging_board", "tracking"],
        "file",
        "this tracker is not supported; `trainer report` shows responses token by token",
    ),
    ("trainer.device", &["npu"], "cuda", "Ascend devices are not supported; set trainer.device to one of `trainer devices`"),
    ("actor_rollout_ref.rollout.multi_turn.format", &["qwen", "qwen25"], "hermes", QWEN_IS_HERMES),
    ("rollout.multi_turn.format", &["qwen", "qwen25"], "hermes", QWEN_IS_HERMES),
];
