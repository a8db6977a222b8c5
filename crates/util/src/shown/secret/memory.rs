//! The secret values that were read so far, and texts without them.

use std::borrow::Cow;
use std::sync::{LazyLock, PoisonError, RwLock};

use regex::{Captures, Regex};

use super::names::{is_secret, is_secret_value};

/// The text shown instead of a secret.
pub const HIDDEN: &str = "***";

/// Shortest value to hide, in bytes: shorter values are parts of other words.
const SHORTEST: usize = 5;

static KNOWN: RwLock<Vec<String>> = RwLock::new(Vec::new());

static ADDRESS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#@\x22'<>]+@").ok());

/// Remembers a secret value; from now on, no output shows it.
pub fn remember(value: &str) {
    let value = value.trim();
    let is_word = value.contains("${") || ["false", HIDDEN].contains(&value);
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    if value.len() >= SHORTEST && !is_word && known.iter().all(|one| one != value) {
        known.push(value.to_owned());
        // A secret that is part of a longer one is replaced after it.
        known.sort_by_key(|one| std::cmp::Reverse(one.len()));
    }
}

/// Remembers the value of a setting, a variable or a header, if it is secret by its dotted name.
pub fn remember_setting(name: &str, value: &str) {
    if is_secret_value(name, value) {
        let value = value.trim();
        remember(value.strip_prefix("Bearer ").or_else(|| value.strip_prefix("Basic ")).unwrap_or(value));
    }
}

/// Remembers the values of secret environment variables.
pub fn remember_environment() {
    for (name, value) in std::env::vars_os() {
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str())
            && is_secret(name)
        {
            remember(value);
        }
    }
}

/// Returns a text without remembered secrets, and without names and passwords in URLs.
pub fn hide(text: &str) -> Cow<'_, str> {
    let mut shown = match ADDRESS.as_ref().filter(|_| text.contains("://")) {
        Some(address) => address.replace_all(text, |found: &Captures| format!("{}{HIDDEN}@", &found[1])),
        None => Cow::Borrowed(text),
    };
    for secret in KNOWN.read().unwrap_or_else(PoisonError::into_inner).iter() {
        if shown.contains(secret.as_str()) {
            shown = shown.replace(secret.as_str(), HIDDEN).into();
        }
    }
    shown
}

/// Returns true if a saved value was hidden, so it cannot be used.
pub fn is_hidden(value: &str) -> bool {
    value == HIDDEN || value.contains(&format!("://{HIDDEN}@")) || value.contains(&format!("={HIDDEN}"))
}

#[cfg(test)]
mod tests {
    use super::super::{is_secret, remember_in, remember_words};
    use super::*;

    #[test]
    fn names_decide_what_is_secret() {
        for name in [
            "api_key",
            "trainer.wandb_api_key",
            "WANDB_API_KEY",
            "HF_TOKEN",
            "token",
            "a.access-token",
            "AWS_SECRET_ACCESS_KEY",
            "client_secret",
            "db.password",
            "MLFLOW_TRACKING_PASSWORD",
            "Authorization",
            "private_key",
            "OPENAI_APIKEY",
            "OPENAI_KEY",
            "env_vars.AZURE_KEY",
            "ray_init.runtime_env.env_vars.MY_LOGIN",
            "custom_reward_function.reward_kwargs.pw",
            "headers.cookie",
            "headers.X-Session",
            "logger.wandb.key",
            "use_wandb",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "data.prompt_key",
            "reward_fn_key",
            "eos_token",
            "pad_token",
            "stop_token_ids",
            "max_tokens",
            "tokenizer",
            "reward.remote_token_env",
            "token_env",
            "log_prob_max_token_len_per_gpu",
            "key",
            "PWD",
            "secret_name",
            "monkey",
            "loss_agg_mode",
            "token-mean",
            "env_vars.NCCL_DEBUG",
            "env_vars.PYTHONPATH",
            "headers.content-type",
            "data.response_key",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn remembered_values_and_users_in_addresses_are_hidden() {
        remember_in("reward.kwargs={api_key: sk-test-1, n: 5} token='with spaces' password=12345678 x.secret=${oc.env:A_SECRET}");
        remember_in("api_key='unclosed-test-1");
        remember_in("my_secret={a: nested-test-1, b: x: nested-test-2}");
        remember_in("answer_token: 4096000, user.token=tok-test-1");
        remember_in("url=https://host/x?access_token=query-test-1&y=1");
        // The length limit of a value falls inside a character.
        remember_in(&format!("api_key={}é and more", "long-test-".repeat(51) + "x"));
        remember_in("'env_vars': {'A_LOGIN': 'place-test-1', 'NCCL_DEBUG': 'WARNING', 'FLAG': 'true'}, 'working_dir': '/root/x'");
        remember_in(r#"--runtime-env-json="{\"env_vars\": {\"B_LOGIN\": \"place-test-2\"}}""#);
        remember_in("os.environ['ANY_KEY'] = 'python-test-1'");
        remember_in("http://host/x?model=qwen-test&sig=query-test-2&key=query-test-3");
        remember_in("x --hub_token line-test-1 --use_wandb line-test-2 --response_key a-column --save_path /a/b");
        remember_words(&["--hub-token", "word-test-1", "--use_wandb", "true", "--hub_token", "--flag"]);
        for (text, shown) in [
            ("place-test-1 WARNING true /root/x place-test-2", "*** WARNING true /root/x ***"),
            ("python-test-1 qwen-test query-test-2 query-test-3", "*** qwen-test *** ***"),
            ("line-test-1 line-test-2 a-column /a/b word-test-1 --flag", "*** *** a-column /a/b *** --flag"),
            ("error: sk-test-1 is wrong", "error: *** is wrong"),
            ("with spaces 12345678", "*** ***"),
            ("api_key='unclosed-test-1", "api_key='***"),
            ("nested-test-1, nested-test-2", "***, ***"),
            ("4096000 tok-test-1", "4096000 ***"),
            ("?access_token=query-test-1&y=1", "?access_token=***&y=1"),
            ("at https://me:pass@host:80/p, ftp://me@host", "at https://***@host:80/p, ftp://***@host"),
            ("a@b.c https://host/@me ${oc.env:A_SECRET}", "a@b.c https://host/@me ${oc.env:A_SECRET}"),
        ] {
            assert_eq!(hide(text), shown);
        }
        assert!(is_hidden("***") && is_hidden(&hide("https://a:b@c")) && !is_hidden("a ***"));
    }
}
