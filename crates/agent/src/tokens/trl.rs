//! TRL's rule for answers of tools (TRL 1.16, `GRPOTrainer._get_tool_suffix_ids` and `chat_template_utils`).

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use super::quoted::Quoting;
use burnish_data::{TemplateVariables, Tokenizer};

/// The ids that answers of tools, and the opening of the model's next turn, add behind the token that ends a turn: a newline behind that
/// token is among them. `variables` are those of the template; TRL leaves the tools out. Control tokens in the answers are text with
/// `quoting`, and control tokens without, as in TRL.
///
/// # Errors
/// If the first answer has no name, the template fails, or it changes what is before the answers.
pub fn trl_suffix(
    tokenizer: &Tokenizer,
    variables: &TemplateVariables,
    answers: &[Value],
    quoting: Option<&Quoting>,
) -> Result<Vec<u32>> {
    let Some(name) = answers.first().and_then(|answer| answer.get("name")) else {
        bail!("the first answer of a tool must have its \"name\"");
    };
    let base = called(name, json!({}));
    let mut prefix = tokenizer.encode(&tokenizer.apply_chat_template(&base.clone().into(), false, variables)?)?;
    let quoted = quoting.map(|quoting| quoting.quoted(answers));
    let whole = [&base, quoted.as_deref().unwrap_or(answers)].concat();
    let text = tokenizer.apply_chat_template(&whole.into(), true, variables)?;
    let mut ids = quoting.map_or_else(|| tokenizer.encode(&text), |quoting| quoting.encode(&text))?;
    if let Some(end) = prefix.iter().rposition(|id| *id == tokenizer.eos_id()) {
        prefix.truncate(end + 1);
    }
    ensure!(
        ids.starts_with(&prefix),
        "the chat template writes what is before the answer of a tool otherwise when that answer follows, so that no tokens can be appended \
         for it"
    );
    Ok(ids.split_off(prefix.len()))
}

/// True if the template writes a call of a tool in the same way when its answer follows.
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
    // Some templates take arguments as text alone.
    let (before, whole) = ids(json!({})).or_else(|error| ids("{}".into()).map_err(|_| error))?;
    Ok(whole.starts_with(&before))
}

/// True if the template writes calls and answers of tools: some fail at them, others leave them out.
pub fn writes_tools(tokenizer: &Tokenizer, variables: &TemplateVariables) -> bool {
    let [name, key, value, said] =
        ["tool_name_a8f3e2b1", "tool_arg_key_b9d4f5c2", "tool_arg_val_d6e7a9f3", "tool_content_c4f9a8e2"];
    let rendered = |arguments: Value| {
        let mut messages = called(&name.into(), arguments);
        messages.push(json!({"role": "tool", "name": name, "content": said}));
        tokenizer.apply_chat_template(&messages.into(), false, variables)
    };
    let text = rendered(json!({ key: value })).or_else(|_| rendered(json!({ key: value }).to_string().into()));
    text.is_ok_and(|text| [name, key, value, said].iter().all(|part| text.contains(part)))
}

/// A conversation that ends with a call.
fn called(name: &Value, arguments: Value) -> Vec<Value> {
    let call = json!({"type": "function", "function": {"name": name, "arguments": arguments}});
    vec![json!({"role": "user", "content": "dummy"}), json!({"role": "assistant", "content": "", "tool_calls": [call]})]
}
