//! Decides by name and by place which values are secret.
//!
//! A name is secret by its words. Some places hold secrets under any name: environment variables that settings pass on, headers of
//! requests, and queries of URLs. There, all values are secret except those with harmless names and harmless values.

/// Words that make a name secret at any position.
const ALWAYS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "secrets",
    "credential",
    "credentials",
    "apikey",
    "authorization",
    "bearer",
    "cookie",
    "cookies",
    "jwt",
    "pw",
];
/// Words that make a name secret before a final `key`.
const KEYS: &[&str] = &["api", "access", "private", "secret", "auth", "account", "encryption", "signing", "ssh", "master"];
/// Words that make a final `token` a token of text, which is not secret.
const TOKENS: &[&str] = &[
    "pad",
    "eos",
    "bos",
    "unk",
    "sep",
    "cls",
    "mask",
    "stop",
    "end",
    "start",
    "begin",
    "image",
    "video",
    "audio",
    "special",
    "per",
    "placeholder",
    "first",
    "last",
    "next",
    "previous",
    "new",
    "think",
    "tool",
    "max",
    "min",
    "response",
    "prompt",
];
/// Final words of names that only lead to a secret.
const LEADS: &[&str] = &["env", "name", "file", "path", "url", "id", "length", "len", "count"];
/// Options of other libraries that take a secret, although their names do not say so.
const OPTIONS: &[&str] = &["use_wandb", "logger.wandb.key", "wandb.key", "use_swanlab"];

/// Mappings that hold secrets under any name.
const PLACES: &[&str] = &[
    "env_vars",
    "env",
    "environ",
    "environment",
    "headers",
    "default_headers",
    "extra_headers",
    "cookies",
    "auth",
    "query_params",
    "default_query",
    "extra_query",
];
/// Beginnings of the names of environment variables and headers that hold no secrets.
const HARMLESS_BEGINNINGS: &[&str] = &[
    "nccl_",
    "cuda_",
    "torch_",
    "pytorch_",
    "vllm_",
    "sglang_",
    "ray_",
    "tokenizers_",
    "transformers_",
    "omp_",
    "mkl_",
    "gloo_",
    "ucx_",
    "python",
    "hip_",
    "rocr_",
    "ascend_",
    "hccl_",
    "xla_",
    "tf_",
    "lc_",
    "master_",
    "hydra_",
    "accelerate_",
    "deepspeed_",
    "triton_",
    "fi_",
    "nvte_",
    "openblas_",
    "rayon_",
    "rust_",
];
/// Names of environment variables, headers and parts of queries that hold no secrets.
const HARMLESS: &[&str] = &[
    // Environment.
    "path",
    "home",
    "user",
    "lang",
    "shell",
    "term",
    "tmpdir",
    "ld_library_path",
    "ld_preload",
    "hf_home",
    "hf_endpoint",
    "hf_datasets_cache",
    "hf_hub_offline",
    "hf_hub_enable_hf_transfer",
    "wandb_project",
    "wandb_entity",
    "wandb_mode",
    "wandb_name",
    "wandb_dir",
    "wandb_base_url",
    "wandb_run_group",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "world_size",
    "rank",
    "local_rank",
    "working_dir",
    // Headers.
    "accept",
    "accept-encoding",
    "accept-language",
    "content-type",
    "content-length",
    "user-agent",
    "host",
    "connection",
    "cache-control",
    "origin",
    "referer",
    // Queries.
    "page",
    "per_page",
    "limit",
    "offset",
    "n",
    "model",
    "version",
    "v",
    "api-version",
    "api_version",
    "format",
    "language",
    "q",
    "query",
    "split",
    "config",
    "revision",
    "ref",
    "dataset",
    "name",
    "type",
    "mode",
    "timeout",
    "download",
    "stream",
    "temperature",
    "max_tokens",
    "top_p",
    "seed",
    "task",
];

