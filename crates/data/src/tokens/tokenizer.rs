//! A Hugging Face tokenizer folder: `tokenizer.json`, special tokens from other files, and the chat template.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use super::added_tokens::{SpecialTokens, read_object};
use super::foreign_tokenizer::ForeignTokenizer;
use super::tokenizer_expansion;
use crate::template::chat::MarkedText;
use crate::template::date::TemplateDate;
pub use crate::template::folder::CHAT_TEMPLATE;
use crate::template::folder::{ChatTemplates, MORE_TEMPLATES};
use crate::template::shapes::ShapeVerdicts;
use crate::template::variables::TemplateVariables;
use burnish_util::contained::{WorkLimits, contained};
use burnish_util::foreign;
use burnish_util::model_below::models_below;

pub use super::added_tokens::TOKENIZER_CONFIG;

/// File whose eos_token_id lists every token that ends a response.
const GENERATION_CONFIG: &str = "generation_config.json";

/// Files and a folder that belong to a tokenizer and are copied with an exported model.
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

/// Memory limit for reading a tokenizer.json: a base for its automata, and bytes per byte of the file; real ones need about ten.
const MIN_MEMORY: usize = 256 << 20;
const MEMORY_PER_BYTE: usize = 64;

/// Usual end-of-text tokens, tried if no file names one.
const USUAL_EOS: &[&str] = &["<|endoftext|>", "</s>", "<eos>", "<|end_of_text|>"];

/// Converts text to ids and back; holds the end tokens and the chat template. Clones share vocabulary and templates.
#[derive(Clone)]
pub struct Tokenizer {
    inner: ForeignTokenizer,
    chat: ChatTemplates,
    shapes: Arc<ShapeVerdicts>,
    date: TemplateDate,
    files: Vec<PathBuf>,
    vocab_size: usize,
    /// Tokens missing in tokenizer.json, with their new ids.
    new_tokens: Vec<(String, u32)>,
    /// True if decoding removes spaces before punctuation.
    cleans_up: bool,
    eos_id: u32,
    eos_ids: Vec<u32>,
    special_ids: BTreeSet<u32>,
    /// Texts of the special tokens, longest first.
    special_texts: Arc<[String]>,
    /// Tokens that the tokenizer adds before a text, such as `<s>`.
    first_ids: Vec<u32>,
}

impl Tokenizer {
    /// Reads a folder. `tokenizer.json` is required. Special and added tokens follow transformers. As in vLLM and TRL, generation
    /// ends at the eos_token of tokenizer_config.json or special_tokens_map.json, and at every eos_token_id of
    /// generation_config.json (or else of config.json). A supervised response ends with the first of these.
    pub fn load(folder: &Path) -> Result<Self> {
        Self::load_with_template(folder, None)
    }

