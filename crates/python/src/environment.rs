//! The environment of user code in workers: the variables that programs need to run, without tokens and keys.

use std::env;
use std::ffi::OsString;

use anyhow::{Result, ensure};

use super::words::Words;

/// Variables that workers get. A `*` stands for any ending or, at the front, any beginning.
const ALLOWED: &str = "
    PATH HOME USER LOGNAME SHELL TZ LANG LANGUAGE LC_* TMPDIR TMP TEMP PYTHONPATH PYTHONHOME VIRTUAL_ENV CONDA_*
    PYENV_* LD_LIBRARY_PATH DYLD_LIBRARY_PATH *_proxy *_PROXY SSL_* REQUESTS_CA_BUNDLE CURL_CA_BUNDLE
    XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME HF_HOME HF_ENDPOINT HF_HUB_CACHE HF_HUB_OFFLINE HF_DATASETS_CACHE
    HF_DATASETS_OFFLINE TRANSFORMERS_CACHE TRANSFORMERS_OFFLINE TORCH_HOME NLTK_DATA CUDA_VISIBLE_DEVICES
    CUDA_HOME NVIDIA_VISIBLE_DEVICES TOKENIZERS_PARALLELISM OMP_NUM_THREADS MKL_NUM_THREADS OPENBLAS_NUM_THREADS
    NUMEXPR_NUM_THREADS HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES
";

/// Variables set for workers. Text hashes, and so the order of sets, are reproducible. Text is printed as UTF-8, so printing a
/// response never fails.
const SET: [(&str, &str); 2] = [("PYTHONHASHSEED", "0"), ("PYTHONIOENCODING", "utf-8:backslashreplace")];

fn is_allowed(name: &str) -> bool {
    ALLOWED.split_whitespace().any(|allowed| match (allowed.strip_prefix('*'), allowed.strip_suffix('*')) {
        (Some(end), _) => name.ends_with(end),
        (_, Some(start)) => name.starts_with(start),
        _ => name == allowed,
    })
}

/// Returns the environment of a worker.
///
/// # Errors
/// If a variable to pass on is not set.
pub fn for_workers(pass: &[String], words: &Words) -> Result<Vec<(OsString, OsString)>> {
    for name in pass {
        ensure!(env::var_os(name).is_some(), "{} names {name}, which is not set in the environment", words.pass_env);
    }
    let passes = |name: &OsString| name.to_str().is_some_and(|name| is_allowed(name) || pass.iter().any(|p| p == name));
    let kept = env::vars_os().filter(|(name, _)| passes(name));
    Ok(kept.chain(SET.map(|(name, value)| (name.into(), value.into()))).collect())
}

/// Returns advice for an error that mentions a variable that is set here but not passed on; else empty text.
pub fn hint(error: &str, pass: &[String], words: &Words) -> String {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut withheld: Vec<String> =
        names.filter(|name| !is_allowed(name) && !pass.contains(name) && is_named(name, error)).collect();
    withheld.sort_unstable();
    if withheld.is_empty() {
        return String::new();
    }
    let list = withheld.join(",");
    let Words { files, pass_env, .. } = words;
    format!("\nThe environment of {files} does not include your tokens and keys; to pass {list} on, set {pass_env}=[{list}].")
}

/// Returns true if the text contains the name as a whole word. A name without an underscore could be any word, so it only counts
/// in quotes.
fn is_named(name: &str, text: &str) -> bool {
    let quoted = [format!("'{name}'"), format!("\"{name}\"")].iter().any(|quoted| text.contains(quoted));
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    quoted || name.len() > 3 && name.trim_matches('_').contains('_') && text.split(|c| !in_word(c)).any(|word| word == name)
}
