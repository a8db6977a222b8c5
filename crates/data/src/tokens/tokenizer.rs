//! A Hugging Face tokenizer folder: `tokenizer.json`, the special tokens named beside it, and the chat template.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use super::added_tokens::{SpecialTokens, read_object};
use super::tokenizer_expansion;
use crate::template::chat::Marked;
use crate::template::date::TemplateDate;
pub use crate::template::folder::CHAT_TEMPLATE;
use crate::template::folder::{ChatTemplates, MORE_TEMPLATES};
use crate::template::shapes::ShapeVerdicts;
use crate::template::variables::TemplateVariables;
use burnish_util::contained::{Limits, contained};
use burnish_util::foreign;
use burnish_util::model_below::{models_below, where_it_is};

pub use super::added_tokens::TOKENIZER_CONFIG;

/// The file whose eos_token_id names every token that ends a response.
const GENERATION_CONFIG: &str = "generation_config.json";

/// All that belongs to a tokenizer and is copied with an exported model: files, and a folder of files.
const FILES: &[&str] = &[
    "tokenizer.json",
    TOKENIZER_CONFIG,
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    CHAT_TEMPLATE,
    MORE_TEMPLATES,
    "chat_template.json",
    GENERATION_CONFIG,
];

/// The memory that reading a tokenizer.json may take: some ten bytes for each of the file's, and some for its automata.
const LEAST_MEMORY: usize = 256 << 20;
const MEMORY_PER_BYTE: usize = 64;

/// Texts that mark the end of text, tried where no file names one.
const USUAL_EOS: &[&str] = &["<|endoftext|>", "</s>", "<eos>", "<|end_of_text|>"];

/// Turns text into ids and back, and knows the ids that end a text and the chat template. A clone shares vocabulary and
/// templates.
#[derive(Clone)]
pub struct Tokenizer {
    inner: Arc<tokenizers::Tokenizer>,
    chat: ChatTemplates,
    shapes: Arc<ShapeVerdicts>,
    date: TemplateDate,
    files: Vec<PathBuf>,
    vocab_size: usize,
    /// Tokens that tokenizer.json does not have, and the ids they were given.
    new_tokens: Vec<(String, u32)>,
    /// True if decoding removes the spaces before punctuation.
    cleans_up: bool,
    eos_id: u32,
    eos_ids: Vec<u32>,
    special_ids: BTreeSet<u32>,
    /// The texts that decoding leaves out with special tokens, the longest first.
    special_texts: Arc<[String]>,
    /// The tokens that are put before a text, such as `<s>`.
    first_ids: Vec<u32>,
}

impl Tokenizer {
    /// Reads a folder. `tokenizer.json` is required. Special and added tokens are those that transformers takes from it and from
    /// the files beside it. A generation ends, as in vLLM and TRL, at the eos_token of tokenizer_config.json or
    /// special_tokens_map.json and at every eos_token_id of generation_config.json or, if that has none, of config.json. A
    /// supervised response ends with the first of these.
    pub fn load(folder: &Path) -> Result<Self> {
        Self::load_with_template(folder, None)
    }

