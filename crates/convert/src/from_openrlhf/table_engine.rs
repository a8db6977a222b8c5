//! Options of OpenRLHF about machines, engines, checkpoints and logs.

use crate::peers::OptionTreatment::{Ignored, Key, Read, Refused};
use crate::peers::TreatmentRow;

const TOGETHER: &str = "mpirun starts one process per device, and each holds all models (docs/scale-out.md)";
const SHARDED: &str = "the processes shard only the optimizer state (docs/scale-out.md)";
const WHOLE: &str = "each process holds all weights";
pub(super) const NO_OFFLOAD: &str = "models stay on the device of their process";
const NATIVE: &str = "the built-in engine generates, directly with the trained weights";
const NO_TORCH: &str = "fused operations are built in, without torch";

const ONE_RECOMPUTE: &str = "there is only one way to recompute activations";

pub(super) const ROWS: &[TreatmentRow] = &[
    // Checkpoints and the run.
    ("ckpt.path ckpt_path", "", Key("trainer.default_local_dir")),
    ("ckpt.output_dir save_path", "", Ignored("`trainer export` writes the model of a checkpoint to a folder")),
    ("ckpt.save_steps save_steps", "", Key("trainer.save_freq")),
    ("ckpt.max_num max_ckpt_num", "", Read("`trainer.max_actor_ckpt_to_keep`, in SFT `trainer.max_ckpt_to_keep`")),
    ("ckpt.max_mem max_ckpt_mem", "", Ignored("checkpoints are limited by number, not by size")),
    ("ckpt.load_enable load_checkpoint", "", Ignored("an existing run is resumed (trainer.resume_mode)")),
    ("ckpt.save_hf save_hf_ckpt", "", Ignored("every checkpoint has the model in Hugging Face format")),
    ("ckpt.disable_ds disable_ds_ckpt", "", Ignored("save_contents sets the contents of checkpoints")),
    (
        "ckpt.best_metric_key best_metric_key",
        "",
        Refused("set trainer.metric_for_best_model to a metric such as val-core/…/acc/mean@1"),
    ),
    (
        "ds.use_universal_ckpt use_ds_universal_ckpt universal_ckpt",
        "",
        Ignored("always on: a checkpoint is the same for any number of processes"),
    ),
    ("torch_compile", "", Ignored("operations are fused without a compiler")),
    ("critic.save_value_network save_value_network", "", Ignored("always on: a checkpoint contains policy and critic")),
    ("train.seed seed", "", Read("`trainer.seed` and `data.seed`")),
    ("train.full_determinism_enable full_determinism", "", Ignored("always on: the same seed gives the same bytes")),
    // Logs.
    ("logger.logging_steps logging_steps", "", Ignored("metrics are logged in every step")),
    ("logger.wandb.key use_wandb", "", Read("`wandb` in `trainer.logger`; the key comes from WANDB_API_KEY")),
    ("logger.wandb.org wandb_org logger.wandb.group wandb_group", "", Ignored("set WANDB_ENTITY and WANDB_RUN_GROUP")),
    ("logger.wandb.project wandb_project", "", Key("trainer.project_name")),
    ("logger.wandb.run_name wandb_run_name", "", Read("`trainer.experiment_name`")),
    ("logger.tensorboard_dir use_tensorboard", "", Read("`tensorboard` in `trainer.logger`; TENSORBOARD_DIR sets the folder")),
    ("perf", "", Ignored("the metrics timing_s/* and perf/* report the time of each phase")),
    // Generation.
    ("vllm.num_engines vllm_num_engines vllm.tensor_parallel_size vllm_tensor_parallel_size", "", Ignored(NATIVE)),
    ("vllm.sync_backend vllm_sync_backend vllm.sync_with_ray vllm_sync_with_ray", "", Ignored(NATIVE)),
    ("vllm.enable_prefix_caching enable_prefix_caching", "", Ignored(NATIVE)),
    ("vllm.enforce_eager enforce_eager", "", Key("actor_rollout_ref.rollout.enforce_eager")),
    ("vllm.enable_sleep vllm_enable_sleep vllm.gpu_memory_utilization vllm_gpu_memory_utilization", "", Ignored(NATIVE)),
    // Machines.
    ("actor.num_nodes actor_num_nodes actor.num_gpus_per_node actor_num_gpus_per_node", "", Ignored(TOGETHER)),
    ("critic.num_nodes critic_num_nodes critic.num_gpus_per_node critic_num_gpus_per_node", "", Ignored(TOGETHER)),
    ("ref.num_nodes ref_num_nodes ref.num_gpus_per_node ref_num_gpus_per_node", "", Ignored(TOGETHER)),
    ("reward.num_nodes reward_num_nodes reward.num_gpus_per_node reward_num_gpus_per_node", "", Ignored(TOGETHER)),
    ("train.colocate_actor_ref colocate_actor_ref train.colocate_critic_reward colocate_critic_reward", "", Ignored(TOGETHER)),
    ("train.colocate_all colocate_all_models", "", Ignored(TOGETHER)),
    ("ref.offload reward.offload ref_reward_offload", "", Ignored(NO_OFFLOAD)),
    ("ds.adam_offload adam_offload actor_init_on_gpu", "", Ignored(NO_OFFLOAD)),
    ("ds.zero_stage zero_stage ds.zpg zpg", "", Ignored(SHARDED)),
    ("ds.overlap_comm overlap_comm ds.grad_accum_dtype grad_accum_dtype", "", Ignored(SHARDED)),
    ("ds.tensor_parallel_size ds_tensor_parallel_size ds.ring_attn_size ring_attn_size", "", Ignored(WHOLE)),
    ("ds.ring_attn_head_stride ring_head_stride", "", Ignored(WHOLE)),
    ("local_rank ds.enable_sleep deepspeed_enable_sleep", "", Ignored(TOGETHER)),
    ("ds.deepcompile deepcompile ds.attn_implementation attn_implementation flash_attn", "", Ignored(NO_TORCH)),
    ("ds.use_liger_kernel use_liger_kernel disable_trace_cache", "", Ignored(NO_TORCH)),
    ("ds.experts_implementation", "", Ignored("experts are computed by built-in operations")),
    ("actor.gradient_checkpointing_reentrant model.gradient_checkpointing_reentrant", "", Ignored(ONE_RECOMPUTE)),
    ("gradient_checkpointing_use_reentrant", "", Ignored(ONE_RECOMPUTE)),
    ("ds.packing_samples packing_samples", "", Ignored("always on: rows are packed without padding")),
    ("ds.value_head_prefix value_head_prefix", "", Ignored("the folder of a reward model describes its head")),
    ("data.disable_fast_tokenizer disable_fast_tokenizer", "", Ignored("there is only the fast tokenizer")),
    ("data.dataloader_num_workers dataloader_num_workers", "", Ignored("rows are in memory, without a data loader")),
    ("use_ms", "", Refused("ModelScope is not supported: download models and data first")),
];
