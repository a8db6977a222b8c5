//! The options of a request for sampling and for the form of the reply.

use serde_json::Value;

use super::error::ApiError;
use super::fields::RequestFields;
use burnish_rollout::{Logprobs, Sampling, WantedScores};

/// The limits of stop texts: their number, and their total bytes. Each token is searched for all of them.
const MAX_STOPS: usize = 64;
const LONGEST_STOPS: usize = 4096;

/// The limit of most probable tokens in each place, as vLLM's `--max-logprobs` by default.
pub(super) const MAX_LOG_PROBS: usize = 20;
/// The limit of the log-probabilities of a reply, which take a few hundred bytes each while it is written.
const MAX_SCORED: usize = 500_000;

/// Fields that ask for unsupported features, with the reason or an alternative. A value that asks for nothing is accepted.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("logit_bias", "this server does not change the probabilities of single tokens"),
    ("bad_words", "this server does not change the probabilities of single tokens"),
    ("allowed_token_ids", "this server does not change the probabilities of single tokens"),
    ("best_of", "use `n` for several responses"),
    ("use_beam_search", "responses are sampled"),
    ("suffix", "text is only continued at its end"),
    ("ignore_eos", "responses end at the model's end tokens; use `min_tokens` for longer ones"),
    ("continue_final_message", "use `/v1/completions` to continue a text"),
    ("functions", "use `tools`"),
    ("function_call", "use `tool_choice`"),
    ("audio", "responses are text"),
    ("guided_json", "responses are not constrained"),
    ("guided_regex", "responses are not constrained"),
    ("guided_choice", "responses are not constrained"),
    ("guided_grammar", "responses are not constrained"),
    ("structured_outputs", "responses are not constrained"),
    ("truncate_prompt_tokens", "a prompt that is too long is refused"),
];

/// The defaults of requests, and the limits of the model.
#[derive(Clone, Copy, Debug)]
pub struct RequestDefaults {
    /// The default sampling settings, including `max_tokens`.
    pub sampling: Sampling,
    /// The token limit of a prompt and its response together.
    pub longest: usize,
    /// The size of the vocabulary; larger ids are refused.
    pub vocab: usize,
    /// The limit of `n`, and of prompts per request.
    pub max: usize,
}

/// The options that both kinds of requests have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestOptions {
    /// The number of responses to each prompt.
    pub n: usize,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    /// The number of top-k tokens; 0 keeps all tokens.
    pub top_k: Option<usize>,
    pub min_p: Option<f64>,
    pub repetition_penalty: Option<f64>,
    pub presence_penalty: Option<f64>,
    pub frequency_penalty: Option<f64>,
    pub max_tokens: Option<usize>,
    pub min_tokens: Option<usize>,
    pub seed: Option<u64>,
    /// Texts that end a response; never empty strings.
    pub stop: Vec<String>,
    pub stop_token_ids: Vec<u32>,
    /// True if the text or token that ended a response is part of it.
    pub(crate) include_stop: bool,
    /// True if the text of a response shows special tokens.
    pub special_tokens: bool,
    pub stream: bool,
    /// True if the last chunk of a stream has the token counts.
    pub usage_in_stream: bool,
    /// True if sampled tokens get their log-probabilities.
    pub log_probs: bool,
    /// The number of most probable tokens in the place of each token with a log-probability.
    pub(crate) top_log_probs: usize,
    /// The number of most probable tokens in the place of each prompt token, in `prompt_logprobs`; `None` leaves the field out.
    pub(crate) prompt_log_probs: Option<usize>,
    /// True if the text of a reply begins with the prompt.
    pub echo: bool,
    /// True if replies have the token ids of responses and prompts.
    pub token_ids: bool,
    /// True if log-probabilities name tokens `token_id:N` instead of by their text.
    pub(crate) tokens_as_ids: bool,
}

