//! Reads the special and added tokens of a tokenizer folder, from the files next to tokenizer.json. Follows transformers 5.23
//! exactly (`PreTrainedTokenizerBase._from_pretrained`, `TokenizersBackend.__init__`), so the same tokens are special.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Map, Value};
use tokenizers::AddedToken;

use burnish_util::foreign;

/// Standard names of special tokens. Other names that end in `_token` belong to a single model.
const NAMES: &[&str] = &["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/// Key of unnamed special tokens in transformers 5; `additional_special_tokens` in earlier versions.
const EXTRA: &str = "extra_special_tokens";
const ADDITIONAL: &str = "additional_special_tokens";

/// File of a tokenizer's settings in transformers, next to tokenizer.json.
pub const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
const SPECIAL_TOKENS_MAP: &str = "special_tokens_map.json";
const ADDED_TOKENS: &str = "added_tokens.json";

/// A token as written in a file: text (a special token), or an object with flags.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Token {
    Text(String),
    Full { content: String, single_word: bool, lstrip: bool, rstrip: bool, normalized: Option<bool>, special: bool },
}

impl Token {
    /// Reads a string or an object with `content`; `None` for other values, as in `add_bos_token: true`. `special` is the default
    /// of an object's flag.
    fn read(value: &Value, special: bool) -> Option<Self> {
        let flag = |name: &str| value.get(name).and_then(Value::as_bool);
        match value {
            Value::String(text) => Some(Self::Text(text.clone())),
            _ => Some(Self::Full {
                content: value.get("content")?.as_str()?.to_owned(),
                single_word: flag("single_word").unwrap_or(false),
                lstrip: flag("lstrip").unwrap_or(false),
                rstrip: flag("rstrip").unwrap_or(false),
                normalized: flag("normalized"),
                special: flag("special").unwrap_or(special),
            }),
        }
    }

    fn from_added(token: &AddedToken) -> Self {
        let AddedToken { content, single_word, lstrip, rstrip, normalized, special } = token.clone();
        Self::Full { content, single_word, lstrip, rstrip, normalized: Some(normalized), special }
    }

    fn content(&self) -> &str {
        match self {
            Self::Text(content) | Self::Full { content, .. } => content,
        }
    }

    /// Converts the token for the tokenizer. A named token is special. Special tokens are normalized only if their flag is set.
    fn added(&self, is_named: bool) -> AddedToken {
        match self {
            Self::Text(content) => AddedToken::from(content.as_str(), true),
            Self::Full { content, single_word, lstrip, rstrip, normalized, special } => {
                let special = *special || is_named;
                AddedToken::from(content.as_str(), special)
                    .single_word(*single_word)
                    .lstrip(*lstrip)
                    .rstrip(*rstrip)
                    .normalized(normalized.unwrap_or(!special))
            }
        }
    }
}

/// The tokens in the files next to tokenizer.json.
#[derive(Debug, Default)]
pub(crate) struct SpecialTokens {
    /// Named tokens (`bos_token` …).
    named: Vec<(String, Token)>,
    /// Unnamed special tokens.
    extra: Vec<Token>,
    /// Added tokens by id; only the order matters.
    added: BTreeMap<u64, Token>,
    /// Added tokens by text; the last one with a text takes precedence.
    by_text: BTreeMap<String, Token>,
}

