//! Options of transformers' `TrainingArguments`, which every trainer of TRL has.

use crate::peers::OptionTreatment::{Ignored, Key, Read, Refused};
use crate::peers::TreatmentRow;

const PROCESSES: &str = "mpirun starts the processes, which shard only the optimizer state (docs/scale-out.md)";
const NO_TORCH: &str = "fused operations are built in, without torch";
const NO_UPLOAD: &str = "a run never uploads; run `trainer export CHECKPOINT --push-to-hub NAME`";
const NO_LOADER: &str = "rows are in memory, without a data loader";
const ONE_DTYPE: &str = "weights, optimizer and losses are float32; `bf16` sets the precision of matmuls";
const EVALUATION: &str = "validation has its own metrics";
const NO_LOW_RANK: &str = "low-rank gradient projection is not supported; LoRA is `lora_rank`";

const STAGES: &str = "sft dpo kto orpo cpo tpo reward gkd gold";

pub(super) const ROWS: &[TreatmentRow] = &[
    // The length of the run.
    ("output_dir", "", Key("trainer.default_local_dir")),
    ("overwrite_output_dir", "", Ignored("an existing run is resumed; trainer.resume_mode=disable starts again")),
    ("num_train_epochs", "", Read("`trainer.total_epochs`, rounded up")),
    ("max_steps", "", Read("`trainer.total_training_steps`: TRL counts updates, and a step can have several")),
    ("resume_from_checkpoint", "", Refused("checkpoints of transformers are not supported; trainer.resume_mode resumes a run")),
    ("do_train do_eval do_predict", "", Ignored("the other options determine this")),
    // The batch.
    (
        "per_device_train_batch_size per_gpu_train_batch_size",
        "",
        Read("the micro-batch; times accumulation and processes: `ppo_mini_batch_size` in prompts, or `data.train_batch_size`"),
    ),
    ("gradient_accumulation_steps", "", Read("a factor of the batch size")),
    (
        "per_device_eval_batch_size per_gpu_eval_batch_size eval_accumulation_steps",
        STAGES,
        Ignored("validation uses the micro-batches of training"),
    ),
    (
        "per_device_eval_batch_size per_gpu_eval_batch_size eval_accumulation_steps",
        "",
        Ignored("validation generates for all prompts together; data.val_batch_size limits the number"),
    ),
    ("auto_find_batch_size", "", Refused("set the micro-batch size; --dry-run estimates the memory")),
    ("average_tokens_across_devices", "", Ignored("always on: the loss is normalised over the mini-batch of all processes")),
    (
        "train_sampling_strategy",
        STAGES,
        Read("`data.shuffle=false` for `sequential`; otherwise a seeded order, with a note for `group_by_length`"),
    ),
    (
        "group_by_length train_sampling_strategy length_column_name",
        "",
        Ignored("rows are packed without padding, so that their order does not save time"),
    ),
    // The optimizer.
    ("learning_rate", "", Read("`actor_rollout_ref.actor.optim.lr`, for PPO also `critic.optim.lr`, in SFT `optim.lr`")),
    ("weight_decay", "", Read("`weight_decay` next to `lr`, with transformers' exceptions: `no_decay_name_list: [bias, norm]`")),
    ("adam_beta1 adam_beta2", "", Read("`betas` next to `lr`, a list of two")),
    ("adam_epsilon", "", Read("`eps` next to `lr`")),
    (
        "max_grad_norm",
        "",
        Read("`actor_rollout_ref.actor.grad_clip`, in SFT `optim.clip_grad`; 1e9 for 0 and by default in the original trainers"),
    ),
    (
        "lr_scheduler_type",
        "",
        Read("`lr_scheduler_type` next to `lr`, see [Schedules](#schedules); `reduce_lr_on_plateau` and `greedy` are refused"),
    ),
    (
        "lr_scheduler_kwargs",
        "",
        Read("the settings of the schedule next to `lr`, see [Schedules](#schedules); others are refused"),
    ),
    ("warmup_steps", "", Read("`lr_warmup_steps` next to `lr`, in steps; a value below 1 is a ratio, as in transformers 5")),
    ("warmup_ratio", "", Read("`lr_warmup_steps_ratio` next to `lr`")),
    (
        "optim",
        "",
        Read("`optimizer` next to `lr`: `AdamW`, `AdamW8bit` (such as `adamw_bnb_8bit`), `SGD`, `Adafactor`; others are refused"),
    ),
    ("adafactor", "", Read("`optimizer=Adafactor` next to `lr`")),
    (
        "optim_args",
        "",
        Read("`momentum`, `dampening`, `nesterov` of `sgd`, in `override_optimizer_config`; unused by other optimizers"),
    ),
    ("optim_target_modules", "", Refused(NO_LOW_RANK)),
    ("label_smoothing_factor", "", Refused("only `trainer sft` has label smoothing of tokens")),
    ("neftune_noise_alpha", "", Refused("only `trainer sft` adds noise to embeddings")),
    // Precision and memory.
    ("bf16", "", Read("`actor_rollout_ref.model.dtype`, in SFT `model.dtype`: `bfloat16` or `float32`; `auto` if not given")),
    ("fp16", "", Refused("float16 is not supported: use bf16")),
    ("fp16_opt_level fp16_backend half_precision_backend bf16_full_eval fp16_full_eval tf32", "", Ignored(ONE_DTYPE)),
    (
        "gradient_checkpointing activation_checkpointing",
        "",
        Read("`enable_gradient_checkpointing` of the model; does not change results"),
    ),
    (
        "gradient_checkpointing_kwargs activation_checkpointing_kwargs",
        "",
        Ignored("there is only one way to recompute activations"),
    ),
    ("torch_compile torch_compile_backend torch_compile_mode torchdynamo", "", Ignored(NO_TORCH)),
    ("use_liger_kernel liger_kernel_config", "", Ignored(NO_TORCH)),
    ("torch_empty_cache_steps use_cache jit_mode_eval use_ipex past_index", "", Ignored(NO_TORCH)),
    ("use_cpu no_cuda", "", Read("`trainer.device=cpu`, the default")),
    ("use_mps_device", "", Ignored("for a Mac's GPU, set trainer.device=metal")),
    (
        "skip_memory_metrics include_num_input_tokens_seen include_tokens_per_second",
        "",
        Ignored("the metrics perf/* report memory, speed and token counts"),
    ),
    ("full_determinism", "", Ignored("always on: the same seed gives the same bytes")),
    // Logs.
    ("logging_strategy logging_steps logging_first_step", "", Ignored("metrics are logged in every step")),
    ("logging_nan_inf_filter", "", Ignored("NaN or infinity ends a run; trainer.on_nonfinite=skip skips the update")),
    ("log_level log_level_replica log_on_each_node disable_tqdm debug", "", Ignored("RUST_LOG sets the log level")),
    ("logging_dir", "", Ignored("the environment variable TENSORBOARD_DIR sets the folder")),
    ("report_to", "", Read("`trainer.logger`, a list; a note in the recipe names unsupported trackers")),
    ("run_name exp_name", "", Read("`trainer.experiment_name`")),
    ("project", "", Key("trainer.project_name")),
    ("trackio_space_id trackio_bucket_id trackio_static_space_id", "", Ignored(NO_UPLOAD)),
    // Evaluation.
    ("eval_strategy evaluation_strategy", "", Read("`trainer.test_freq`: −1 for `no`, `after_each_epoch` for `epoch`")),
    ("eval_steps", "", Read("`trainer.test_freq`, in steps")),
    ("eval_on_start", "", Read("`trainer.val_before_train`")),
    ("eval_delay", "", Read("`trainer.eval_delay`, in steps")),
    ("prediction_loss_only eval_do_concat_batches eval_use_gather_object batch_eval_metrics", "", Ignored(EVALUATION)),
    ("include_inputs_for_metrics include_for_metrics label_names use_legacy_prediction_loop", "", Ignored(EVALUATION)),
    (
        "load_best_model_at_end",
        STAGES,
        Read("`trainer.metric_for_best_model`, default `val/loss`; `trainer export RUN --best` exports the best checkpoint"),
    ),
    (
        "metric_for_best_model",
        STAGES,
        Read("`trainer.metric_for_best_model`: `eval_loss` and `loss` become `val/loss`, other names likewise"),
    ),
    (
        "greater_is_better",
        STAGES,
        Read("`trainer.greater_is_better`, with a metric; default true unless its name ends in `loss`"),
    ),
    ("load_best_model_at_end", "", Refused("set trainer.metric_for_best_model, and run `trainer export RUN --best`")),
    ("metric_for_best_model", "", Refused("set trainer.metric_for_best_model to a metric such as val-core/…/acc/mean@1")),
    ("greater_is_better", "", Ignored("an option of metric_for_best_model")),
    // Checkpoints.
    ("save_strategy", "", Read("`trainer.save_freq`: −1 for `no`, `after_each_epoch` for `epoch`")),
    ("save_steps", "", Read("`trainer.save_freq`, in steps")),
    ("save_total_limit", "", Read("`trainer.max_actor_ckpt_to_keep`, in SFT `trainer.max_ckpt_to_keep`")),
    ("save_only_model", "", Read("`save_contents: [model]` of `actor_rollout_ref.actor.checkpoint`, in SFT of `checkpoint`")),
    ("save_safetensors", "", Ignored("weights are always safetensors")),
    ("save_on_each_node", "", Ignored("the first process writes the checkpoints to a folder that all processes share")),
    ("enable_jit_checkpoint", "", Ignored("always on: a run that receives a signal to end saves its state")),
    ("ignore_data_skip restore_callback_states_from_checkpoint", "", Ignored("a resumed run continues exactly, byte by byte")),
    // The Hub.
    ("push_to_hub hub_token hub_private_repo hub_model_id", "", Ignored(NO_UPLOAD)),
    ("hub_strategy hub_always_push hub_revision", "", Ignored(NO_UPLOAD)),
    ("push_to_hub_model_id push_to_hub_organization push_to_hub_token", "", Ignored(NO_UPLOAD)),
    // Random numbers and data.
    ("seed", "", Read("`trainer.seed`, and `data.seed` unless `data_seed` is given")),
    ("data_seed", "", Read("`data.seed`")),
    ("dataloader_drop_last", "", Ignored("an incomplete last batch of an epoch is always left out")),
    ("dataloader_num_workers dataloader_pin_memory dataloader_persistent_workers", "", Ignored(NO_LOADER)),
    ("dataloader_prefetch_factor dataloader_multiprocessing_context dataloader_in_order", "", Ignored(NO_LOADER)),
    ("remove_unused_columns", STAGES, Ignored("only columns that settings name are read")),
    ("remove_unused_columns", "", Ignored("all columns are passed to the reward functions, and to nothing else")),
    // Several devices.
    ("local_rank ddp_find_unused_parameters ddp_bucket_cap_mb ddp_broadcast_buffers ddp_static_graph", "", Ignored(PROCESSES)),
    ("ddp_backend fsdp fsdp_config fsdp_min_num_params fsdp_transformer_layer_cls_to_wrap", "", Ignored(PROCESSES)),
    ("ddp_timeout", "", Ignored("set `actor_rollout_ref.nccl_timeout`, in SFT `trainer.nccl_timeout`")),
    ("deepspeed accelerator_config parallelism_config mp_parameters ray_scope", "", Ignored(PROCESSES)),
    ("dispatch_batches split_batches", "", Ignored("every process has all rows of a batch, and processes its share")),
    ("tpu_num_cores tpu_metrics_debug", "", Ignored("TPUs are not supported")),
];