impl RequestOptions {
    /// Takes these fields from a request. `max` is the limit of `n`.
    ///
    /// # Errors
    /// If a value is out of range, or asks for an unsupported feature.
    pub fn take(fields: &mut RequestFields, max: usize) -> Result<Self, ApiError> {
        for (name, reason) in UNSUPPORTED {
            let value = fields.take(name)?.filter(asks);
            // OpenAI's default is 1.
            if value.is_some_and(|value| (*name, &value) != ("best_of", &Value::from(1))) {
                return Err(ApiError::field(name, format!("`{name}` is not supported: {reason}")));
            }
        }
        let probability = |p: f64| p > 0.0 && p <= 1.0;
        let penalty = |p: f64| (-2.0..=2.0).contains(&p);
        let echo = fields.flag("echo")?.unwrap_or(false);
        let max_tokens = fields.count("max_completion_tokens", 1)?;
        let older = fields.count("max_tokens", usize::from(!echo))?;
        let options = Self {
            n: fields.count("n", 1)?.unwrap_or(1),
            temperature: fields.number("temperature", "a number from 0", |t| t >= 0.0)?,
            top_p: fields.number("top_p", "above 0, to 1", probability)?,
            top_k: fields.integer("top_k", "-1, 0 or an integer above 0", |k| k >= -1)?.map(|k| usize::try_from(k).unwrap_or(0)),
            min_p: fields.number("min_p", "from 0 to 1", |p| (0.0..=1.0).contains(&p))?,
            repetition_penalty: fields
                .number("repetition_penalty", "from 0.001 to 1000", |p| Sampling::REPETITION.contains(&p))?,
            presence_penalty: fields.number("presence_penalty", "from -2 to 2", penalty)?,
            frequency_penalty: fields.number("frequency_penalty", "from -2 to 2", penalty)?,
            max_tokens: max_tokens.or(older),
            min_tokens: fields.count("min_tokens", 0)?,
            seed: fields.integer("seed", "an integer", |_| true)?.map(i64::cast_unsigned),
            stop: stop(fields.take("stop")?)?,
            stop_token_ids: fields.ids("stop_token_ids")?.unwrap_or_default(),
            include_stop: fields.flag("include_stop_str_in_output")?.unwrap_or(false),
            special_tokens: !fields.flag("skip_special_tokens")?.unwrap_or(true),
            stream: fields.flag("stream")?.unwrap_or(false),
            usage_in_stream: fields
                .object("stream_options")?
                .is_some_and(|options| options.get("include_usage") == Some(&true.into())),
            log_probs: false,
            top_log_probs: 0,
            prompt_log_probs: fields.up_to("prompt_logprobs", MAX_LOG_PROBS)?,
            echo,
            token_ids: fields.flag("return_token_ids")?.unwrap_or(false),
            tokens_as_ids: fields.flag("return_tokens_as_token_ids")?.unwrap_or(false),
        };
        if options.n > max {
            return Err(ApiError::field("n", format!("`n` is {}, but it must be at most {max}", options.n)));
        }
        if options.stop_token_ids.len() > MAX_STOPS {
            return Err(ApiError::field("stop_token_ids", format!("`stop_token_ids` has more than {MAX_STOPS} ids")));
        }
        if options.stream && options.prompt_log_probs.is_some() {
            return Err(ApiError::field("prompt_logprobs", "`prompt_logprobs` is not streamed: leave `stream` out"));
        }
        Ok(options)
    }

    /// Returns the scores that the reply shows.
    pub fn scores(&self) -> WantedScores {
        WantedScores { prompt: self.prompt_log_probs.max(self.echoed()), sampled: self.top_log_probs }
    }

    /// The number of most probable tokens at each token of an echoed prompt, if these have log-probabilities.
    fn echoed(&self) -> Option<usize> {
        (self.echo && self.log_probs).then_some(self.top_log_probs)
    }