    /// Reads a folder; a given chat template replaces its own.
    pub fn load_with_template(folder: &Path, template: Option<&str>) -> Result<Self> {
        let path = folder.join("tokenizer.json");
        if !foreign::is_there(&path)? {
            if !folder.is_dir() {
                let what = if folder.exists() { "it is a file, not a folder" } else { "no such folder" };
                bail!("{}: {what}{}", folder.display(), where_it_is(folder));
            }
            bail!("the tokenizer folder {} has no tokenizer.json{}", folder.display(), models_below(folder));
        }
        let mut inner = read(&path).with_context(|| path.display().to_string())?;
        inner.with_padding(None).with_truncation(None).map_err(|e| anyhow!("{}: {e}", path.display()))?;

        tokenizer_expansion::check(&inner).with_context(|| path.display().to_string())?;

        let config = read_object(&folder.join(TOKENIZER_CONFIG))?;
        let is_set = |key: &str| config.get(key).is_some_and(|value| *value == true);
        let tokens = SpecialTokens::read(folder, &config, &inner)?;
        let new_tokens = tokens.add_to(&mut inner).with_context(|| format!("the special tokens of {}", folder.display()))?;
        if !new_tokens.is_empty() {
            tracing::warn!(
                "{}: tokens that are named beside tokenizer.json and not in it get ids of their own: {}",
                folder.display(),
                list(&new_tokens)
            );
        }
        inner.set_encode_special_tokens(is_set("split_special_tokens"));
        let is_bpe = matches!(inner.get_model(), tokenizers::ModelWrapper::BPE(_));
        let cleans_up = is_set("clean_up_tokenization_spaces")
            && (!is_bpe || is_set("clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output"));

        let texts = tokens.texts();
        let named_eos = texts.get("eos_token").and_then(Value::as_str).and_then(|text| inner.token_to_id(text));
        let vocab_size = inner.get_vocab(true).values().max().map_or(0, |id| *id as usize + 1);
        let added = inner.get_added_tokens_decoder();
        let mut special_texts: Vec<String> =
            added.values().filter(|token| token.special).map(|token| token.content.clone()).collect();
        special_texts.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        let special_ids: BTreeSet<u32> = added.iter().filter(|(_, token)| token.special).map(|(id, _)| *id).collect();
        let mut eos_ids: Vec<u32> = named_eos.into_iter().collect();
        eos_ids.extend(ends_of_model(folder, vocab_size, &special_ids)?);
        if eos_ids.is_empty() {
            eos_ids.push(usual_end(folder, &inner)?);
        }
        let date = TemplateDate::today();
        let chat = match template {
            Some(own) => ChatTemplates::one(Some(own), texts)?,
            None => ChatTemplates::read(folder, &config, &texts)
                .with_context(|| format!("in the tokenizer folder {}", folder.display()))?,
        };
        let is_template = |name: &str| [CHAT_TEMPLATE, MORE_TEMPLATES].contains(&name);
        let files = FILES.iter().filter(|name| template.is_none() || !is_template(name));
        let files = files.map(|name| folder.join(name)).filter(|path| path.exists()).collect();
        let first_ids = first_ids(&inner);
        let mut tokenizer = Self {
            inner: inner.into(),
            first_ids,
            chat: chat.with_date(&date),
            shapes: Arc::default(),
            date,
            files,
            vocab_size,
            new_tokens,
            cleans_up,
            eos_id: eos_ids[0],
            eos_ids: Vec::new(),
            special_ids,
            special_texts: special_texts.into(),
        };
        tokenizer.end_at(&eos_ids);
        Ok(tokenizer)
    }

    /// Returns the tokenizer with another date for chat templates.
    pub fn with_date(self, date: TemplateDate) -> Self {
        Self { chat: self.chat.with_date(&date), date, ..self }
    }

    /// Returns the date that chat templates print.
    pub fn date(&self) -> &TemplateDate {
        &self.date
    }

    /// Adds the end tokens of the generation_config.json in a model's folder, unless the tokenizer's own folder has that file.
    pub fn with_ends_of(mut self, model: &Path) -> Result<Self> {
        let path = model.join(GENERATION_CONFIG);
        let has_own = self.files.iter().any(|file| file.ends_with(GENERATION_CONFIG));
        if !has_own && foreign::is_there(&path)? {
            self.end_at(&known_ends(&path, self.vocab_size)?);
            self.files.push(path);
        }
        Ok(self)
    }

    fn end_at(&mut self, ids: &[u32]) {
        self.special_ids.extend(ids);
        self.eos_ids.extend(ids);
        self.eos_ids.sort_unstable();
        self.eos_ids.dedup();
    }

