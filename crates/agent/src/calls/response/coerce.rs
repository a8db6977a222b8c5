//! Converts the arguments of a call to the types in its tool's schema.

use serde_json::Value;

use burnish_util::python_json::loads;
use burnish_util::python_number::{float_of, int_of, integral_digits};
use burnish_util::python_object::Object;
use burnish_util::python_text::strip;

/// Converts arguments that are text to their declared types.
pub(crate) fn coerce(function: &mut Object, tools: &[Value]) {
    let Some(Object::Text(name)) = function.get("name").cloned() else { return };
    let mut schemas = tools.iter().map(|tool| tool.get("function").unwrap_or(tool));
    // Among tools with the same name, the last counts.
    let Some(schema) = schemas.rfind(|schema| schema["name"] == name.as_str()) else { return };
    let Object::Dict(fields) = function else { return };
    let arguments = fields.iter_mut().find(|(key, _)| matches!(key, Object::Text(key) if key == "arguments"));
    let Some((_, Object::Dict(arguments))) = arguments else { return };
    for (key, argument) in arguments {
        let Object::Text(key) = key else { continue };
        let types = schema["parameters"]["properties"].get(key.as_str()).map(types).unwrap_or_default();
        if types.is_empty() {
            continue;
        }
        match argument {
            Object::Text(text) => *argument = typed(text, &types),
            Object::List(values) if !types.contains(&"array") => {
                for value in values {
                    if let Object::Text(text) = value {
                        *value = typed(text, &types);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Returns the types that a schema allows, in its order.
fn types(schema: &Value) -> Vec<&str> {
    let mut found: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    for union in ["anyOf", "oneOf"] {
        found.extend(schema[union].as_array().into_iter().flatten().flat_map(types));
    }
    if schema["nullable"] == true && !found.contains(&"null") {
        found.push("null");
    }
    found
}

fn typed(text: &str, types: &[&str]) -> Object {
    let read = |kind: &&str| match *kind {
        "integer" => int_of(text).or_else(|| integral_digits(float_of(text)?)).map(Object::Int),
        "number" => {
            let number = float_of(text).filter(|number| number.is_finite())?;
            let whole = integral_digits(number).filter(|_| !text.contains('.'));
            Some(whole.map_or(Object::Float(number), Object::Int))
        }
        "boolean" => match strip(text).to_ascii_lowercase().as_str() {
            "true" | "1" => Some(Object::Bool(true)),
            "false" | "0" => Some(Object::Bool(false)),
            _ => None,
        },
        "null" => matches!(strip(text), "null" | "None").then_some(Object::None),
        "object" => loads(text).ok().filter(|value| matches!(value, Object::Dict(_))),
        "array" => loads(text).ok().filter(|value| matches!(value, Object::List(_))),
        _ => None,
    };
    types.iter().find_map(read).unwrap_or_else(|| Object::Text(text.to_owned()))
}
