//! `/tokenize` and `/detokenize`, with vLLM's fields.

use serde::Serialize;

use super::body_json::JsonPrompt;
use super::error::ApiError;
use super::fields::RequestFields;
use super::model::EndpointModel;
use super::request::ChatRequest;

/// The reply of `/tokenize`.
#[derive(Serialize)]
struct Tokenized {
    count: usize,
    max_model_len: usize,
    tokens: Vec<u32>,
    /// The tokens in the vocabulary's spelling, if requested.
    token_strs: Option<Vec<Option<String>>>,
}

/// The reply of `/detokenize`.
#[derive(Serialize)]
struct Detokenized {
    prompt: String,
}

impl EndpointModel {
    /// Returns the tokens of a `prompt`, or of `messages` as a chat request has them, as JSON.
    ///
    /// # Errors
    /// If the request is invalid, far too long, or for another model.
    pub fn tokenize(&self, body: &[u8]) -> Result<String, ApiError> {
        let mut fields = RequestFields::parse(body)?;
        let (names, special) = (fields.flag("return_token_strs")?.unwrap_or(false), fields.flag("add_special_tokens")?);
        let tokens = match (fields.text("prompt")?, fields.has("messages")) {
            (Some(_), true) => return Err(ApiError::field("prompt", "`prompt` and `messages` exclude each other")),
            (None, false) => return Err(ApiError::field("prompt", "`prompt` or `messages` is missing")),
            (Some(prompt), false) => {
                let model = fields.text("model")?;
                self.check(model.as_deref(), &fields.unread())?;
                self.renderer.encoded(&prompt, special.unwrap_or(true))?
            }
            (None, true) if special == Some(true) => {
                let message = "`add_special_tokens` must be false for messages: the chat template writes special tokens";
                return Err(ApiError::field("add_special_tokens", message));
            }
            (None, true) => {
                let request = ChatRequest::take(fields, None, self.renderer.defaults().max)?;
                self.check(request.model.as_deref(), &request.ignored)?;
                self.renderer.chat(&request)?.ids
            }
        };
        let tokenizer = self.renderer.tokenizer();
        let token_strs = names.then(|| tokens.iter().map(|id| tokenizer.spelling(*id)).collect());
        let max_model_len = self.renderer.defaults().longest;
        json(&Tokenized { count: tokens.len(), max_model_len, tokens, token_strs })
    }

    /// Returns the text of `tokens`, as JSON. Special tokens are part of the text.
    ///
    /// # Errors
    /// If the request is invalid, has more tokens than the model's limit, or is for another model.
    pub fn detokenize(&self, body: &[u8]) -> Result<String, ApiError> {
        let mut fields = RequestFields::parse(body)?;
        let Some(JsonPrompt::Ids(Some(tokens))) = fields.prompts("tokens")? else {
            return Err(ApiError::field("tokens", "`tokens` must be a list of token ids"));
        };
        let model = fields.text("model")?;
        self.check(model.as_deref(), &fields.unread())?;
        let longest = self.renderer.defaults().longest;
        if tokens.len() > longest {
            let message = format!("`tokens` has {} ids; the model's limit is {longest}", tokens.len());
            return Err(ApiError::too_long("tokens", message));
        }
        self.renderer.check_ids("tokens", &tokens)?;
        let prompt = self.renderer.tokenizer().decode(&tokens, false);
        json(&Detokenized { prompt: prompt.map_err(|error| ApiError::field("tokens", format!("{error:#}")))? })
    }
}

fn json(reply: &impl Serialize) -> Result<String, ApiError> {
    serde_json::to_string(reply).map_err(|error| ApiError::status(500, error.to_string()))
}
