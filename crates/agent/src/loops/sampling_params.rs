//! Sampling parameters of a single turn, which a custom loop gives in vLLM's names.

use serde_json::{Map, Value, json};

use burnish_rollout::Sampling;

/// Parameters that change the form of a response but not its tokens.
const WITHOUT_EFFECT: &[&str] = &[
    "detokenize",
    "include_stop_str_in_output",
    "logprobs",
    "return_logprob",
    "skip_special_tokens",
    "spaces_between_special_tokens",
];

/// Parsed sampling parameters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TurnParams {
    pub sampling: Sampling,
    /// The token limit of the turn; `None` for all remaining tokens.
    pub max_tokens: Option<usize>,
    /// Ids that end the turn.
    pub stop_ids: Vec<u32>,
    /// Texts that end the turn.
    pub stop: Vec<String>,
}

/// Returns the parameters that a loop gets, in verl's form: `top_k` is -1 for all tokens.
pub fn params_from(sampling: &Sampling) -> Map<String, Value> {
    // The shortest text of an f32 is the number that the user wrote.
    let number = |value: f32| value.to_string().parse::<f64>().unwrap_or_else(|_| value.into());
    let top_k = if sampling.top_k == 0 { json!(-1) } else { json!(sampling.top_k) };
    let params = json!({
        "temperature": number(sampling.temperature),
        "top_p": number(sampling.top_p),
        "top_k": top_k,
        "repetition_penalty": number(sampling.repetition_penalty),
        "logprobs": true,
    });
    params.as_object().cloned().unwrap_or_default()
}

/// Parses the parameters of a turn; missing or null parameters keep the values of `base`.
///
/// # Errors
/// An unknown parameter or an invalid value, in words for the author of the loop.
pub(crate) fn read_params(base: &Sampling, params: &Map<String, Value>) -> Result<TurnParams, String> {
    let mut read = TurnParams { sampling: *base, max_tokens: None, stop_ids: Vec::new(), stop: Vec::new() };
    for (name, value) in params.iter().filter(|(_, value)| !value.is_null()) {
        let sampling = &mut read.sampling;
        let wrong = |expected: &str| format!("sampling_params[{name:?}] must be {expected}, not {value}");
        let number = |is_fine: fn(f64) -> bool, expected: &str| {
            value.as_f64().filter(|number| is_fine(*number)).map(|number| number as f32).ok_or_else(|| wrong(expected))
        };
        let count = |expected: &str| value.as_u64().and_then(|count| usize::try_from(count).ok()).ok_or_else(|| wrong(expected));
        match name.as_str() {
            "temperature" => sampling.temperature = number(|x| x >= 0.0, "a number >= 0")?,
            "top_p" => sampling.top_p = number(|x| x > 0.0 && x <= 1.0, "a number > 0, at most 1")?,
            "min_p" => sampling.min_p = number(|x| (0.0..=1.0).contains(&x), "a number from 0 to 1")?,
            "top_k" if value.as_i64() == Some(-1) => sampling.top_k = 0,
            "top_k" => sampling.top_k = count("-1 or an integer >= 0")?,
            "repetition_penalty" => {
                sampling.repetition_penalty = number(|x| Sampling::REPETITION.contains(&x), "a number from 0.001 to 1000")?;
            }
            "presence_penalty" => sampling.presence_penalty = number(|x| x.abs() <= 1e6, "a number from -1000000 to 1000000")?,
            "frequency_penalty" => sampling.frequency_penalty = number(|x| x.abs() <= 1e6, "a number from -1000000 to 1000000")?,
            "min_tokens" | "min_new_tokens" => sampling.min_tokens = count("an integer >= 0")?,
            "max_tokens" | "max_new_tokens" => read.max_tokens = Some(count("an integer >= 0")?),
            "stop_token_ids" => {
                let ids = value.as_array().map(|ids| ids.iter().map(|id| u32::try_from(id.as_u64()?).ok()).collect());
                read.stop_ids = ids.flatten().ok_or_else(|| wrong("a list of token ids"))?;
            }
            "stop" => {
                let texts = match value {
                    Value::String(text) => Some(vec![text.clone()]),
                    Value::Array(texts) => texts.iter().map(|text| text.as_str().map(str::to_owned)).collect(),
                    _ => None,
                };
                let texts = texts.filter(|texts: &Vec<String>| texts.iter().all(|text| !text.is_empty()));
                read.stop = texts.ok_or_else(|| wrong("a text or a list of texts, none empty"))?;
            }
            "n" if value.as_u64() == Some(1) => {}
            "ignore_eos" if value.as_bool() == Some(false) => {}
            name if WITHOUT_EFFECT.contains(&name) => {}
            _ => {
                return Err(format!(
                    "sampling_params[{name:?}] is {value}: turns have temperature, top_p, top_k, min_p, repetition_penalty, \
                     presence_penalty, frequency_penalty, min_tokens, max_tokens, stop and stop_token_ids"
                ));
            }
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_come_back_as_they_were_given() {
        let base = Sampling { temperature: 0.7, top_p: 0.9, min_p: 0.05, max_tokens: 5, ..Sampling::PLAIN };
        let params = params_from(&base);
        assert_eq!((&params["temperature"], &params["top_k"]), (&json!(0.7), &json!(-1)));
        let read = read_params(&base, &params).unwrap();
        assert_eq!(read, TurnParams { sampling: base, max_tokens: None, stop_ids: vec![], stop: vec![] });
    }

    #[test]
    fn what_a_turn_cannot_have_is_told() {
        let read = |params: Value| read_params(&Sampling::PLAIN, params.as_object().unwrap());
        let changed =
            read(json!({"temperature": 0, "top_k": 5, "max_new_tokens": 9, "stop": "</a>", "stop_token_ids": [3], "seed": null}));
        let changed = changed.unwrap();
        assert_eq!((changed.sampling.temperature, changed.sampling.top_k, changed.max_tokens), (0.0, 5, Some(9)));
        assert_eq!((changed.stop, changed.stop_ids), (vec!["</a>".to_owned()], vec![3]));
        for (params, part) in [
            (json!({"temperature": -1}), "a number >= 0, not -1"),
            (json!({"temperature": "hot"}), "not \"hot\""),
            (json!({"top_k": -2}), "-1 or an integer"),
            (json!({"repetition_penalty": 1e-46}), "from 0.001 to 1000"),
            (json!({"n": 4}), "\"n\"] is 4"),
            (json!({"guided_json": {}}), "guided_json"),
            (json!({"stop": [""]}), "none empty"),
            (json!({"stop_token_ids": [-1]}), "list of token ids"),
        ] {
            let error = read(params.clone()).unwrap_err();
            assert!(error.contains(part), "{params}: {error}");
        }
    }
}
