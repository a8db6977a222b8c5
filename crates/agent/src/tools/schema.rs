//! Tool schemas in OpenAI's form, and their reduction to verl's fields.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

/// Returns a schema reduced to the fields that verl 0.9.1 keeps (`OpenAIFunctionToolSchema`), in verl's order and without nulls.
/// A function keeps name, description, parameters and strict; parameters keep type, properties and required; each property keeps
/// type, description and enum. Other fields, such as `items`, `default` and nested properties, do not reach verl's prompt.
/// Schemas stay unchanged unless the configuration asks for verl's prompts.
/// prompts are asked for.
///
/// If a field that verl requires is missing or has the wrong type; the message names the field.
pub fn reduced(schema: &Value) -> Result<Value> {
    let schema = object(schema, "the schema of a tool")?;
    let mut out = Map::new();
    out.insert("type".to_owned(), text(schema, "type")?);
    let function = object(required(schema, "function")?, "function")?;
    let name = function.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let function = reduced_function(function).with_context(|| format!("the schema of the tool \"{name}\""))?;
    out.insert("function".to_owned(), function.into());
    Ok(out.into())
}

fn reduced_function(function: &Map<String, Value>) -> Result<Map<String, Value>> {
    let mut out = Map::new();
    out.insert("name".to_owned(), text(function, "name")?);
    out.insert("description".to_owned(), text(function, "description")?);
    if let Some(parameters) = function.get("parameters") {
        let parameters = object(parameters, "parameters")?;
        let mut schema = Map::new();
        schema.insert("type".to_owned(), text(parameters, "type")?);
        let properties = object(required(parameters, "properties")?, "properties")?;
        let properties = properties.iter().map(|(name, property)| {
            let property = reduced_property(property).with_context(|| format!("the parameter \"{name}\""))?;
            Ok((name.clone(), Value::from(property)))
        });
        schema.insert("properties".to_owned(), properties.collect::<Result<Map<_, _>>>()?.into());
        if let Some(names) = parameters.get("required") {
            schema.insert("required".to_owned(), texts(names, "required")?);
        }
        out.insert("parameters".to_owned(), schema.into());
    }
    if let Some(strict) = function.get("strict") {
        out.insert("strict".to_owned(), boolean(strict)?.into());
    }
    Ok(out)
}

fn reduced_property(property: &Value) -> Result<Map<String, Value>> {
    let property = object(property, "the parameter")?;
    let mut out = Map::new();
    let kind = required(property, "type")?;
    let kind = if kind.is_string() { kind.clone() } else { texts(kind, "type")? };
    out.insert("type".to_owned(), kind);
    match property.get("description") {
        None | Some(Value::Null) => {}
        Some(description) if description.is_string() => _ = out.insert("description".to_owned(), description.clone()),
        Some(other) => bail!("\"description\" must be text, not {other}"),
    }
    match property.get("enum") {
        None | Some(Value::Null) => {}
        Some(values) if values.is_array() => _ = out.insert("enum".to_owned(), values.clone()),
        Some(other) => bail!("\"enum\" must be a list, not {other}"),
    }
    Ok(out)
}

fn object<'a>(value: &'a Value, what: &str) -> Result<&'a Map<String, Value>> {
    value.as_object().with_context(|| format!("{what} must be a mapping, not {value}"))
}

fn required<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<&'a Value> {
    fields.get(name).with_context(|| format!("\"{name}\" is missing"))
}

fn text(fields: &Map<String, Value>, name: &str) -> Result<Value> {
    let value = required(fields, name)?;
    if value.is_string() { Ok(value.clone()) } else { bail!("\"{name}\" must be text, not {value}") }
}

fn texts(value: &Value, name: &str) -> Result<Value> {
    match value.as_array() {
        Some(items) if items.iter().all(Value::is_string) => Ok(value.clone()),
        _ => bail!("\"{name}\" must be a list of texts, not {value}"),
    }
}

/// Reads a boolean, or a word or number that pydantic accepts as one.
fn boolean(value: &Value) -> Result<bool> {
    let word = match value {
        Value::Bool(value) => return Ok(*value),
        Value::Number(number) => match number.as_f64() {
            Some(0.0) => "0".to_owned(),
            Some(1.0) => "1".to_owned(),
            _ => String::new(),
        },
        Value::String(text) => text.to_lowercase(),
        _ => String::new(),
    };
    match word.as_str() {
        "1" | "true" | "t" | "yes" | "y" | "on" => Ok(true),
        "0" | "false" | "f" | "no" | "n" | "off" => Ok(false),
        _ => bail!("\"strict\" must be true or false, not {value}"),
    }
}
