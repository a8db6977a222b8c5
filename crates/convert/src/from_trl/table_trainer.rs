//! Options of transformers' `TrainingArguments`, which every trainer of TRL has.

use crate::peers::OptionTreatment::{Ignored, Key, Read, Refused};
use crate::peers::TreatmentRow;

const PROCESSES: &str = "mpirun starts the processes; optimizer state is shared out over them, weights are whole in each, and nothing is offloaded (docs/scale-out.md)";
const NO_TORCH: &str = "there is no torch: the fused operations are built in";
const NO_UPLOAD: &str = "a run uploads nothing; `trainer export CHECKPOINT --push-to-hub NAME` does";
const NO_LOADER: &str = "rows are in memory, and need no loader";
const ONE_DTYPE: &str = "weights, optimizer and losses are float32; bf16 chooses the numbers of matrix products";
const EVALUATION: &str = "validation is a forward pass or sampling, with metrics of its own";
const NO_LOW_RANK: &str = "no optimizer here works on low-rank projections of gradients: LoRA is `lora_rank`";

const STAGES: &str = "sft dpo kto orpo cpo reward gkd";

pub const ROWS: &[TreatmentRow] = &[
    // The length of the run.
    ("output_dir", "", Key("trainer.default_local_dir")),
    ("overwrite_output_dir", "", Ignored("a run that is there is resumed; trainer.resume_mode=disable starts afresh")),
    ("num_train_epochs", "", Read("`trainer.total_epochs`, rounded up")),
    ("max_steps", "", Read("`trainer.total_training_steps`: TRL counts updates, a step here may have several")),
    (
        "resume_from_checkpoint",
        "",
        Refused("a checkpoint of transformers is not read; a run here resumes by itself (trainer.resume_mode)"),
    ),
    ("do_train do_eval do_predict", "", Ignored("the other options say what is done")),
    // The batch.
    (
        "per_device_train_batch_size per_gpu_train_batch_size",
        "",
        Read(
            "with `gradient_accumulation_steps` and the number of processes, the responses of an update: `actor_rollout_ref.actor.ppo_mini_batch_size` in prompts, in SFT `data.train_batch_size`; itself the micro-batch, which changes no result",
        ),
    ),
    ("gradient_accumulation_steps", "", Read("a factor of the batch")),
    (
        "per_device_eval_batch_size per_gpu_eval_batch_size eval_accumulation_steps",
        STAGES,
        Ignored("validation is over all of its rows, in passes like those of training"),
    ),
    (
        "per_device_eval_batch_size per_gpu_eval_batch_size eval_accumulation_steps",
        "",
        Ignored("validation takes all prompts at once; data.val_batch_size bounds them"),
    ),
    ("auto_find_batch_size", "", Refused("set the micro-batch, which changes no result: --dry-run estimates the memory")),
    (
        "average_tokens_across_devices",
        "",
        Ignored("always so: the loss is normalised over the whole mini-batch, that of all processes"),
    ),
    (
        "train_sampling_strategy",
        STAGES,
        Read(
            "`data.shuffle=false` for `sequential`; the order is a seeded one otherwise, and a recipe says so of `group_by_length`",
        ),
    ),
    (
        "group_by_length train_sampling_strategy length_column_name",
        "",
        Ignored("rows are packed without padding, so that their order saves nothing; it stays the seeded one"),
    ),
    // The optimizer.
    ("learning_rate", "", Read("`actor_rollout_ref.actor.optim.lr`, for PPO `critic.optim.lr` too, in SFT `optim.lr`")),
    (
        "weight_decay",
        "",
        Read(
            "`weight_decay` beside it, with `no_decay_name_list: [bias, norm]`, because transformers leaves biases and the weights of norms out",
        ),
    ),
    ("adam_beta1 adam_beta2", "", Read("`betas` beside it, a list of two")),
    ("adam_epsilon", "", Read("`eps` beside it")),
    (
        "max_grad_norm",
        "",
        Read(
            "`actor_rollout_ref.actor.grad_clip`, in SFT `optim.clip_grad`; 0 is 1e9. The original RLOO and PPO trainers read it nowhere: 1e9, unless it is given",
        ),
    ),
    (
        "lr_scheduler_type",
        "",
        Read(
            "`lr_scheduler_type` beside it: every name but `reduce_lr_on_plateau` and `greedy`, which are refused; `constant` skips the warm-up, `cosine_warmup_with_min_lr` is `cosine` with `zero_indexed_step=false`, `warmup_stable_decay` is `wsd`",
        ),
    ),
    (
        "lr_scheduler_kwargs",
        "",
        Read(
            "`num_cycles`, `min_lr` and `lr_end` as `min_lr`, `min_lr_rate` and `min_lr_ratio` as `min_lr_ratio`, `power`, `timescale`, `num_decay_steps` and `decay_type` as `lr_wsd_decay_steps` and `lr_wsd_decay_style`, for the schedules that have them; others are refused by name",
        ),
    ),
    ("warmup_steps", "", Read("`lr_warmup_steps` beside it, in steps; a value below 1 is a ratio, as in transformers 5")),
    ("warmup_ratio", "", Read("`lr_warmup_steps_ratio` beside it")),
    (
        "optim",
        "",
        Read(
            "`optimizer` beside it: AdamW under any of its names, `adamw_bnb_8bit` and its kin as `AdamW8bit`, `sgd` as `SGD`, `adafactor` as `Adafactor`; others are refused by name",
        ),
    ),
    ("adafactor", "", Read("`optimizer=Adafactor` beside it")),
    (
        "optim_args",
        "",
        Read(
            "of `sgd`: `momentum`, `dampening` and `nesterov` in `override_optimizer_config`; transformers gives the others none",
        ),
    ),
    ("optim_target_modules", "", Refused(NO_LOW_RANK)),
    ("label_smoothing_factor", "", Refused("`trainer sft` alone has label smoothing of tokens")),
    ("neftune_noise_alpha", "", Refused("`trainer sft` alone puts noise on embeddings")),
    // Numbers and memory.
    (
        "bf16",
        "",
        Read(
            "`actor_rollout_ref.model.dtype`, in SFT `model.dtype`: `bfloat16` or `float32` where it is given, else `auto`, which is bfloat16 on a GPU that computes in it",
        ),
    ),
    ("fp16", "", Refused("float16 is not here: bf16")),
    ("fp16_opt_level fp16_backend half_precision_backend bf16_full_eval fp16_full_eval tf32", "", Ignored(ONE_DTYPE)),
    (
        "gradient_checkpointing activation_checkpointing",
        "",
        Read("`enable_gradient_checkpointing` of the model; changes no result"),
    ),
    ("gradient_checkpointing_kwargs activation_checkpointing_kwargs", "", Ignored("there is one way to recompute activations")),
    (
        "torch_compile torch_compile_backend torch_compile_mode torchdynamo use_liger_kernel liger_kernel_config",
        "",
        Ignored(NO_TORCH),
    ),
    ("torch_empty_cache_steps use_cache jit_mode_eval use_ipex past_index", "", Ignored(NO_TORCH)),
    ("use_cpu no_cuda", "", Read("`trainer.device=cpu`, which is the default here")),
    ("use_mps_device", "", Ignored("a Mac's GPU is trainer.device=metal")),
    (
        "skip_memory_metrics include_num_input_tokens_seen include_tokens_per_second",
        "",
        Ignored("perf/* has memory and speed, and the number of tokens"),
    ),
    ("full_determinism", "", Ignored("always so: the same seed gives the same bytes")),
    // Logs.
    ("logging_strategy logging_steps logging_first_step", "", Ignored("every step is reported")),
    ("logging_nan_inf_filter", "", Ignored("numbers that are not finite end a run; trainer.on_nonfinite=skip goes on")),
    ("log_level log_level_replica log_on_each_node disable_tqdm debug", "", Ignored("RUST_LOG says what is logged")),
    ("logging_dir", "", Ignored("the environment variable TENSORBOARD_DIR names the folder")),
    ("report_to", "", Read("`trainer.logger`, a list; trackers that are not here are named")),
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
        Read(
            "`trainer.metric_for_best_model`, `val/loss` unless another is named; `trainer export RUN --best` takes the best checkpoint",
        ),
    ),
    (
        "metric_for_best_model",
        STAGES,
        Read(
            "`trainer.metric_for_best_model`: `eval_loss` and `loss` are `val/loss`, `eval_mean_token_accuracy` is `val/mean_token_accuracy`, and so on",
        ),
    ),
    (
        "greater_is_better",
        STAGES,
        Read("`trainer.greater_is_better`, with a metric; without it true for every metric whose name does not end in `loss`"),
    ),
    (
        "load_best_model_at_end",
        "",
        Refused("set trainer.metric_for_best_model, and take the best checkpoint by `trainer export RUN --best`"),
    ),
    (
        "metric_for_best_model",
        "",
        Refused("metrics have names of their own: set trainer.metric_for_best_model, such as val-core/…/acc/mean@1"),
    ),
    ("greater_is_better", "", Ignored("it belongs to metric_for_best_model")),
    // Checkpoints.
    ("save_strategy", "", Read("`trainer.save_freq`: −1 for `no`, `after_each_epoch` for `epoch`")),
    ("save_steps", "", Read("`trainer.save_freq`, in steps")),
    ("save_total_limit", "", Read("`trainer.max_actor_ckpt_to_keep`, in SFT `trainer.max_ckpt_to_keep`")),
    ("save_only_model", "", Read("`[model]` as `save_contents` of `actor_rollout_ref.actor.checkpoint`, in SFT of `checkpoint`")),
    ("save_safetensors", "", Ignored("weights are always safetensors")),
    ("save_on_each_node", "", Ignored("of several processes the first writes the checkpoints, which all of them must see")),
    ("enable_jit_checkpoint", "", Ignored("always so: a run that is told to end saves its state")),
    ("ignore_data_skip restore_callback_states_from_checkpoint", "", Ignored("a resumed run goes on where it was, to the byte")),
    // The Hub.
    ("push_to_hub hub_token hub_private_repo hub_model_id hub_strategy hub_always_push hub_revision", "", Ignored(NO_UPLOAD)),
    ("push_to_hub_model_id push_to_hub_organization push_to_hub_token", "", Ignored(NO_UPLOAD)),
    // Random numbers and data.
    ("seed", "", Read("`trainer.seed`, and `data.seed` unless `data_seed` is given")),
    ("data_seed", "", Read("`data.seed`")),
    ("dataloader_drop_last", "", Ignored("the last rows of an epoch that fill no batch are left out")),
    ("dataloader_num_workers dataloader_pin_memory dataloader_persistent_workers", "", Ignored(NO_LOADER)),
    ("dataloader_prefetch_factor dataloader_multiprocessing_context dataloader_in_order", "", Ignored(NO_LOADER)),
    ("remove_unused_columns", STAGES, Ignored("columns that no setting names are not read")),
    ("remove_unused_columns", "", Ignored("every column reaches the reward functions, and nothing else")),
    // Several devices.
    ("local_rank ddp_find_unused_parameters ddp_bucket_cap_mb ddp_broadcast_buffers ddp_static_graph", "", Ignored(PROCESSES)),
    ("ddp_backend fsdp fsdp_config fsdp_min_num_params fsdp_transformer_layer_cls_to_wrap", "", Ignored(PROCESSES)),
    ("ddp_timeout", "", Ignored("the patience of processes is `actor_rollout_ref.nccl_timeout`, in SFT `trainer.nccl_timeout`")),
    ("deepspeed accelerator_config parallelism_config mp_parameters ray_scope", "", Ignored(PROCESSES)),
    ("dispatch_batches split_batches", "", Ignored("every process has all rows of a batch, and works on its share of them")),
    ("tpu_num_cores tpu_metrics_debug", "", Ignored("the device is trainer.device, and no TPU is one")),
];
