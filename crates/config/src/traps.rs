//! Values that are valid, and almost certainly not what was meant.

use burnish_hydra::{Node, Problem, Value};

/// Returns the problems of such values among the settings. Mappings that take any key are not searched.
pub fn find(settings: &Node, defaults: &Node) -> Vec<Problem> {
    let mut problems = vec![];
    settings.walk(&mut |key, node| {
        let Value::Text(text) = &node.value else {
            problems.extend(range_read_as_number(key, node));
            return;
        };
        let is_setting = defaults.get(key).is_some() || key.rsplit_once('.').is_some_and(|(list, _)| is_list(settings.get(list)));
        if !is_setting {
            return;
        }
        let problem = |message: String| Problem::new(key, message).at(&node.origin);
        if text == "None" {
            let message = format!("`{key}` is the string `None`, which is Python's word, not YAML's");
            problems.push(problem(message).help(format!("for \"not set\" write {key}=null")));
        } else if let Some(name) = shell_variable(text) {
            let message = format!("`{key}` holds `${name}`, which no shell has put in");
            problems.push(problem(message).help(format!("write it without single quotes, or ${{oc.env:{name}}} in a file")));
        }
    });
    problems
}

/// Returns the problem of a threshold such as `0.5_2`, which YAML and Hydra read as the number 0.52.
fn range_read_as_number(key: &str, node: &Node) -> Option<Problem> {
    if !key.ends_with("_threshold") {
        return None;
    }
    let written = node.origin.written().trim_start();
    let end = written.find(|c: char| !(c.is_ascii_digit() || ['.', '_'].contains(&c))).unwrap_or(written.len());
    let range = Some(&written[..end]).filter(|text| text.contains('_'))?;
    let message = format!("`{key}` is the number {}: that is how YAML reads `{range}`", node.value.to_yaml());
    Some(Problem::new(key, message).at(&node.origin).help(format!("for the range write \"'{range}'\" in quotes, or {range}.0")))
}

fn is_list(node: Option<&Node>) -> bool {
    matches!(node, Some(Node { value: Value::List(_), .. }))
}

/// Returns the name of a shell variable in capitals, as in `$HOME/data`.
fn shell_variable(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('$')?;
    let rest = rest.strip_prefix('{').unwrap_or(rest);
    let end = rest.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')).unwrap_or(rest.len());
    (end > 1 && rest.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')).then(|| &rest[..end])
}
