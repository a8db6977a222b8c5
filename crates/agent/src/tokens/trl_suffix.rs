//! TRL's rules for tool results (TRL 1.16, `GRPOTrainer._get_tool_suffix_ids` and `chat_template_utils`).

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use super::escape::SpecialTokenEscaper;
use burnish_data::{TemplateVariables, Tokenizer};

/// Returns the ids that tool results, and the opening of the model's next turn, add after the token that ends a turn, including a
/// newline after that token. `variables` are the variables of the template; TRL leaves the tools out. With an `escaper`, special
/// tokens in the results are encoded as text; without it they stay special, as in TRL.
///
/// # Errors
/// If the first result has no name, or the template fails or changes the text before the results.
pub fn trl_suffix(
    tokenizer: &Tokenizer,
    variables: &TemplateVariables,
    answers: &[Value],
    escaper: Option<&SpecialTokenEscaper>,
) -> Result<Vec<u32>> {
    let Some(name) = answers.first().and_then(|answer| answer.get("name")) else {
        bail!("the first tool result must have a \"name\"");
    };
    let base = called(name, json!({}));
    let mut prefix = tokenizer.encode(&tokenizer.apply_chat_template(&base.clone().into(), false, variables)?)?;
    let escaped = escaper.map(|escaper| escaper.escape(answers));
    let messages = [&base, escaped.as_deref().unwrap_or(answers)].concat();
    let text = tokenizer.apply_chat_template(&messages.into(), true, variables)?;
    let mut ids = escaper.map_or_else(|| tokenizer.encode(&text), |escaper| escaper.encode(&text))?;
    if let Some(end) = prefix.iter().rposition(|id| *id == tokenizer.eos_id()) {
        prefix.truncate(end + 1);
    }
    ensure!(
        ids.starts_with(&prefix),
        "the chat template changes the text before a tool result if the result follows, so no tokens can be appended \
         for it"
    );
    Ok(ids.split_off(prefix.len()))
}

/// Returns true if the template renders a tool call the same way with and without its result.
///
/// # Errors
/// If the template fails.
pub fn is_prefix_preserving(tokenizer: &Tokenizer, variables: &TemplateVariables) -> Result<bool> {
    let answer = json!({"role": "tool", "name": "dummy", "content": "dummy"});
    let ids = |arguments: Value| {
        let mut messages = called(&"dummy".into(), arguments);
        let before = tokenizer.encode(&tokenizer.apply_chat_template(&messages.clone().into(), false, variables)?)?;
        messages.push(answer.clone());
        Ok::<_, anyhow::Error>((before, tokenizer.encode(&tokenizer.apply_chat_template(&messages.into(), true, variables)?)?))
    };
    // Some templates accept only text as arguments.
    let (before, with_call) = ids(json!({})).or_else(|error| ids("{}".into()).map_err(|_| error))?;
    Ok(with_call.starts_with(&before))
}

/// Returns true if the template renders calls and results of tools: some fail, others leave them out.
pub fn writes_tools(tokenizer: &Tokenizer, variables: &TemplateVariables) -> bool {
    let [name, key, value, result] =
        ["tool_name_a8f3e2b1", "tool_arg_key_b9d4f5c2", "tool_arg_val_d6e7a9f3", "tool_content_c4f9a8e2"];
    let rendered = |arguments: Value| {
        let mut messages = called(&name.into(), arguments);
        messages.push(json!({"role": "tool", "name": name, "content": result}));
        tokenizer.apply_chat_template(&messages.into(), false, variables)
    };
    let text = rendered(json!({ key: value })).or_else(|_| rendered(json!({ key: value }).to_string().into()));
    text.is_ok_and(|text| [name, key, value, result].iter().all(|part| text.contains(part)))
}

/// Returns a conversation that ends with a call.
fn called(name: &Value, arguments: Value) -> Vec<Value> {
    let call = json!({"type": "function", "function": {"name": name, "arguments": arguments}});
    vec![json!({"role": "user", "content": "dummy"}), json!({"role": "assistant", "content": "", "tool_calls": [call]})]
}
