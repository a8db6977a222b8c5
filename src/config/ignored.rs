//! Keys that are accepted because real configurations have them, but change nothing here; each with the reason.

use super::tree::{Node, Value};

/// A key that was set away from its default and has no effect.
#[derive(Debug, Clone, PartialEq)]
pub struct Ignored {
    pub key: String,
    /// What it was set to, as YAML.
    pub value: String,
    pub reason: &'static str,
}

impl Ignored {
    /// A setting of Hydra's own.
    pub(super) fn hydra(key: String, value: &Value) -> Self {
        Self { key, value: value.to_yaml(), reason: "Hydra itself does not run here" }
    }
}

const ONE_DEVICE: &str = "a process trains on one device, without sharding or offload";
const NO_CRITIC: &str = "no available estimator has a critic";
const NO_REWARD_MODEL: &str = "there are no reward models";
const NO_CORRECTION: &str = "there is no rollout correction";
const NATIVE_ENGINE: &str = "the native engine generates, with the trained weights themselves";
const NO_PYTHON: &str = "no Python code is run";
const NO_TORCH: &str = "there is no torch: the fused operations are built in";
const ACTIVATIONS: &str = "activations are kept on the device";
const NO_PADDING: &str = "sequences of like length are batched together, and padding never counts";
const NO_IMAGES: &str = "prompts are text";
const NO_READER: &str = "nothing reads it: every prompt keeps its ids and its messages";

/// Keys, and prefixes of keys (they end in a dot), with the reason why they have no effect.
const TABLE: &[(&str, &str)] = &[
    ("actor_rollout_ref.hybrid_engine", "actor and rollout always share one set of weights"),
    ("actor_rollout_ref.model.external_lib", NO_PYTHON),
    ("actor_rollout_ref.model.override_config.", "a model is what its own config.json says"),
    ("actor_rollout_ref.model.enable_gradient_checkpointing", ACTIVATIONS),
    ("actor_rollout_ref.model.enable_activation_offload", ACTIVATIONS),
    ("actor_rollout_ref.model.trust_remote_code", NO_PYTHON),
    ("actor_rollout_ref.model.use_remove_padding", NO_PADDING),
    ("actor_rollout_ref.model.use_fused_kernels", NO_TORCH),
    ("actor_rollout_ref.model.fused_kernel_options.", NO_TORCH),
    ("actor_rollout_ref.actor.strategy", ONE_DEVICE),
    ("actor_rollout_ref.actor.calculate_entropy", "the entropy is always reported"),
    ("actor_rollout_ref.actor.use_torch_compile", NO_TORCH),
    ("actor_rollout_ref.actor.ulysses_sequence_parallel_size", ONE_DEVICE),
    ("actor_rollout_ref.actor.fsdp_config.", ONE_DEVICE),
    ("actor_rollout_ref.ref.ulysses_sequence_parallel_size", ONE_DEVICE),
    ("actor_rollout_ref.ref.fsdp_config.", ONE_DEVICE),
    ("actor_rollout_ref.rollout.name", "the native engine generates"),
    ("actor_rollout_ref.rollout.dtype", "generation computes in the numbers of training"),
    ("actor_rollout_ref.rollout.gpu_memory_utilization", NATIVE_ENGINE),
    ("actor_rollout_ref.rollout.enforce_eager", NATIVE_ENGINE),
    ("actor_rollout_ref.rollout.free_cache_engine", NATIVE_ENGINE),
    ("actor_rollout_ref.rollout.load_format", NATIVE_ENGINE),
    ("actor_rollout_ref.rollout.tensor_model_parallel_size", ONE_DEVICE),
    ("actor_rollout_ref.rollout.max_num_batched_tokens", "max_num_seqs alone limits what is generated side by side"),
    ("actor_rollout_ref.rollout.engine_kwargs.", NATIVE_ENGINE),
    ("actor_rollout_ref.rollout.agent.", NATIVE_ENGINE),
    ("algorithm.lam", NO_CRITIC),
    ("algorithm.rollout_correction.", NO_CORRECTION),
    ("critic.", NO_CRITIC),
    ("custom_reward_function.name", "custom_reward_function.path is not set"),
    ("data.custom_cls.name", NO_PYTHON),
    ("data.filter_overlong_prompts_workers", "the filter runs in one process"),
    ("data.image_key", NO_IMAGES),
    ("data.return_raw_input_ids", NO_READER),
    ("data.return_raw_chat", NO_READER),
    ("data.return_full_prompt", NO_READER),
    ("data.trust_remote_code", NO_PYTHON),
    ("reward_model.model.", NO_REWARD_MODEL),
    ("reward_model.micro_batch_size_per_gpu", NO_REWARD_MODEL),
    ("reward_model.max_length", NO_REWARD_MODEL),
    ("trainer.critic_warmup", NO_CRITIC),
    ("trainer.default_hdfs_dir", "checkpoints are local"),
    ("trainer.del_local_ckpt_after_load", "a loaded checkpoint stays, so that a killed run loses nothing"),
    ("trainer.n_gpus_per_node", "a process trains on one device"),
    ("trainer.nnodes", "a process trains on one device"),
    ("trainer.ray_wait_register_center_timeout", "there is no Ray"),
    ("data.multiturn.messages_key", "data.multiturn.enable is false"),
    ("model.enable_gradient_checkpointing", ACTIVATIONS),
    ("model.external_lib", NO_PYTHON),
    ("model.fsdp_config.", ONE_DEVICE),
    ("model.lora_alpha", "model.lora_rank is 0"),
    ("model.target_modules", "model.lora_rank is 0"),
    ("model.trust_remote_code", NO_PYTHON),
    ("model.use_liger", NO_TORCH),
    ("optim.optimizer_impl", "AdamW is built in"),
];

/// The keys of the table that were set to something other than their default. Both trees are as written, with `${…}`
/// unresolved, so that a key that merely follows another one is not reported.
pub fn find(written: &Node, defaults: &Node) -> Vec<Ignored> {
    let mut ignored = vec![];
    written.walk(&mut |key, node| {
        let leaf = !matches!(&node.value, Value::Map(map) if !map.is_empty());
        let in_list =
            key.rsplit_once('.').and_then(|(parent, _)| written.get(parent)).is_some_and(|p| !matches!(p.value, Value::Map(_)));
        let changed = defaults.get(key).is_none_or(|default| !default.value.same(&node.value));
        if leaf
            && !in_list
            && changed
            && let Some(reason) = reason(key)
        {
            ignored.push(Ignored { key: key.to_string(), value: node.value.to_yaml(), reason });
        }
    });
    ignored
}

/// Why a key has no effect; `None` if it has one.
pub fn reason(key: &str) -> Option<&'static str> {
    let matches = |entry: &str| entry == key || entry.ends_with('.') && key.starts_with(entry);
    TABLE.iter().find(|(entry, _)| matches(entry)).map(|(_, reason)| *reason)
}

/// The keys and prefixes of the table, for the test that checks that each exists.
pub fn table_keys() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(key, _)| *key)
}
