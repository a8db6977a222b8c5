//! Builds a message from a turn.

use serde_json::{Map, Number, Value, json};

use super::coerce::coerce;
use super::content::function;
use super::field::{FieldFormat, ResponseTemplate};
use super::regions::regions;
use super::templates::{TEMPLATES, template_named};
use burnish_util::python_object::Object;
use burnish_util::python_text::strip;

/// Parses a turn by a template: `prefix` is the text of the prompt, `text` is the turn with special tokens, `tools` are the
/// schemas of the tools. Returns the message: `role`, `content`, and if the turn has them `reasoning_content` or `thinking`, and
/// `tool_calls`.
///
/// A turn that cannot be parsed becomes text without special tokens, as in TRL. An empty turn becomes an empty message; TRL
/// raises an error. An integer beyond 64 bits is rounded to a float, and becomes null if that is not finite.
///
/// # Errors
/// If the template is unknown.
pub fn parse_response(template: &str, prefix: &str, text: &str, tools: &[Value]) -> Result<Value, String> {
    let known = || TEMPLATES.iter().map(|template| template.name).collect::<Vec<_>>().join(", ");
    let template =
        template_named(template).ok_or_else(|| format!("unknown response template {template}; the templates are {}", known()))?;
    if text.is_empty() {
        return Ok(json!({"role": "assistant", "content": ""}));
    }
    match message(template, prefix, text, tools) {
        Ok(message) => Ok(message),
        Err(_) => {
            let content = template.special.iter().fold(text.to_owned(), |text, token| text.replace(token, ""));
            Ok(json!({"role": "assistant", "content": content}))
        }
    }
}

fn message(template: &ResponseTemplate, prefix: &str, text: &str, tools: &[Value]) -> Result<Value, String> {
    let mut message = Map::new();
    message.insert("role".to_owned(), "assistant".into());
    for region in regions(template, prefix, text)? {
        let field = &template.fields[region.field];
        if matches!(field.read, FieldFormat::Text) {
            message.insert(field.name.to_owned(), strip(&region.body).into());
            continue;
        }
        let mut function = function(&field.read, region.name, &region.body)?;
        coerce(&mut function, tools);
        let call = json!({"type": "function", "function": checked(function)?});
        match message.entry(field.name).or_insert_with(|| json!([])) {
            Value::Array(calls) => calls.push(call),
            other => *other = json!([call]),
        }
    }
    message.retain(|name, value| name == "role" || value.as_str() != Some(""));
    let content = message.get("content").and_then(Value::as_str).unwrap_or_default();
    let content = content.strip_suffix(template.eos).unwrap_or(content).to_owned();
    message.insert("content".to_owned(), content.into());
    Ok(Value::Object(message))
}

/// Checks a function: its name must be text. Missing arguments become empty.
fn checked(function: Object) -> Result<Value, String> {
    let mut value = json(&function).ok_or("a value that JSON cannot hold")?;
    let fields = value.as_object_mut().ok_or("a call that is not an object")?;
    if !fields.get("name").is_some_and(Value::is_string) {
        return Err("a call without a name".to_owned());
    }
    if fields.get("arguments").is_none_or(Value::is_null) {
        fields.insert("arguments".to_owned(), json!({}));
    }
    Ok(value)
}

fn json(object: &Object) -> Option<Value> {
    Some(match object {
        Object::None => Value::Null,
        Object::Bool(value) => (*value).into(),
        Object::Int(digits) => match (digits.parse::<i64>(), digits.parse::<u64>()) {
            (Ok(value), _) => value.into(),
            (_, Ok(value)) => value.into(),
            _ => digits.parse().ok().and_then(Number::from_f64).map_or(Value::Null, Value::Number),
        },
        Object::Float(value) => Number::from_f64(*value).map_or(Value::Null, Value::Number),
        Object::Text(text) => text.clone().into(),
        Object::List(values) | Object::Tuple(values) => Value::Array(values.iter().map(json).collect::<Option<_>>()?),
        Object::Dict(fields) => {
            let field = |(key, value): &(Object, Object)| match key {
                Object::Text(key) => Some((key.clone(), json(value)?)),
                _ => None,
            };
            Value::Object(fields.iter().map(field).collect::<Option<_>>()?)
        }
        Object::Opaque { .. } => return None,
    })
}
