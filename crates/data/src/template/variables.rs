//! Variables that settings and rows add to a chat template, such as `enable_thinking` or `tools`.

use minijinja::Value;
use minijinja::value::merge_maps;
use serde_json::Map;

/// Variables of a chat template, converted to template values only once.
#[derive(Clone, Debug, Default)]
pub struct TemplateVariables {
    /// Mappings of names to values; a later one takes precedence.
    layers: Vec<Value>,
    has_tools: bool,
}

impl TemplateVariables {
    /// Sets a variable; replaces an earlier value.
    pub fn insert(&mut self, name: String, value: serde_json::Value) {
        if name == TOOLS {
            self.has_tools = !value.is_null();
        }
        self.layers.push(Value::from_pairs([(name, to_template(&value))]));
    }

    /// Returns true if the template gets tools to describe.
    pub(crate) fn has_tools(&self) -> bool {
        self.has_tools
    }

    /// Returns these variables merged over the mappings `beneath`.
    pub(crate) fn over(&self, beneath: impl IntoIterator<Item = Value>) -> Value {
        // A later mapping overrides earlier ones.
        merge_maps(beneath.into_iter().chain(self.layers.iter().cloned()))
    }
}

const TOOLS: &str = "tools";

impl FromIterator<(String, serde_json::Value)> for TemplateVariables {
    fn from_iter<I: IntoIterator<Item = (String, serde_json::Value)>>(variables: I) -> Self {
        Self::from(&variables.into_iter().collect::<Map<_, _>>())
    }
}

impl From<&Map<String, serde_json::Value>> for TemplateVariables {
    fn from(variables: &Map<String, serde_json::Value>) -> Self {
        let has_tools = variables.get(TOOLS).is_some_and(|tools| !tools.is_null());
        Self { layers: vec![mapping(variables)], has_tools }
    }
}

impl From<&Self> for TemplateVariables {
    fn from(variables: &Self) -> Self {
        variables.clone()
    }
}

/// Converts a JSON object to a template value.
pub(crate) fn mapping(object: &Map<String, serde_json::Value>) -> Value {
    Value::from_pairs(object.iter().map(|(name, value)| (name.as_str(), to_template(value))))
}

/// Converts JSON to a template value.
pub(crate) fn to_template(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(b) => Value::from(*b),
        serde_json::Value::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(i), _) => Value::from(i),
            (None, Some(u)) => Value::from(u),
            (None, None) => Value::from(n.as_f64()),
        },
        serde_json::Value::String(s) => Value::from(s),
        serde_json::Value::Array(items) => items.iter().map(to_template).collect(),
        serde_json::Value::Object(object) => mapping(object),
    }
}