    /// Reads a folder. A given chat template replaces the folder's.
    pub fn load_with_template(folder: &Path, template: Option<&str>) -> Result<Self> {
        let path = folder.join("tokenizer.json");
        if !foreign::is_there(&path)? {
            if !folder.is_dir() {
                let what = if folder.exists() { "it is a file, not a folder" } else { "no such folder" };
                bail!("{}: {what}", folder.display());
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
                "{}: these tokens are missing in tokenizer.json and get new ids: {}",
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
        let inner = ForeignTokenizer::tried(inner, &path)?;
        let first_ids = first_ids(&inner);
        let mut tokenizer = Self {
            inner,
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

    /// Sets the date for chat templates.
    pub fn with_date(self, date: TemplateDate) -> Self {
        Self { chat: self.chat.with_date(&date), date, ..self }
    }

    /// Returns the tokenizer for the texts of many clients: a text that exceeds the limits of a chat template is refused, and the
    /// template is not given up.
    #[must_use]
    pub fn for_requests(self) -> Self {
        Self { chat: self.chat.for_requests(), ..self }
    }

    /// Returns the date that chat templates print.
    pub fn date(&self) -> &TemplateDate {
        &self.date
    }

    /// Adds the end tokens of a model folder's generation_config.json, unless the tokenizer's folder has that file.
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

    /// Returns the ids of `text` without adding special tokens. Special tokens written in `text` are recognised.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        self.inner.encode(text, false)
    }

    /// Returns the id of a text that is exactly one token.
    ///
    /// # Errors
    /// If the text is not exactly one token.
    pub fn single(&self, text: &str) -> Result<u32> {
        match self.encode(text)?.as_slice() {
            [id] => Ok(*id),
            ids => bail!("{text:?} is {} tokens; it must be one token of the tokenizer", ids.len()),
        }
    }

    /// Returns the id of a token in the vocabulary's spelling, if it exists.
    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.inner.vocabulary().token_to_id(token)
    }

    /// Returns the ids of the tokens that the vocabularies of both spell alike, [own, other's], in the order of the own ids.
    pub fn same_spelling(&self, other: &Self) -> Vec<[u32; 2]> {
        let others = other.inner.vocabulary().get_vocab(true);
        let own = self.inner.vocabulary().get_vocab(true);
        let mut pairs: Vec<[u32; 2]> = own.iter().filter_map(|(text, id)| Some([*id, *others.get(text)?])).collect();
        pairs.sort_unstable();
        pairs
    }

    /// Returns a token in the vocabulary's spelling, if it exists.
    pub fn spelling(&self, id: u32) -> Option<String> {
        self.inner.vocabulary().id_to_token(id)
    }

    /// Returns the ids of texts that are exactly one token each.
    ///
    /// # Errors
    /// The errors of [`Self::single`]; two equal tokens.
    pub fn singles(&self, texts: &[String]) -> Result<Vec<u32>> {
        let ids: Vec<u32> = texts.iter().map(|text| self.single(text)).collect::<Result<_>>()?;
        match (1..ids.len()).find(|&i| ids[..i].contains(&ids[i])) {
            Some(twice) => bail!("{:?} is listed twice", texts[twice]),
            None => Ok(ids),
        }
    }

    /// Returns the ids of a plain text, with the tokens that the tokenizer adds around a text, such as a first `<s>`. Same ids as
    /// transformers' `tokenizer(text)`, TRL and vLLM for a plain text prompt.
    pub fn encode_plain(&self, text: &str) -> Result<Vec<u32>> {
        self.inner.encode(text, true)
    }

    /// Returns the ids of the beginning of a plain text: with the tokens that the tokenizer adds before a text (unless the text
    /// begins with them), and without those it adds after a text.
    pub fn encode_begun(&self, text: &str) -> Result<Vec<u32>> {
        let ids = self.encode(text)?;
        Ok(if ids.starts_with(&self.first_ids) { ids } else { [&self.first_ids[..], &ids].concat() })
    }

    /// Returns the length in bytes of the longest token in the vocabulary's spelling, an upper bound of its length in text.
    pub fn longest_token(&self) -> usize {
        self.inner.vocabulary().get_vocab(true).keys().map(String::len).max().unwrap_or(0)
    }

    /// Returns the ids of [`Self::encode`], and the byte range in `text` of each token. Ranges leave no gaps; all tokens of one
    /// character have its whole range.
    pub(crate) fn encode_with_bytes(&self, text: &str) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        let encoding = self.inner.encode_with_offsets(text)?;
        let mut before = 0;
        // Some tokenizers leave out spaces in their offsets.
        let bytes = encoding.get_offsets().iter().map(|&(start, end)| start.min(std::mem::replace(&mut before, end))..end);
        Ok((encoding.get_ids().to_vec(), bytes.collect()))
    }

    /// Returns the text of `ids`. Unknown ids have no text, since a model's vocabulary may be padded.
    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String> {
        let text = self.inner.decode(ids, skip_special_tokens)?;
        Ok(if self.cleans_up { cleaned_up(&text) } else { text })
    }

    /// Removes the texts of special tokens from a decoded text.
    pub fn without_special(&self, text: &str) -> String {
        let found = self.special_texts.iter().filter(|special| !special.is_empty());
        found.fold(text.to_owned(), |text, special| if text.contains(&**special) { text.replace(&**special, "") } else { text })
    }

    /// Returns the text of each token in context; joined, they are the whole text. For a character of several tokens, the last
    /// token has all of the text. A token that makes earlier bytes invalid starts a new context.
    pub fn pieces(&self, ids: &[u32]) -> Result<Vec<String>> {
        self.inner.pieces(ids)
    }

    /// Applies the chat template to a list of messages, with additional variables.
    ///
    /// # Errors
    /// If the messages are not a conversation of text, or the template fails or exceeds its limits.
    pub fn apply_chat_template(
        &self,
        messages: &Value,
        add_generation_prompt: bool,
        variables: impl Into<TemplateVariables>,
    ) -> Result<String> {
        self.chat.render(messages, add_generation_prompt, &variables.into())
    }

    /// Applies the chat template to a list of messages, and finds the assistant's text by marks (`{% generation %}`); `None` if
    /// the template has no marks.
    ///
    /// # Errors
    /// The errors of [`Self::apply_chat_template`], and marks that cannot be found in the text.
    pub(crate) fn apply_marked_chat_template(
        &self,
        messages: &Value,
        variables: &TemplateVariables,
    ) -> Result<Option<MarkedText>> {
        self.chat.render_marked(messages, variables)
    }

    /// Returns true if the tokenizer has a chat template.
    pub fn has_chat_template(&self) -> bool {
        self.chat.has_any()
    }

    /// Returns true if a chat template's source contains this text.
    pub fn template_has(&self, text: &str) -> bool {
        self.chat.has(text)
    }

    /// Returns the verdicts on conversation shapes.
    pub(crate) fn shapes(&self) -> &ShapeVerdicts {
        &self.shapes
    }

    /// Returns the tokenizer of the `tokenizers` crate.
    pub(crate) fn inner(&self) -> &ForeignTokenizer {
        &self.inner
    }

    /// Returns true if the chat template marks the assistant's text.
    ///
    /// # Errors
    /// If several templates have no default.
    pub fn marks(&self, variables: &TemplateVariables) -> Result<bool> {
        self.chat.marks(variables.has_tools())
    }

    /// Returns the size of the smallest embedding table with a row for every token.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// Lists the tokens that other files name and tokenizer.json lacks; `None` if none is missing.
    pub fn new_tokens(&self) -> Option<String> {
        (!self.new_tokens.is_empty()).then(|| list(&self.new_tokens))
    }

    /// Describes a token that another tokenizer lacks or has under another id; `None` if that tokenizer reads all ids of this one
    /// in the same way.
    pub fn unknown_to(&self, other: &Self) -> Option<String> {
        let (own, theirs) = (self.inner.vocabulary().get_vocab(true), other.inner.vocabulary().get_vocab(true));
        let differs = own.iter().filter(|(token, id)| theirs.get(*token) != Some(id));
        let (token, id) = differs.min_by_key(|(_, id)| **id)?;
        let there = theirs.get(token).map_or("which is missing there".to_owned(), |id| format!("which is {id} there"));
        Some(format!("token {id} is {token:?}, {there}"))
    }

    /// Returns the token that ends a supervised response.
    pub fn eos_id(&self) -> u32 {
        self.eos_id
    }

    /// Returns every token that ends a generation, ascending, including [`Self::eos_id`].
    pub fn eos_ids(&self) -> &[u32] {
        &self.eos_ids
    }

    /// Returns the tokens that end a response: the end tokens unless ignored, and `further` ones.
    pub fn stop_ids(&self, ignore_eos: bool, further: &[u32]) -> Vec<u32> {
        let ends = if ignore_eos { &[][..] } else { &self.eos_ids };
        [ends, further].concat()
    }

    /// Returns true if the token is special. All end tokens are.
    pub fn is_special(&self, id: u32) -> bool {
        self.special_ids.contains(&id)
    }

    /// Returns true if the token is a byte (`<0x41>`); a decoder joins consecutive ones.
    pub fn is_byte(&self, id: u32) -> bool {
        self.inner
            .vocabulary()
            .id_to_token(id)
            .is_some_and(|token| token.len() == 6 && token.starts_with("<0x") && token.ends_with('>'))
    }

    /// Returns true if decoding removes spaces before punctuation, so a token can change the text before it.
    pub fn cleans_up(&self) -> bool {
        self.cleans_up
    }

    /// Returns the tokenizer files to copy with an exported model.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }
}

/// Returns the tokens that a tokenizer adds before a text.
fn first_ids(inner: &ForeignTokenizer) -> Vec<u32> {
    let ids = |add| inner.encode("a", add).unwrap_or_default();
    let (bare, around) = (ids(false), ids(true));
    let before = around.windows(bare.len().max(1)).position(|window| window == bare);
    around[..before.unwrap_or(0)].to_vec()
}

/// Reads a tokenizer.json.
fn read(path: &Path) -> Result<tokenizers::Tokenizer> {
    let bytes = foreign::read(path, foreign::TOKENIZER)?;
    let limits = WorkLimits { memory: MIN_MEMORY + bytes.len().saturating_mul(MEMORY_PER_BYTE), ..WorkLimits::READING };
    let parsed = contained(limits, move || tokenizers::Tokenizer::from_bytes(bytes).map_err(|error| anyhow!("{error}")));
    parsed?
}

/// Returns the end tokens in a model's files.
fn ends_of_model(folder: &Path, vocab_size: usize, special: &BTreeSet<u32>) -> Result<Vec<u32>> {
    let ends = known_ends(&folder.join(GENERATION_CONFIG), vocab_size)?;
    if !ends.is_empty() {
        return Ok(ends);
    }
    // config.json often has the default of the model class, which may not be an end token of this tokenizer.
    Ok(eos_token_id(&folder.join("config.json"))?.into_iter().filter(|id| special.contains(id)).collect())
}

/// Reads eos_token_id of a generation_config.json.
fn known_ends(path: &Path, vocab_size: usize) -> Result<Vec<u32>> {
    let ids = eos_token_id(path)?;
    match ids.iter().find(|id| **id as usize >= vocab_size) {
        Some(id) => bail!("{}: eos_token_id {id} is not in tokenizer.json, which has {vocab_size} tokens", path.display()),
        None => Ok(ids),
    }
}

/// Returns a usual end-of-text token if no file names one.
fn usual_end(folder: &Path, inner: &tokenizers::Tokenizer) -> Result<u32> {
    let usual = USUAL_EOS.iter().find_map(|text| Some((text, inner.token_to_id(text)?)));
    let Some((text, id)) = usual else {
        bail!("{}: no file names the end-of-text token; add a tokenizer_config.json with \"eos_token\"", folder.display());
    };
    tracing::warn!("{}: no file names the end-of-text token; using {text}", folder.display());
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

/// Largest number of tokens to list in a message.
const MAX_LISTED: usize = 20;

/// Lists tokens and their ids.
fn list(tokens: &[(String, u32)]) -> String {
    let more = tokens.len().saturating_sub(MAX_LISTED);
    let listed = tokens.iter().take(MAX_LISTED).map(|(text, id)| format!("{text:?} is {id}"));
    listed.chain((more > 0).then(|| format!("and {more} more"))).collect::<Vec<_>>().join(", ")
}

/// Removes the spaces that word tokenizers leave (transformers' `clean_up_tokenization`).
fn cleaned_up(text: &str) -> String {
    let pairs = [(" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m"), (" 's", "'s")];
    let pairs = pairs.into_iter().chain([(" 've", "'ve"), (" 're", "'re")]);
    pairs.fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}