impl SpecialTokens {
    /// Reads the tokens of the tokenizer in `folder`. `config` is its tokenizer_config.json.
    ///
    /// # Errors
    /// If a file is not a JSON object, or an added token is malformed.
    pub(crate) fn read(folder: &Path, config: &Map<String, Value>, inner: &tokenizers::Tokenizer) -> Result<Self> {
        let mut given = config.clone();
        let says_nothing = |value: &Value| match value {
            Value::Null => true,
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        if given.get(EXTRA).is_none_or(says_nothing)
            && let Some(old) = given.remove(ADDITIONAL)
        {
            given.insert(EXTRA.to_owned(), old);
        }
        let mut own = model_tokens(&given);
        given.retain(|key, value| key != EXTRA || !value.is_object());
        let mut tokens = Self::default();
        let mut special = Vec::new();
        match config.get("added_tokens_decoder") {
            Some(decoder) => {
                let decoded = decoded(decoder).with_context(|| folder.join(TOKENIZER_CONFIG).display().to_string())?;
                decoded.into_iter().for_each(|(id, token)| tokens.insert(id, token));
            }
            // transformers before version 5: special_tokens_map.json takes precedence over tokenizer_config.json.
            None => {
                let map = read_object(&folder.join(SPECIAL_TOKENS_MAP))?;
                let mut from_map = model_tokens(&map);
                from_map.retain(|(name, _)| own.iter().all(|(known, _)| known != name));
                own.splice(0..0, from_map);
                for (key, value) in map.clone() {
                    match (given.get_mut(&key), value) {
                        (Some(Value::Array(known)), Value::Array(more)) if key == EXTRA => {
                            let more: Vec<Value> = more.into_iter().filter(|token| !known.contains(token)).collect();
                            known.extend(more);
                        }
                        (_, value) if key == EXTRA && value.is_object() => _ = given.remove(&key),
                        (_, value) => _ = given.insert(key, value),
                    }
                }
                special = spelled(&given, &map);
                if !given.contains_key(EXTRA)
                    && let Some(old) = given.remove(ADDITIONAL)
                {
                    given.insert(EXTRA.to_owned(), old);
                }
            }
        }
        let list = given.get(EXTRA).and_then(Value::as_array);
        tokens.extra = list.into_iter().flatten().filter_map(|token| Token::read(token, true)).collect();
        let names = NAMES.iter().filter_map(|name| Some(((*name).to_owned(), Token::read(given.get(*name)?, true)?)));
        tokens.named = names.collect();
        if !config.contains_key("added_tokens_decoder") {
            tokens.read_added(folder, &special, inner)?;
        }
        for (_, token) in &mut tokens.named {
            if let Some(added) = tokens.by_text.get(token.content()) {
                *token = added.clone();
            }
        }
        tokens.named.extend(own);
        Ok(tokens)
    }

    /// Reads the added tokens if tokenizer_config.json does not list them: from added_tokens.json, overridden by tokenizer.json.
    /// Tokens of added_tokens.json are special if they are in `special`.
    fn read_added(&mut self, folder: &Path, special: &[String], inner: &tokenizers::Tokenizer) -> Result<()> {
        let path = folder.join(ADDED_TOKENS);
        for (content, id) in read_object(&path)? {
            let id = id
                .as_u64()
                .with_context(|| format!("{}: the id of {content:?} must be a whole number, not {id}", path.display()))?;
            let special = special.contains(&content);
            self.insert(id, Token::from_added(&AddedToken::from(content, special)));
        }
        let known = inner.get_added_tokens_decoder();
        known.iter().for_each(|(id, token)| self.insert(u64::from(*id), Token::from_added(token)));
        Ok(())
    }

    fn insert(&mut self, id: u64, token: Token) {
        self.by_text.insert(token.content().to_owned(), token.clone());
        self.added.insert(id, token);
    }

    /// Adds the tokens to `inner`. Returns the new tokens with their ids, which are the next free ones.
    ///
    /// # Errors
    /// If the tokenizer cannot normalize a token.
    pub(crate) fn add_to(&self, inner: &mut tokenizers::Tokenizer) -> Result<Vec<(String, u32)>> {
        let mut adding: Vec<&Token> = self.added.values().collect();
        let known: Vec<String> = inner.get_added_tokens_decoder().into_values().map(|token| token.content).collect();
        let listed: HashSet<&str> = known.iter().map(String::as_str).chain(adding.iter().map(|token| token.content())).collect();
        let mut more: HashSet<&Token> = HashSet::new();
        for token in self.named.iter().map(|(_, token)| token).chain(&self.extra) {
            if !listed.contains(token.content()) && more.insert(token) {
                adding.push(token);
            }
        }
        let named: HashSet<&str> = self.named.iter().map(|(_, token)| token.content()).collect();
        let is_named = |token: &Token| named.contains(token.content());
        let unknown: Vec<&str> = adding
            .iter()
            .map(|token| token.content())
            .filter(|text| !text.is_empty() && inner.token_to_id(text).is_none())
            .collect();
        let tokens: Vec<AddedToken> = adding.iter().map(|token| token.added(is_named(token))).collect();
        inner.add_tokens(tokens).map_err(|e| anyhow!("{e}"))?;
        Ok(unknown.into_iter().filter_map(|text| Some((text.to_owned(), inner.token_to_id(text)?))).collect())
    }

    /// Returns the texts of the named tokens by name, for chat templates.
    pub(crate) fn texts(&self) -> Map<String, Value> {
        self.named.iter().map(|(name, token)| (name.clone(), token.content().into())).collect()
    }
}

/// Returns the texts of special tokens that transformers compares with added tokens: tokens written as text, and tokens of
/// special_tokens_map.json (`map`).
fn spelled(given: &Map<String, Value>, map: &Map<String, Value>) -> Vec<String> {
    let extra = |tokens: &Map<String, Value>| tokens.get(EXTRA).and_then(Value::as_array).cloned().unwrap_or_default();
    let named = |tokens: &Map<String, Value>| NAMES.iter().filter_map(|name| tokens.get(*name)).cloned().collect::<Vec<_>>();
    let texts = [named(given), extra(given)].concat().into_iter().filter(Value::is_string);
    let texts = texts.chain(named(map)).chain(extra(map));
    texts.filter_map(|token| Some(Token::read(&token, true)?.content().to_owned())).collect()
}

/// Returns a model's own named tokens: other `*_token` keys than the standard names, and `extra_special_tokens` as an object.
fn model_tokens(given: &Map<String, Value>) -> Vec<(String, Token)> {
    let is_own = |name: &str| name.ends_with("_token") && !NAMES.contains(&name);
    let named = given.iter().filter(|(name, _)| is_own(name));
    let extra = given.get(EXTRA).and_then(Value::as_object).into_iter().flatten();
    named.chain(extra).filter_map(|(name, token)| Some((name.clone(), Token::read(token, true)?))).collect()
}

/// Reads `added_tokens_decoder`: ids and their tokens.
fn decoded(decoder: &Value) -> Result<Vec<(u64, Token)>> {
    let wrong = "added_tokens_decoder must map ids to objects with \"content\"";
    let entry = |(id, token): (&String, &Value)| -> Result<(u64, Token)> {
        let token = Token::read(token, false).filter(|_| token.is_object());
        Ok((id.parse().ok().context(wrong)?, token.with_context(|| format!("{wrong}; the entry of {id} is not"))?))
    };
    match decoder {
        Value::Object(entries) => entries.iter().map(entry).collect(),
        _ => bail!(wrong),
    }
}

/// Reads the JSON object in a file; empty if the file does not exist.
pub(crate) fn read_object(path: &Path) -> Result<Map<String, Value>> {
    if !foreign::is_there(path)? {
        return Ok(Map::new());
    }
    let text = foreign::read_text(path, foreign::SETTINGS)?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a JSON object", path.display()))
}
