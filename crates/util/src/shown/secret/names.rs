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
    "webhook",
    "dsn",
    "otp",
];
/// Names that are secret as a whole.
const WHOLE: &[&str] = &["token", "pass", "pwd", "auth", "connection_string", "aws_access_key_id"];
/// Words that make a final `key` the name of a column, which is not secret.
const COLUMNS: &str = "answer audio chosen column completion content context data dataset dict eval fn group id image \
                       images index input kwargs label labels margin message messages metric name output primary prompt \
                       question rejected response reward role score sort source step steps system target task teacher text \
                       thinking tool tools truth user video videos";
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
/// Ends of a last word that is written without a separator, such as `dbpassword`.
const JOINED: &[&str] = &["password", "passwd", "secret", "apikey"];
/// Final words of names that only lead to a secret.
const LEADS: &[&str] = &["env", "name", "file", "path", "url", "id", "length", "len", "count"];
/// Options of other libraries that take a secret, although their names do not say so.
const OPTIONS: &[&str] = &["use_wandb", "logger.wandb.key", "wandb.key", "use_swanlab"];

/// Mappings that hold secrets under any name.
const PLACES: &[&str] = &["env", "environ", "environment", "auth", "query_params", "default_query", "extra_query"];
/// The same, also after further words: `default_headers`.
const PLACE_ENDS: &[&str] = &["env_vars", "envs", "headers", "header", "cookies", "credentials", "secrets"];
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

/// Returns a name in lower case with `_` between its words: `accessToken` and `Access-Token` are `access_token`.
fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut before = '_';
    for c in name.chars() {
        if c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
            snake.push('_');
        }
        snake.push(if c == '-' { '_' } else { c.to_ascii_lowercase() });
        before = c;
    }
    snake
}

/// Returns the last part of a dotted name, without the signs of an override or an option.
fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name).trim_start_matches(['+', '-', '~'])
}

/// Returns true if the last part of a name is secret in any place.
fn has_secret_name(name: &str) -> bool {
    let original = last_part(name);
    let last = snake(original);
    let words: Vec<&str> = last.split('_').filter(|word| !word.is_empty()).collect();
    // In upper case, this is an environment variable; names of columns such as `prompt_key` have lower case.
    let is_variable = !original.contains(|c: char| c.is_ascii_lowercase());
    match words[..] {
        // The address of a webhook is all that a stranger needs to use it.
        [.., "webhook", "url"] => true,
        _ if WHOLE.contains(&last.as_str()) => !is_variable || last != "pwd",
        [.., last] if LEADS.contains(&last) => false,
        _ if OPTIONS.contains(&name.trim_start_matches(['+', '-', '~']).replace('-', "_").as_str()) => true,
        _ if words.iter().any(|word| ALWAYS.contains(word)) => true,
        [.., before, "key"] => is_variable || KEYS.contains(&before),
        [_, .., "pass" | "pwd" | "pat"] => is_variable,
        [.., before, "token"] => !TOKENS.contains(&before),
        [.., last] => is_joined(last, is_variable),
        [] => false,
    }
}

/// Returns true if a last word ends with the word for a secret: `DBPASSWORD`, `authtoken`, and of variables also `HFTOKEN`.
fn is_joined(last: &str, is_variable: bool) -> bool {
    let is_token = |before: &str| KEYS.contains(&before) || is_variable && !before.is_empty() && !TOKENS.contains(&before);
    JOINED.iter().any(|end| last.ends_with(end)) || last.strip_suffix("token").is_some_and(is_token)
}

/// Returns true if a dotted name lies in a place that holds secrets, and is not harmless.
fn is_in_place(name: &str) -> bool {
    let Some((before, last)) = name.rsplit_once('.') else { return false };
    before.split('.').any(is_place) && !is_harmless_name(last)
}

/// Returns true for the name of a mapping that holds secrets under any name.
pub(super) fn is_place(name: &str) -> bool {
    let name = snake(last_part(name));
    let ends_in = |place: &&str| name.strip_suffix(*place).is_some_and(|before| before.is_empty() || before.ends_with('_'));
    PLACES.contains(&name.as_str()) || PLACE_ENDS.iter().any(ends_in)
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
        false => is_in_place(name) && !is_harmless_value(value) || is_secret_key(name, value),
    }
}

/// Returns true if a name ends in the word `key`, which may also name a column, and the value is not the name of a column.
fn is_secret_key(name: &str, value: &str) -> bool {
    let last = snake(last_part(name));
    let words: Vec<&str> = last.split('_').collect();
    match words[..] {
        ["key"] => looks_random(value),
        [.., before, "key"] if COLUMNS.split_whitespace().any(|column| column == before) => looks_random(value),
        [_, .., "key"] => looks_random(value) || is_word(value) && !is_column(value),
        _ => false,
    }
}

/// Returns true for a text without spaces and brackets.
fn is_word(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+=~/".contains(&byte))
}

/// Returns true for a short text in lower case without digits, or a number.
fn is_column(value: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || b"_-./".contains(&byte);
    value.len() < 32 && value.bytes().all(is_plain) || value.parse::<f64>().is_ok() || is_switch(value)
}

/// Returns true for a text that no person chose, such as `sk-4f9a…`.
fn looks_random(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let is_named = ["sk-", "hf_", "ghp_", "glpat-"].iter().any(|begin| value.starts_with(begin));
    is_word(value) && digits < value.len() && (is_named && value.len() >= 8 || digits >= 3 && value.len() >= 20)
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