/// Returns true if settings, variables and options with this name are secret: `wandb.api_key`, `HF_TOKEN`, `env_vars.MY_LOGIN`.
pub fn is_secret(name: &str) -> bool {
    has_secret_name(name) || is_in_place(name)
}

/// Returns true if the last part of a name is secret in any place.
fn has_secret_name(name: &str) -> bool {
    let name = name.trim_start_matches(['+', '-', '~']);
    let original = name.rsplit('.').next().unwrap_or(name);
    let last = original.to_ascii_lowercase();
    let words: Vec<&str> = last.split(['_', '-']).filter(|word| !word.is_empty()).collect();
    // In upper case, this is an environment variable; names of columns such as `prompt_key` have lower case.
    let is_variable = !original.contains(|c: char| c.is_ascii_lowercase());
    match words[..] {
        [.., last] if LEADS.contains(&last) => false,
        _ if OPTIONS.iter().any(|option| *option == name.replace('-', "_")) => true,
        _ if words.iter().any(|word| ALWAYS.contains(word)) => true,
        [.., before, "key"] => is_variable || KEYS.contains(&before),
        [_, .., "pass" | "pwd" | "pat"] => is_variable,
        [.., before, "token"] => !TOKENS.contains(&before),
        ["token"] => true,
        _ => false,
    }
}

/// Returns true if a dotted name lies in a place that holds secrets, and is not harmless.
fn is_in_place(name: &str) -> bool {
    let Some((before, last)) = name.rsplit_once('.') else { return false };
    before.split('.').any(is_place) && !is_harmless_name(last)
}

/// Returns true for the name of a mapping that holds secrets under any name.
pub(super) fn is_place(name: &str) -> bool {
    PLACES.contains(&name.trim_start_matches(['+', '-', '~']).replace('-', "_").as_str())
}

/// Returns true for a name that is not secret in any place.
pub(super) fn is_harmless_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !has_secret_name(&name)
        && (HARMLESS.contains(&name.as_str()) || HARMLESS_BEGINNINGS.iter().any(|begin| name.starts_with(begin)))
}

/// Returns true if a value under this name is secret. A password may be a number, but a numeric `…token` is a limit; in a place
/// that holds secrets, switches, small numbers, levels of logs and paths are not secret.
pub fn is_secret_value(name: &str, value: &str) -> bool {
    let is_number = value.parse::<f64>().is_ok();
    match has_secret_name(name) {
        true => (may_be_number(name) || !is_number) && !is_switch(value),
        false => is_in_place(name) && !is_harmless_value(value) || is_plain_key(name) && looks_random(value),
    }
}

/// Returns true for the name `key`, which may also name a column.
fn is_plain_key(name: &str) -> bool {
    name.rsplit('.').next().is_some_and(|last| last.trim_start_matches(['+', '-', '~']).eq_ignore_ascii_case("key"))
}

/// Returns true for a text that no person chose, such as `sk-4f9a…`.
fn looks_random(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let is_word = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+=~".contains(&byte));
    let is_named = ["sk-", "hf_", "ghp_", "glpat-"].iter().any(|begin| value.starts_with(begin));
    is_word && digits < value.len() && (is_named && value.len() >= 8 || digits >= 3 && value.len() >= 20)
}

/// Returns true if a number is secret under this name.
pub(super) fn may_be_number(name: &str) -> bool {
    !name.to_ascii_lowercase().ends_with("token")
}

/// Returns true for the text of a switch.
pub(super) fn is_switch(value: &str) -> bool {
    ["true", "false", "yes", "no", "on", "off", "null", "none"].contains(&value.to_ascii_lowercase().as_str())
}

/// Returns true for a value that is not a secret, although its place holds secrets.
pub(super) fn is_harmless_value(value: &str) -> bool {
    let is_level =
        ["debug", "info", "warn", "warning", "error", "trace", "critical"].contains(&value.to_ascii_lowercase().as_str());
    let is_path = value.starts_with(['/', '.', '~']);
    is_switch(value) || is_level || is_path || value.parse::<f64>().is_ok_and(|number| number.abs() < 1e6)
}
