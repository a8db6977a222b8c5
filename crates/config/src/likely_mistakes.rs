//! Valid values that are almost certainly mistakes.

use burnish_hydra::{Node, Problem, Value};

/// Returns the problems of likely mistakes in the settings. Mappings that take any key are not searched.
pub(crate) fn find(settings: &Node, defaults: &Node) -> Vec<Problem> {
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
            let message = format!("`{key}` is the string `None`, which is Python, not YAML");
            problems.push(problem(message).help(format!("for \"not set\" write {key}=null")));
        } else if let Some(name) = shell_variable(text) {
            let message = format!("`{key}` contains `${name}`, which the shell did not expand");
            problems.push(problem(message).help(format!("write it without single quotes, or ${{oc.env:{name}}} in a file")));
        }
    });
    problems
}

/// Returns the problem of a threshold such as `0.5_2`, which YAML and Hydra parse as the number 0.52.
fn range_read_as_number(key: &str, node: &Node) -> Option<Problem> {
    if !key.ends_with("_threshold") {
        return None;
    }
    let written = node.origin.written().trim_start();
    let end = written.find(|c: char| !(c.is_ascii_digit() || ['.', '_'].contains(&c))).unwrap_or(written.len());
    let range = Some(&written[..end]).filter(|text| text.contains('_'))?;
    let message = format!("`{key}` is the number {}, because YAML reads `{range}` as a number", node.value.to_yaml());
    Some(Problem::new(key, message).at(&node.origin).help(format!("for the range write \"'{range}'\" in quotes, or {range}.0")))
}

fn is_list(node: Option<&Node>) -> bool {
    matches!(node, Some(Node { value: Value::List(_), .. }))
}

/// Returns the name of a shell variable in upper case, as in `$HOME/data`.
fn shell_variable(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('$')?;
    let rest = rest.strip_prefix('{').unwrap_or(rest);
    let end = rest.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')).unwrap_or(rest.len());
    (end > 1 && rest.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')).then(|| &rest[..end])
}
