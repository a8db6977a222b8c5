//! What a request says about sampling and about the form of the answer.

use serde_json::Value;

use super::fields::Fields;
use super::refused::Refused;
use burnish_rollout::Sampling;

/// The largest number of stop texts, and of bytes of all of them: each token is searched for them.
const MOST_STOPS: usize = 64;
const LONGEST_STOPS: usize = 4096;

/// Fields that would change the answer in a way that is not here, with the reason or what does the same. A value that asks for nothing is accepted.
const NOT_HERE: &[(&str, &str)] = &[
    ("logit_bias", "this server does not change the probabilities of single tokens"),
    ("bad_words", "this server does not change the probabilities of single tokens"),
    ("allowed_token_ids", "this server does not change the probabilities of single tokens"),
    ("best_of", "`n` gives several answers"),
    ("use_beam_search", "answers are sampled"),
    ("echo", "`return_token_ids` gives the tokens of the prompt"),
    ("suffix", "text is only continued"),
    ("prompt_logprobs", "only sampled tokens have log-probabilities"),
    ("ignore_eos", "answers end at the model's end tokens; `min_tokens` makes them longer"),
    ("continue_final_message", "`/v1/completions` continues a text"),
    ("functions", "`tools` does the same"),
    ("function_call", "`tool_choice` does the same"),
    ("audio", "answers are text"),
    ("guided_json", "answers are not constrained"),
    ("guided_regex", "answers are not constrained"),
    ("guided_choice", "answers are not constrained"),
    ("guided_grammar", "answers are not constrained"),
    ("structured_outputs", "answers are not constrained"),
    ("truncate_prompt_tokens", "a prompt that is too long is refused"),
];

/// The values of requests that say nothing, and what the model can do.
#[derive(Clone, Copy, Debug)]
pub struct Defaults {
    /// `max_tokens` among it.
    pub sampling: Sampling,
    /// The number of tokens that a prompt and its answer may have together.
    pub longest: usize,
    /// The number of tokens of the vocabulary; larger ids are refused.
    pub vocab: usize,
    /// The largest `n`, and the largest number of prompts of one request.
    pub most: usize,
}

/// What both kinds of requests have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The number of answers to each prompt.
    pub n: usize,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    /// 0 keeps all tokens.
    pub top_k: Option<usize>,
    pub min_p: Option<f64>,
    pub repetition_penalty: Option<f64>,
    pub presence_penalty: Option<f64>,
    pub frequency_penalty: Option<f64>,
    pub max_tokens: Option<usize>,
    pub min_tokens: Option<usize>,
    pub seed: Option<u64>,
    /// Texts that end an answer; none is empty.
    pub stop: Vec<String>,
    pub stop_token_ids: Vec<u32>,
    /// True if the text or the token that ended an answer is part of it.
    pub include_stop: bool,
    /// True if the text of an answer shows special tokens.
    pub special_tokens: bool,
    pub stream: bool,
    /// True if the last chunk of a stream counts the tokens.
    pub usage_in_stream: bool,
    /// True if sampled tokens get their log-probabilities.
    pub log_probs: bool,
    /// True if answers have the ids of their tokens, and of the prompt's.
    pub token_ids: bool,
    /// True if log-probabilities name tokens `token_id:N`, and not by their text.
    pub tokens_as_ids: bool,
}

impl Options {
    /// Takes the fields of this kind from a request. `most`: the largest `n`.
    ///
    /// # Errors
    /// If a value is out of its bounds, or asks for what is not here.
    pub fn take(fields: &mut Fields, most: usize) -> Result<Self, Refused> {
        for (name, reason) in NOT_HERE {
            let asked = fields.take(name).filter(asks);
            // OpenAI's default is 1.
            if asked.is_some_and(|value| (*name, &value) != ("best_of", &Value::from(1))) {
                return Err(Refused::field(name, format!("`{name}` is not supported: {reason}")));
            }
        }
        let probability = |p: f64| p > 0.0 && p <= 1.0;
        let penalty = |p: f64| (-2.0..=2.0).contains(&p);
        let max_tokens = fields.count("max_completion_tokens", 1)?;
        let older = fields.count("max_tokens", 1)?;
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
            stop: stop(fields.take("stop"))?,
            stop_token_ids: fields.ids("stop_token_ids")?.unwrap_or_default(),
            include_stop: fields.flag("include_stop_str_in_output")?.unwrap_or(false),
            special_tokens: !fields.flag("skip_special_tokens")?.unwrap_or(true),
            stream: fields.flag("stream")?.unwrap_or(false),
            usage_in_stream: fields
                .object("stream_options")?
                .is_some_and(|options| options.get("include_usage") == Some(&true.into())),
            log_probs: false,
            token_ids: fields.flag("return_token_ids")?.unwrap_or(false),
            tokens_as_ids: fields.flag("return_tokens_as_token_ids")?.unwrap_or(false),
        };
        if options.n > most {
            return Err(Refused::field("n", format!("`n` is {}, at most {most} answers are given", options.n)));
        }
        if options.stop_token_ids.len() > MOST_STOPS {
            return Err(Refused::field("stop_token_ids", format!("`stop_token_ids` has more than {MOST_STOPS} ids")));
        }
        Ok(options)
    }

    /// The sampling of an answer to a prompt of this many tokens.
    ///
    /// # Errors
    /// If the model has no room for it, or `min_tokens` is above the largest length.
    pub fn sampling(&self, prompt: usize, defaults: &Defaults) -> Result<Sampling, Refused> {
        let Defaults { sampling, longest, .. } = *defaults;
        if prompt >= longest {
            let message = format!("the prompt has {prompt} tokens, and the model reads {longest}, with the answer");
            return Err(Refused::too_long("prompt", message));
        }
        let room = longest - prompt;
        let max_tokens = match self.max_tokens {
            Some(wanted) if wanted > room => {
                let message =
                    format!("`max_tokens` is {wanted}: a prompt of {prompt} tokens leaves {room} of the model's {longest}");
                return Err(Refused::too_long("max_tokens", message));
            }
            Some(wanted) => wanted,
            None => sampling.max_tokens.min(room),
        };
        let min_tokens = match self.min_tokens {
            Some(least) if least > max_tokens => {
                return Err(Refused::field("min_tokens", format!("`min_tokens` is {least}, the largest length {max_tokens}")));
            }
            Some(least) => least,
            None => sampling.min_tokens.min(max_tokens),
        };
        let or = |given: Option<f64>, default: f32| given.map_or(default, |number| number as f32);
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

/// True if a value asks for something.
fn asks(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

fn stop(value: Option<Value>) -> Result<Vec<String>, Refused> {
    let wrong = || Refused::field("stop", "`stop` must be a text or a list of texts, none of them empty");
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
    if texts.len() > MOST_STOPS || texts.iter().map(String::len).sum::<usize>() > LONGEST_STOPS {
        return Err(Refused::field(
            "stop",
            format!("`stop` has more than {MOST_STOPS} texts, or more than {LONGEST_STOPS} bytes"),
        ));
    }
    Ok(texts)
}
