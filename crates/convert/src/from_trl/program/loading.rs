//! Arguments about loading a model.

/// Arguments of a model's configuration that do not change training here.
pub(super) const OF_LOADING: &[&str] = &[
    "torch_dtype",
    "dtype",
    "attn_implementation",
    "use_cache",
    "trust_remote_code",
    "device_map",
    "low_cpu_mem_usage",
    "token",
    "use_flash_attention_2",
    "cache_dir",
];
