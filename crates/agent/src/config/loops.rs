//! Lists of custom loops in verl's form (`agent.agent_loop_config_path`).

use serde_json::{Map, Value};

use super::entries::{ConfigFileError, Names, class_name, kind_of, text, wrong};

/// A custom loop.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopConfig {
    /// The name by which `agent.default_agent_loop` or a row selects the loop.
    pub name: String,
    /// The dotted name of the class (`_target_`).
    pub class_name: String,
    /// The other keys: arguments of the class.
    pub arguments: Map<String, Value>,
    /// The dotted key of the entry in its file, for messages.
    pub place: String,
}

/// Reads a list of loops: `[{name, _target_, …}, …]`.
///
/// # Errors
/// The first mistake: not a list or an empty one, an entry without a name or class, two loops with the same name, or unsupported
/// keys of Hydra.
pub fn loops(file: &Value) -> Result<Vec<LoopConfig>, ConfigFileError> {
    let Value::Array(items) = file else {
        return Err(wrong(
            "",
            format!("the file must be a list of loops, each with `name` and `_target_`, not {}", kind_of(file)),
        ));
    };
    if items.is_empty() {
        return Err(wrong("", "the file lists no loop"));
    }
    let (mut read, mut names) = (Vec::new(), Names::default());
    for (at, entry) in items.iter().enumerate() {
        let place = at.to_string();
        let Value::Object(entry) = entry else {
            return Err(wrong(&place, format!("a loop must be a mapping with `name` and `_target_`, not {}", kind_of(entry))));
        };
        let class_name = class_name(entry, &place, "_target_")?;
        let name = text(entry, &place, "name")?.ok_or_else(|| wrong(&place, "the loop has no `name`"))?.to_owned();
        names.take(&name, "loop", &place)?;
        let others = entry.iter().filter(|(key, _)| !["name", "_target_"].contains(&key.as_str()));
        let arguments: Map<String, Value> = others.map(|(key, value)| (key.clone(), value.clone())).collect();
        if let Some(key) = arguments.keys().find(|key| key.starts_with('_')) {
            return Err(wrong(
                &format!("{place}.{key}"),
                format!("`{key}` is not supported: a loop has `name`, `_target_` and arguments"),
            ));
        }
        if let Some((key, _)) = arguments.iter().find(|(_, value)| has_target(value)) {
            let message =
                format!("`{key}` has a `_target_`: only the loop itself may have one, its arguments must be plain values");
            return Err(wrong(&format!("{place}.{key}"), message));
        }
        read.push(LoopConfig { name, class_name, arguments, place });
    }
    Ok(read)
}

/// Returns true if a value contains an object of Hydra.
fn has_target(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.contains_key("_target_") || fields.values().any(has_target),
        Value::Array(items) => items.iter().any(has_target),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn loops_have_names_and_classes() {
        let read = loops(&json!([{"name": "mine", "_target_": "m.Loop", "depth": 2}])).unwrap();
        assert_eq!((&*read[0].class_name, &read[0].arguments), ("m.Loop", json!({"depth": 2}).as_object().unwrap()));
        let one = json!({"name": "x", "_target_": "m.Loop"});
        for (file, key) in [
            (json!({}), ""),
            (json!([3]), "0"),
            (json!([{"name": "x"}]), "0"),
            (json!([{"_target_": "m.Loop"}]), "0"),
            (json!([one, one]), "1"),
            (json!([]), ""),
            (json!([{"name": "x", "_target_": "m.Loop", "_partial_": true}]), "0._partial_"),
            (json!([{"name": "x", "_target_": "m.Loop", "a": [{"b": {"_target_": "m.B"}}]}]), "0.a"),
        ] {
            assert_eq!(loops(&file).unwrap_err().key, key, "{file}");
        }
    }
}
