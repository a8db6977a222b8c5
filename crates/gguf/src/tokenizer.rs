//! A tokenizer in llama.cpp's terms: its tokens in the order of their ids, its merges, and the name of its way to cut text.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::file::Meta;
use burnish_util::fs::read_json;

/// Regular expressions that cut text into words, with the name that llama.cpp has for each.
const WORDS: &[(&str, &str)] = &[
    (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+", "qwen2"),
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        "llama-bpe",
    ),
];

/// Kinds of tokens in ggml.
const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
const UNUSED: i32 = 5;
const BYTE: i32 = 6;

/// Special tokens: the key in tokenizer_config.json and config.json, and llama.cpp's.
const SPECIAL: [(&str, &str); 4] = [("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")];

/// Returns the metadata of the tokenizer of a folder. `size`: the rows of the embedding, which may be more than the tokens.
///
/// # Errors
/// If the folder has no tokenizer.json, or llama.cpp has no tokenizer of its kind.
pub(crate) fn of_folder(folder: &Path, size: usize) -> Result<Vec<(String, Meta)>> {
    let path = folder.join("tokenizer.json");
    let tokenizer: Value = read_json(&path)?;
    let said = || path.display().to_string();
    let (kind, pre) = kind(&tokenizer).with_context(said)?;
    let mut tokens: Vec<Option<(String, i32)>> = vec![None; size];
    let mut set = |id: &Value, token: &str, kind: i32| -> Result<()> {
        let id = id.as_u64().context("an id of a token is not a number")? as usize;
        let place =
            tokens.get_mut(id).with_context(|| format!("token {token:?} has id {id}, and the embedding has {size} rows"))?;
        *place = Some((token.to_owned(), kind));
        Ok(())
    };
    let unknown = tokenizer["model"]["unk_token"].as_str();
    for (token, id) in tokenizer["model"]["vocab"].as_object().context("no vocabulary").with_context(said)? {
        let is_byte = kind == "llama" && token.len() == 6 && token.starts_with("<0x") && token.ends_with('>');
        let kind = if is_byte {
            BYTE
        } else if unknown == Some(token) {
            UNKNOWN
        } else {
            NORMAL
        };
        set(id, token, kind).with_context(said)?;
    }
    for added in tokenizer["added_tokens"].as_array().into_iter().flatten() {
        let token = added["content"].as_str().unwrap_or_default();
        let kind = match added["special"].as_bool() {
            _ if unknown == Some(token) => UNKNOWN,
            Some(true) => CONTROL,
            _ => USER_DEFINED,
        };
        set(&added["id"], token, kind).with_context(said)?;
    }
    let named = tokens.into_iter().enumerate().map(|(id, token)| token.unwrap_or_else(|| (format!("[PAD{id}]"), UNUSED)));
    let (texts, kinds): (Vec<String>, Vec<i32>) = named.unzip();

    let key = |name: &str| format!("tokenizer.ggml.{name}");
    let mut all = vec![(key("model"), kind.into()), (key("pre"), pre.into())];
    if kind == "llama" {
        // The earlier a merge, the smaller its id: llama.cpp merges the pair of the highest score first.
        all.push((key("scores"), Meta::F32s((0..size).map(|id| -(id as f32)).collect())));
        all.push((key("add_space_prefix"), Meta::Bool(adds_space(&tokenizer))));
    } else {
        all.push((key("merges"), Meta::Texts(merges(&tokenizer).with_context(said)?)));
    }
    all.extend(special_tokens(folder, &tokenizer, &texts, key)?);
    all.extend([(key("tokens"), Meta::Texts(texts)), (key("token_type"), Meta::I32s(kinds))]);
    all.extend(chat_template(folder)?.map(|template| ("tokenizer.chat_template".to_owned(), Meta::Text(template))));
    Ok(all)
}