    /// Returns the ids of `text` without adding special tokens; those written out in `text` are recognised.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        self.ids(text, false)
    }

    /// Returns the id of a text that is one token.
    ///
    /// # Errors
    /// If it is none, or several.
    pub fn single(&self, text: &str) -> Result<u32> {
        match self.encode(text)?.as_slice() {
            [id] => Ok(*id),
            ids => bail!("{text:?} is {} tokens of the tokenizer, and must be one", ids.len()),
        }
    }

    /// Returns the id of a token in the spelling of the vocabulary, if there is such a token.
    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// Returns the ids of texts that are one token each.
    ///
    /// # Errors
    /// Like [`Self::single`], and if two are the same.
    pub fn singles(&self, texts: &[String]) -> Result<Vec<u32>> {
        let ids: Vec<u32> = texts.iter().map(|text| self.single(text)).collect::<Result<_>>()?;
        match (1..ids.len()).find(|&i| ids[..i].contains(&ids[i])) {
            Some(twice) => bail!("{:?} is there twice", texts[twice]),
            None => Ok(ids),
        }
    }

    /// Returns the ids of a text that no chat template wrote, with the tokens that the tokenizer puts around a text, such as a
    /// first `<s>`: the same ids as transformers' `tokenizer(text)`, TRL and vLLM give a plain text prompt.
    pub fn encode_plain(&self, text: &str) -> Result<Vec<u32>> {
        self.ids(text, true)
    }

    /// Returns the ids of a text that no chat template wrote and that something may follow: with the tokens that the tokenizer
    /// puts before a text, unless the text begins with them itself, and without those it puts behind one.
    pub fn encode_begun(&self, text: &str) -> Result<Vec<u32>> {
        let ids = self.encode(text)?;
        Ok(if ids.starts_with(&self.first_ids) { ids } else { [&self.first_ids[..], &ids].concat() })
    }

    /// Returns the bytes of the longest token as the vocabulary spells it, which is at least as many as it has in a text.
    pub fn longest_token(&self) -> usize {
        self.inner.get_vocab(true).keys().map(String::len).max().unwrap_or(0)
    }

    /// Returns the ids of [`Self::encode`], and the bytes of `text` that each stands for. The bytes of a token begin no later
    /// than those of the token before it end; the tokens of one character all have its bytes.
    pub fn encode_with_bytes(&self, text: &str) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        let encoding = self.inner.encode(text, false).map_err(|e| anyhow!("cannot tokenize: {e}"))?;
        let mut before = 0;
        // Some tokenizers leave spaces out of what they report.
        let bytes = encoding.get_offsets().iter().map(|&(start, end)| start.min(std::mem::replace(&mut before, end))..end);
        Ok((encoding.get_ids().to_vec(), bytes.collect()))
    }

    fn ids(&self, text: &str, add_special_tokens: bool) -> Result<Vec<u32>> {
        let encoding = self.inner.encode_fast(text, add_special_tokens).map_err(|e| anyhow!("cannot tokenize: {e}"))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Returns the text of `ids`. Ids that the tokenizer does not know (a model's vocabulary may be padded) have no text.
    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String> {
        let text = self.inner.decode(ids, skip_special_tokens).map_err(|e| anyhow!("cannot decode tokens: {e}"))?;
        Ok(if self.cleans_up { cleaned_up(&text) } else { text })
    }

    /// Returns a part of a text that was decoded with special tokens, without their texts.
    pub fn without_special(&self, text: &str) -> String {
        let found = self.special_texts.iter().filter(|special| !special.is_empty());
        found.fold(text.to_owned(), |text, special| if text.contains(&**special) { text.replace(&**special, "") } else { text })
    }

    /// Returns the text of each of `ids` in its context; joined, they are the text of all. A token that ends within a character
    /// has no text, and the last token of that character has all of it. A token that turns bytes before it into no character
    /// begins a context of its own.
    pub fn pieces(&self, ids: &[u32]) -> Result<Vec<String>> {
        let mut stream = self.inner.decode_stream(false);
        let mut pieces = Vec::with_capacity(ids.len());
        for &id in ids {
            let mut piece = stream.step(id);
            if piece.is_err() {
                stream = self.inner.decode_stream(false);
                piece = stream.step(id);
            }
            pieces.push(piece.map_err(|e| anyhow!("cannot decode tokens: {e}"))?.unwrap_or_default());
        }
        Ok(pieces)
    }

    /// Applies the chat template to a list of messages, with further variables.
    ///
    /// # Errors
    /// If it is not a conversation of text, or the template fails or exceeds its bounds.
    pub fn apply_chat_template(
        &self,
        messages: &Value,
        add_generation_prompt: bool,
        variables: impl Into<TemplateVariables>,
    ) -> Result<String> {
        self.chat.render(messages, add_generation_prompt, &variables.into())
    }

    /// Applies the chat template to a list of messages, and finds what it marks as the assistant's (`{% generation %}`); `None`
    /// if the template has no marks.
    ///
    /// # Errors
    /// Those of [`Self::apply_chat_template`], and marks that cannot be found in the text.
    pub fn apply_marked_chat_template(&self, messages: &Value, variables: &TemplateVariables) -> Result<Option<Marked>> {
        self.chat.render_marked(messages, variables)
    }

    /// Returns true if a chat template has this text in its source.
    pub fn template_has(&self, text: &str) -> bool {
        self.chat.has(text)
    }

    /// Returns the verdicts on the conversations that the chat template wrote.
    pub(crate) fn shapes(&self) -> &ShapeVerdicts {
        &self.shapes
    }

    /// Returns the tokenizer as its library has it.
    pub(crate) fn inner(&self) -> &tokenizers::Tokenizer {
        &self.inner
    }

    /// Returns true if the chat template marks what the assistant says.
    ///
    /// # Errors
    /// If there are several templates without a default.
    pub fn marks(&self, variables: &TemplateVariables) -> Result<bool> {
        self.chat.marks(variables.has_tools())
    }

    /// Returns the size of the smallest embedding table that has a row for every token.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// Returns a list in words of the tokens that tokenizer.json lacks and the files beside it name; `None` if there are none.
    pub fn new_tokens(&self) -> Option<String> {
        (!self.new_tokens.is_empty()).then(|| list(&self.new_tokens))
    }

    /// Returns a token, in words, that another tokenizer does not have under the same id; `None` if it reads all these ids as
    /// intended.
    pub fn unknown_to(&self, other: &Self) -> Option<String> {
        let (own, theirs) = (self.inner.get_vocab(true), other.inner.get_vocab(true));
        let differs = own.iter().filter(|(token, id)| theirs.get(*token) != Some(id));
        let (token, id) = differs.min_by_key(|(_, id)| **id)?;
        let there = theirs.get(token).map_or("there is no such token there".to_owned(), |id| format!("it is {id} there"));
        Some(format!("token {id} is {token:?}, {there}"))
    }

    /// Returns the token that ends a supervised response.
    pub fn eos_id(&self) -> u32 {
        self.eos_id
    }

    /// Every token that ends a generation, ascending; [`Self::eos_id`] is one of them.
    pub fn eos_ids(&self) -> &[u32] {
        &self.eos_ids
    }

    /// Returns the tokens that end a response: the ends of a sequence unless they are ignored, and `further` ones.
    pub fn stop_ids(&self, ignore_eos: bool, further: &[u32]) -> Vec<u32> {
        let ends = if ignore_eos { &[][..] } else { &self.eos_ids };
        [ends, further].concat()
    }

    /// Returns true if the token is special, so that no text stands for it; all tokens that end a generation are.
    pub fn is_special(&self, id: u32) -> bool {
        self.special_ids.contains(&id)
    }

    /// Returns true if the token is a byte (`<0x41>`): a decoder reads all that follow one another as one text.
    pub fn is_byte(&self, id: u32) -> bool {
        self.inner.id_to_token(id).is_some_and(|token| token.len() == 6 && token.starts_with("<0x") && token.ends_with('>'))
    }

    /// Returns true if spaces before punctuation are left out of decoded text, so that a token can take one from the text before
    /// it.
    pub fn cleans_up(&self) -> bool {
        self.cleans_up
    }

    /// Returns the folder's tokenizer files, to be copied beside an exported model.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }
}

/// Returns the tokens that a tokenizer puts before a text.
fn first_ids(inner: &tokenizers::Tokenizer) -> Vec<u32> {
    let ids = |add| inner.encode_fast("a", add).map_or_else(|_| Vec::new(), |encoding| encoding.get_ids().to_vec());
    let (bare, around) = (ids(false), ids(true));
    let before = around.windows(bare.len().max(1)).position(|window| window == bare);
    around[..before.unwrap_or(0)].to_vec()
}

/// Reads a tokenizer.json.
fn read(path: &Path) -> Result<tokenizers::Tokenizer> {
    let bytes = foreign::read(path, foreign::TOKENIZER)?;
    let limits = Limits { memory: LEAST_MEMORY + bytes.len().saturating_mul(MEMORY_PER_BYTE), ..Limits::READING };
    let parsed = contained(limits, move || tokenizers::Tokenizer::from_bytes(bytes).map_err(|error| anyhow!("{error}")));
    parsed?
}

/// Returns the tokens that a model's files name as ends of text.
fn ends_of_model(folder: &Path, vocab_size: usize, special: &BTreeSet<u32>) -> Result<Vec<u32>> {
    let ends = known_ends(&folder.join(GENERATION_CONFIG), vocab_size)?;
    if !ends.is_empty() {
        return Ok(ends);
    }
    // config.json often has the default of its model's class, which need not be an end token of this tokenizer.
    Ok(eos_token_id(&folder.join("config.json"))?.into_iter().filter(|id| special.contains(id)).collect())
}

/// Reads the eos_token_id of a generation_config.json.
fn known_ends(path: &Path, vocab_size: usize) -> Result<Vec<u32>> {
    let ids = eos_token_id(path)?;
    match ids.iter().find(|id| **id as usize >= vocab_size) {
        Some(id) => bail!("{}: eos_token_id {id} is not in tokenizer.json, which has {vocab_size} tokens", path.display()),
        None => Ok(ids),
    }
}

/// Returns the end of text where no file names one.
fn usual_end(folder: &Path, inner: &tokenizers::Tokenizer) -> Result<u32> {
    let usual = USUAL_EOS.iter().find_map(|text| Some((text, inner.token_to_id(text)?)));
    let Some((text, id)) = usual else {
        bail!("{}: nothing names the end-of-text token; add a tokenizer_config.json with \"eos_token\"", folder.display());
    };
    tracing::warn!("{}: no file names the end-of-text token; {text} is taken", folder.display());
    Ok(id)
}

fn eos_token_id(path: &Path) -> Result<Vec<u32>> {
    let config = read_object(path)?;
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    match config.get("eos_token_id") {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(list)) => list.iter().map(id).collect(),
        Some(single) => id(single).map(|id| vec![id]),
    }
    .with_context(|| format!("{}: eos_token_id must be a token id or a list of them", path.display()))
}

/// The most tokens that a message lists.
const MOST_LISTED: usize = 20;

/// Lists tokens and their ids.
fn list(tokens: &[(String, u32)]) -> String {
    let more = tokens.len().saturating_sub(MOST_LISTED);
    let listed = tokens.iter().take(MOST_LISTED).map(|(text, id)| format!("{text:?} is {id}"));
    listed.chain((more > 0).then(|| format!("and {more} more"))).collect::<Vec<_>>().join(", ")
}

/// Removes the spaces that tokenizers of words leave (transformers' `clean_up_tokenization`).
fn cleaned_up(text: &str) -> String {
    let pairs = [(" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m"), (" 's", "'s")];
    let pairs = pairs.into_iter().chain([(" 've", "'ve"), (" 're", "'re")]);
    pairs.fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}
