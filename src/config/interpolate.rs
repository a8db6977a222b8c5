//! `${…}`: absolute keys, relative keys (`${.x}`, `${..x}`), `${oc.env:NAME,default}`, `${oc.select:key,default}` and
//! `${oc.decode:text}`, alone or inside a longer text.

use super::error::Problem;
use super::grammar;
use super::overrides::unknown_key;
use super::provenance::Origin;
use super::tree::{Node, Value, segments};

/// Replaces every interpolation by its value and reports those that have none, and values still to be given (`???`).
pub fn resolve(root: &Node) -> (Node, Vec<Problem>) {
    let mut resolver = Resolver { root, resolving: vec![] };
    let mut problems = vec![];
    let resolved = resolver.tree("", root, &mut problems);
    (resolved, problems)
}

struct Resolver<'a> {
    root: &'a Node,
    /// The keys whose values are being worked out, outermost first.
    resolving: Vec<String>,
}

impl Resolver<'_> {
    /// Resolves everything below a node; what fails stays as it is.
    fn tree(&mut self, key: &str, node: &Node, problems: &mut Vec<Problem>) -> Node {
        let below = |name: &str| if key.is_empty() { name.to_string() } else { format!("{key}.{name}") };
        let value = match &node.value {
            Value::Map(map) => {
                Value::Map(map.iter().map(|(name, node)| (name.clone(), self.tree(&below(name), node, problems))).collect())
            }
            Value::List(items) => {
                let items = items.iter().enumerate();
                Value::List(items.map(|(index, node)| self.tree(&below(&index.to_string()), node, problems)).collect())
            }
            _ => match self.node(key, node) {
                Ok(resolved) => return resolved,
                Err(problem) => {
                    // Everything that refers to a failed value fails with that value's own problem.
                    if !problems.contains(&problem) {
                        problems.push(problem);
                    }
                    return node.clone();
                }
            },
        };
        Node { value, ..node.clone() }
    }

    /// Resolves one node and all below it; the first failure ends it.
    fn node(&mut self, key: &str, node: &Node) -> Result<Node, Problem> {
        match &node.value {
            Value::Text(text) if text == "???" => {
                Err(Problem::new(key, format!("`{key}` must be given")).at(&node.origin).help(format!("write {key}=VALUE")))
            }
            Value::Text(text) if text.contains("${") => {
                if self.resolving.iter().any(|open| open == key) {
                    let start = self.resolving.iter().position(|open| open == key).unwrap_or(0);
                    let circle = format!("{} → {key}", self.resolving[start..].join(" → "));
                    return Err(Problem::new(key, format!("these values refer to each other: {circle}")).at(&node.origin));
                }
                self.resolving.push(key.to_string());
                let resolved = self.text(key, text, &node.origin);
                self.resolving.pop();
                resolved
            }
            Value::Map(_) | Value::List(_) => {
                let mut problems = vec![];
                let resolved = self.tree(key, node, &mut problems);
                problems.into_iter().next().map_or(Ok(resolved), Err)
            }
            _ => Ok(node.clone()),
        }
    }

    /// A text with interpolations. If it is nothing but one, it takes the value of that with its type.
    fn text(&mut self, key: &str, text: &str, origin: &Origin) -> Result<Node, Problem> {
        let mut whole = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            whole.push_str(&rest[..start]);
            let inside = &rest[start + 2..];
            let length = closing_brace(inside).ok_or_else(|| Problem::new(key, "this `${` has no closing `}`").at(origin))?;
            let node = self.expression(key, &inside[..length], origin)?;
            rest = &inside[length + 1..];
            if whole.is_empty() && start == 0 && rest.is_empty() {
                return Ok(node);
            }
            let part = node.value.plain_text().ok_or_else(|| {
                let message =
                    format!("`{key}` puts `${{{}}}` into a text, but that is a {}", &inside[..length], node.value.kind());
                Problem::new(key, message).at(origin)
            })?;
            whole.push_str(&part);
        }
        whole.push_str(rest);
        Ok(Node::new(Value::Text(whole), origin.clone()))
    }

    /// What stands between `${` and `}`.
    fn expression(&mut self, key: &str, expression: &str, origin: &Origin) -> Result<Node, Problem> {
        let expression = match expression.contains("${") {
            true => {
                let name = self.text(key, expression, origin)?.value;
                let no_name = || {
                    let message = format!("`{key}` looks up `${{{expression}}}`, but what stands inside is a {}", name.kind());
                    Problem::new(key, message).at(origin)
                };
                name.plain_text().ok_or_else(no_name)?
            }
            false => expression.trim().to_string(),
        };
        let Some((function, arguments)) = expression.split_once(':') else {
            let target = absolute(key, &expression);
            return match self.look_up(&target)? {
                Some(node) => Ok(Node { value: node.value, origin: origin.clone(), through: node.through.or(Some(target)) }),
                None => {
                    let unknown = unknown_key(&target, &self.root.keys(), false);
                    let problem = Problem::new(key, format!("`{key}` refers to `{target}`, which does not exist")).at(origin);
                    Err(unknown.help.into_iter().fold(problem, Problem::help))
                }
            };
        };
        let (first, default) = split_argument(arguments);
        let fallback = |missing: String| match default {
            Some(text) => grammar::parse_value(text, origin).map_err(|message| Problem::new(key, message).at(origin)),
            None => Err(Problem::new(key, missing).at(origin).help("a default may follow a comma")),
        };
        match function {
            "oc.env" => match std::env::var(first) {
                Ok(text) => Ok(Node::new(Value::Text(text), origin.clone())),
                Err(_) => fallback(format!("`{key}` needs the environment variable `{first}`, which is not set")),
            },
            "oc.select" => {
                let target = absolute(key, first);
                match self.look_up(&target)? {
                    Some(node) => Ok(Node { value: node.value, origin: origin.clone(), through: Some(target) }),
                    None if default.is_none() => Ok(Node::new(Value::Null, origin.clone())),
                    None => fallback(String::new()),
                }
            }
            "oc.decode" => {
                let text = arguments.trim_matches(['\'', '"']);
                grammar::parse_value(text, origin).map_err(|message| Problem::new(key, message).at(origin))
            }
            _ => Err(Problem::new(key, format!("`{key}` uses `${{{function}:…}}`, which is not available"))
                .at(origin)
                .help("available are oc.env, oc.select and oc.decode")),
        }
    }

    /// The resolved node at a key. A text on the way that is an interpolation itself is followed.
    fn look_up(&mut self, target: &str) -> Result<Option<Node>, Problem> {
        let mut at = self.root.clone();
        let mut key = String::new();
        for segment in segments(target) {
            if matches!(at.value, Value::Text(_)) {
                at = self.node(&key, &at)?;
            }
            let Some(child) = at.child(segment) else { return Ok(None) };
            at = child.clone();
            key = if key.is_empty() { segment.to_string() } else { format!("{key}.{segment}") };
        }
        self.node(&key, &at).map(Some)
    }
}

/// A key as written at `key`: each leading dot goes one mapping up, one dot being the mapping that `key` is in.
fn absolute(key: &str, written: &str) -> String {
    let name = written.trim_start_matches('.');
    let dots = written.len() - name.len();
    if dots == 0 {
        return name.to_string();
    }
    let parts: Vec<&str> = key.split('.').collect();
    let kept = &parts[..parts.len().saturating_sub(dots)];
    kept.iter().copied().chain([name]).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
}

/// Length of the text before the `}` that closes an already open `${`.
fn closing_brace(text: &str) -> Option<usize> {
    let mut depth = 1;
    for (index, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(index);
        }
    }
    None
}

/// `name,default` as its two parts.
fn split_argument(text: &str) -> (&str, Option<&str>) {
    text.split_once(',').map_or((text.trim(), None), |(first, rest)| (first.trim(), Some(rest.trim())))
}