/// Returns llama.cpp's names of a kind of tokenizer and of its way to cut text.
fn kind(tokenizer: &Value) -> Result<(&'static str, &'static str)> {
    let model = tokenizer["model"]["type"].as_str().unwrap_or("BPE");
    if model != "BPE" {
        bail!("a tokenizer of kind {model} has no place in a GGUF file; llama.cpp reads byte-level BPE and BPE with bytes");
    }
    if tokenizer["model"]["byte_fallback"] == true {
        return Ok(("llama", "default"));
    }
    let steps = match tokenizer["pre_tokenizer"]["pretokenizers"].as_array() {
        Some(steps) => steps.iter().collect(),
        None => vec![&tokenizer["pre_tokenizer"]],
    };
    let of = |step: &Value| step["type"].as_str().unwrap_or_default().to_owned();
    let split = steps.iter().find_map(|step| step["pattern"]["Regex"].as_str());
    let words = split.and_then(|pattern| Some(WORDS.iter().find(|(known, _)| *known == pattern)?.1));
    match (&*steps.iter().map(|step| of(step)).collect::<Vec<_>>().join(" "), words) {
        ("Split ByteLevel", Some(words)) => Ok(("gpt2", words)),
        ("ByteLevel", _) if steps[0]["use_regex"] != false => Ok(("gpt2", "gpt-2")),
        ("Digits ByteLevel", _) if steps[0]["individual_digits"] == true => Ok(("gpt2", "smollm")),
        (steps, _) => bail!(
            "llama.cpp's name for this way to cut text into words is not known ({steps}{}); known are those of gpt-2, qwen2, llama-bpe and \
             smollm",
            split.map(|pattern| format!(", {pattern}")).unwrap_or_default()
        ),
    }
}

/// Returns the merges, each as two texts with a space between.
fn merges(tokenizer: &Value) -> Result<Vec<String>> {
    let merges = tokenizer["model"]["merges"].as_array().context("no merges")?;
    let merge = |merge: &Value| match merge {
        Value::String(text) => Some(text.clone()),
        Value::Array(pair) => Some(format!("{} {}", pair.first()?.as_str()?, pair.get(1)?.as_str()?)),
        _ => None,
    };
    merges.iter().map(|value| merge(value).with_context(|| format!("{value} is not a merge of two tokens"))).collect()
}

/// True if a space is put before a text.
fn adds_space(tokenizer: &Value) -> bool {
    let is = |step: &Value| step["type"] == "Prepend" || step["prepend_scheme"] == "first" || step["prepend_scheme"] == "always";
    let steps = |part: &Value, list: &str| part[list].as_array().cloned().unwrap_or_else(|| vec![part.clone()]);
    steps(&tokenizer["normalizer"], "normalizers").iter().any(is)
        || steps(&tokenizer["pre_tokenizer"], "pretokenizers").iter().any(is)
}

/// Returns the ids of the special tokens, and whether a text begins with the first of them.
fn special_tokens(
    folder: &Path,
    tokenizer: &Value,
    tokens: &[String],
    key: impl Fn(&str) -> String,
) -> Result<Vec<(String, Meta)>> {
    let read = |name: &str| match folder.join(name).exists() {
        true => read_json::<Value>(&folder.join(name)),
        false => Ok(Value::Null),
    };
    let (settings, config) = (read("tokenizer_config.json")?, read("config.json")?);
    let mut all = Vec::new();
    let mut begins = None;
    for (theirs, own) in SPECIAL {
        let token = &settings[format!("{theirs}_token")];
        let token = token.as_str().or_else(|| token["content"].as_str());
        let of_token = token.and_then(|token| tokens.iter().position(|known| known == token));
        let of_config = &config[format!("{theirs}_token_id")];
        let of_config = of_config.as_u64().or_else(|| of_config[0].as_u64()).map(|id| id as usize);
        let Some(id) = of_token.or(of_config) else { continue };
        all.push((key(&format!("{own}_token_id")), Meta::U32(id as u32)));
        if theirs == "bos" {
            begins = tokens.get(id);
        }
    }
    let processors = match tokenizer["post_processor"]["processors"].as_array() {
        Some(processors) => processors.clone(),
        None => vec![tokenizer["post_processor"].clone()],
    };
    let adds =
        processors.iter().any(|step| begins.is_some_and(|token| step["single"][0]["SpecialToken"]["id"] == token.as_str()));
    all.push((key("add_bos_token"), Meta::Bool(adds)));
    Ok(all)
}

/// Returns the chat template of a folder.
fn chat_template(folder: &Path) -> Result<Option<String>> {
    let own = folder.join("chat_template.jinja");
    if own.exists() {
        return Ok(Some(std::fs::read_to_string(&own).with_context(|| own.display().to_string())?));
    }
    let path = folder.join("tokenizer_config.json");
    if !path.exists() {
        return Ok(None);
    }
    let template = &read_json::<Value>(&path)?["chat_template"];
    let default = template.as_array().and_then(|all| all.iter().find(|entry| entry["name"] == "default"));
    Ok(template.as_str().or_else(|| default?["template"].as_str()).map(str::to_owned))
}
