//! Names and values in the form that MLflow accepts and verl sends (`verl/utils/tracking.py`).

use serde_json::Value;

use burnish_util::python_text::is_word;
use burnish_util::python_value::text_of;

/// Number of characters of a parameter's value that MLflow keeps.
const LONGEST_VALUE: usize = 6000;

/// Returns the name of a metric for MLflow: `@` becomes `_at_`, several slashes become one, and characters that MLflow rejects
/// become `_`.
pub(super) fn sanitized(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '@' => out.push_str("_at_"),
            '/' if out.ends_with('/') => {}
            '/' | '.' | '-' | ' ' | ':' => out.push(c),
            c if is_word(c) => out.push(c),
            _ => out.push('_'),
        }
    }
    out
}

/// Returns the configuration as MLflow's parameters. Nested keys are joined by slashes, and a list also has its length as
/// `list_len`. Values are formatted like Python's `str` and cut to the length limit of MLflow's client.
pub(super) fn params(config: &Value) -> Vec<(String, String)> {
    let mut flat = Vec::new();
    if let Value::Object(fields) = config {
        fields.iter().for_each(|(name, value)| flatten(name, value, &mut flat));
    }
    flat
}

fn flatten(key: &str, value: &Value, flat: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| flatten(&format!("{key}/{name}"), value, flat)),
        Value::Array(items) => {
            flat.push((sanitized(&format!("{key}/list_len")), items.len().to_string()));
            items.iter().enumerate().for_each(|(i, item)| flatten(&format!("{key}/{i}"), item, flat));
        }
        value => flat.push((sanitized(key), text_of(value).chars().take(LONGEST_VALUE).collect())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Expected: the result of verl's `_sanitize_key`.
    #[test]
    fn names_are_those_of_verl() {
        let cases = [
            ("val-core/openai/gsm8k/reward/mean@1", "val-core/openai/gsm8k/reward/mean_at_1"),
            ("a//b///c", "a/b/c"),
            ("reward/p50 (ms): 1.5%", "reward/p50 _ms_: 1.5_"),
            ("größe/x²", "größe/x²"),
        ];
        for (name, expected) in cases {
            assert_eq!(sanitized(name), expected);
        }
    }

    /// Expected: verl's `_compute_mlflow_params_from_objects`, and `str` of its values.
    #[test]
    fn settings_are_flattened_as_by_verl() {
        let config = json!({"actor": {"lr": 1e-6, "use": true, "none": null, "empty": {}}, "files": ["a", {"b": 1.0}], "long": "x".repeat(7000)});
        let expected = [
            ("actor/lr", "1e-06"),
            ("actor/use", "True"),
            ("actor/none", "None"),
            ("files/list_len", "2"),
            ("files/0", "a"),
            ("files/1/b", "1.0"),
            ("long", &"x".repeat(6000)),
        ];
        assert_eq!(params(&config), expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }
}