    /// Checks the number of log-probabilities of a reply, given the tokens of the prompts that it shows, counted for each place, and
    /// the most that may be sampled.
    ///
    /// # Errors
    /// If the reply would have too many.
    pub fn check_scores(&self, prompt: usize, sampled: usize) -> Result<(), ApiError> {
        let of_sampled = self.top_log_probs;
        // Both lists are written.
        let lists = [self.prompt_log_probs, self.echoed()].into_iter().flatten();
        let prompt = lists.fold(0_usize, |all, top| all.saturating_add(prompt.saturating_mul(top + 1)));
        let sampled = if of_sampled == 0 { 0 } else { sampled.saturating_mul(of_sampled + 1) };
        let all = prompt.saturating_add(sampled);
        if all <= MAX_SCORED {
            return Ok(());
        }
        let message = format!(
            "the reply can have {all} log-probabilities, {prompt} of them of prompts; the limit is {MAX_SCORED}: send fewer prompts, \
             or lower `max_tokens`, `n` or the number of most probable tokens"
        );
        Err(ApiError::field(if self.prompt_log_probs.is_some() { "prompt_logprobs" } else { "logprobs" }, message))
    }

    /// Returns the sampling settings for a prompt of this many tokens.
    ///
    /// # Errors
    /// If no room is left for a response, if `min_tokens` is above the token limit, or if the server's log-probabilities are not
    /// raw and other tokens than the sampled ones are to have some.
    pub fn sampling(&self, prompt: usize, defaults: &RequestDefaults) -> Result<Sampling, ApiError> {
        let RequestDefaults { sampling, longest, .. } = *defaults;
        if self.top_log_probs > 0 && sampling.logprobs != Logprobs::Raw {
            let message = "`logprobs` above 0 and `top_logprobs` need --logprobs-mode raw_logprobs of the server";
            return Err(ApiError::field("logprobs", message));
        }
        if prompt + self.max_tokens.unwrap_or(1).min(1) > longest {
            let message = format!("the prompt has {prompt} tokens; the model's limit is {longest} including the response");
            return Err(ApiError::too_long("prompt", message));
        }
        let room = longest - prompt;
        let max_tokens = match self.max_tokens {
            Some(requested) if requested > room => {
                let message =
                    format!("`max_tokens` is {requested}: a prompt of {prompt} tokens leaves {room} of the model's {longest}");
                return Err(ApiError::too_long("max_tokens", message));
            }
            Some(requested) => requested,
            None => sampling.max_tokens.min(room),
        };
        let min_tokens = match self.min_tokens {
            Some(least) if least > max_tokens => {
                return Err(ApiError::field(
                    "min_tokens",
                    format!("`min_tokens` is {least}, but it must be at most the token limit {max_tokens}"),
                ));
            }
            Some(least) => least,
            None => sampling.min_tokens.min(max_tokens),
        };
        let or = |value: Option<f64>, default: f32| value.map_or(default, |number| number as f32);
        Ok(Sampling {
            temperature: or(self.temperature, sampling.temperature),
            top_k: self.top_k.unwrap_or(sampling.top_k),
            top_p: or(self.top_p, sampling.top_p),
            min_p: or(self.min_p, sampling.min_p),
            repetition_penalty: or(self.repetition_penalty, sampling.repetition_penalty),
            presence_penalty: or(self.presence_penalty, sampling.presence_penalty),
            frequency_penalty: or(self.frequency_penalty, sampling.frequency_penalty),
            max_tokens,
            min_tokens,
            logprobs: sampling.logprobs,
        })
    }
}

/// Returns true if a value asks for something.
fn asks(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

fn stop(value: Option<Value>) -> Result<Vec<String>, ApiError> {
    let wrong = || ApiError::field("stop", "`stop` must be a text or a list of texts, none of them empty");
    let texts = match value {
        None => Vec::new(),
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(list)) => {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            list.iter().map(text).collect::<Option<_>>().ok_or_else(wrong)?
        }
        Some(_) => return Err(wrong()),
    };
    if texts.iter().any(String::is_empty) {
        return Err(wrong());
    }
    if texts.len() > MAX_STOPS || texts.iter().map(String::len).sum::<usize>() > LONGEST_STOPS {
        return Err(ApiError::field(
            "stop",
            format!("`stop` has more than {MAX_STOPS} texts, or more than {LONGEST_STOPS} bytes"),
        ));
    }
    Ok(texts)
}
