//! Resolves a tree with `${…}` value by value.

use super::syntax::{self, Interpolation, Name, TextPart};
use crate::error::Problem;
use crate::provenance::Origin;
use crate::scalar;
use crate::suggest::{Addition, unknown_key};
use crate::tree::{Node, Value, below, segments};

/// The text of a missing value, which the user must still give.
const MISSING: &str = "???";

/// The treatment of missing values in a resolution.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Missing {
    Stays,
    IsWrong,
}

/// The state of a resolution in progress.
pub(super) struct Resolver<'a> {
    root: &'a Node,
    missing: Missing,
    /// True if `${oc.env:…}` stays unresolved.
    pub(super) keeps_environment: bool,
    /// The keys whose values are being resolved, outermost first.
    open: Vec<String>,
    pub(super) depth: usize,
    /// Number of values resolved so far; a long text counts as several.
    pub(super) spent: usize,
}

/// The result of an interpolation.
pub(super) enum ResolvedNode<'a> {
    /// A key and its node in the tree; the node is not an interpolation.
    At(String, &'a Node),
    /// A computed value.
    Made(Node),
}

/// The result of looking up a key.
pub(super) enum LookUp<'a> {
    At(ResolvedNode<'a>),
    Nothing,
    /// A value in the path of the key is not a mapping or list.
    NoContainer,
    /// A list has no item of this name.
    NoIndex,
    /// The value at this key is missing (`???`).
    Missing(String),
}

impl ResolvedNode<'_> {
    pub(super) fn node(&self) -> &Node {
        match self {
            Self::At(_, node) => node,
            Self::Made(node) => node,
        }
    }
}

impl<'a> Resolver<'a> {
    pub(super) fn new(root: &'a Node, missing: Missing) -> Self {
        Self { root, missing, keeps_environment: false, open: vec![], depth: 0, spent: 0 }
    }

    /// Resolves all values below a node; a value that cannot be resolved stays unchanged.
    pub(super) fn tree(&mut self, key: &str, node: &Node, problems: &mut Vec<Problem>) -> Node {
        let resolved = self.deeper(key, &node.origin, |resolver| {
            resolver.spend(node);
            Ok(resolver.children(key, node, problems))
        });
        resolved.unwrap_or_else(|problem| {
            // Above the limit every further value fails too, so only the first is reported.
            if problems.is_empty() || !self.is_spent() {
                problems.push(problem);
            }
            node.clone()
        })
    }

    fn children(&mut self, key: &str, node: &Node, problems: &mut Vec<Problem>) -> Node {
        let value = match &node.value {
            Value::Map(map) => {
                Value::Map(map.iter().map(|(name, node)| (name.clone(), self.tree(&below(key, name), node, problems))).collect())
            }
            Value::List(items) => {
                let items = items.iter().enumerate();
                Value::List(items.map(|(index, node)| self.tree(&below(key, &index.to_string()), node, problems)).collect())
            }
            Value::Text(text) if text.contains("${") || text == MISSING => {
                let resolved = match text.as_str() {
                    MISSING if self.missing == Missing::Stays => return node.clone(),
                    MISSING => Err(missing_value(key, &node.origin)),
                    text => self.leaf(key, text, &node.origin),
                };
                return resolved.unwrap_or_else(|problem| {
                    // Every reference to a failed value has the same problem, which is reported once.
                    let is_known = problems.contains(&problem) || self.is_spent() && !problems.is_empty();
                    if !is_known {
                        problems.push(problem);
                    }
                    node.clone()
                });
            }
            _ => return node.clone(),
        };
        Node { value, ..node.clone() }
    }

    /// Resolves a text with interpolations, and all values below the result.
    pub(super) fn leaf(&mut self, key: &str, text: &str, origin: &Origin) -> Result<Node, Problem> {
        self.opened(key, origin, |resolver| {
            let found = resolver.parts(key, &parsed(key, text, origin)?, origin)?;
            resolver.resolved_tree(found, origin)
        })
    }

    /// Resolves all values below a result; the new node gets this origin.
    pub(super) fn resolved_tree(&mut self, found: ResolvedNode, origin: &Origin) -> Result<Node, Problem> {
        let (node, through) = match found {
            ResolvedNode::Made(node) => return Ok(node),
            ResolvedNode::At(key, node) => {
                let mut problems = vec![];
                let resolved = self.tree(&key, node, &mut problems);
                if let Some(problem) = problems.into_iter().next() {
                    return Err(problem);
                }
                (resolved, key)
            }
        };
        Ok(Node { value: node.value, origin: origin.clone(), through: node.through.or(Some(through)) })
    }

    /// Returns the node, or the result of its interpolation.
    fn follow(&mut self, key: &str, node: &'a Node) -> Result<ResolvedNode<'a>, Problem> {
        match &node.value {
            Value::Text(text) if text.contains("${") => {
                self.opened(key, &node.origin, |resolver| resolver.parts(key, &parsed(key, text, &node.origin)?, &node.origin))
            }
            _ => Ok(ResolvedNode::At(key.to_string(), node)),
        }
    }

    /// Runs a step while `key` counts as being resolved.
    fn opened<T>(
        &mut self,
        key: &str,
        origin: &Origin,
        work: impl FnOnce(&mut Self) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        if let Some(start) = self.open.iter().position(|open| open == key) {
            let circle = format!("{} → {key}", self.open[start..].join(" → "));
            return Err(Problem::new(key, format!("these values refer to each other: {circle}")).at(origin));
        }
        self.open.push(key.to_string());
        let done = self.deeper(key, origin, work);
        self.open.pop();
        done
    }

    /// Evaluates the parts of a text. A single interpolation keeps the type of its value.
    pub(super) fn parts(&mut self, key: &str, parts: &[TextPart], origin: &Origin) -> Result<ResolvedNode<'a>, Problem> {
        match parts {
            [TextPart::Inter(only)] => self.interpolation(key, only, origin),
            parts => Ok(ResolvedNode::Made(Node::new(Value::Text(self.joined(key, parts, origin)?), origin.clone()))),
        }
    }

    /// Evaluates the parts of a text and joins them into one string.
    pub(super) fn joined(&mut self, key: &str, parts: &[TextPart], origin: &Origin) -> Result<String, Problem> {
        let mut whole = String::new();
        for part in parts {
            match part {
                TextPart::Text(text) => self.append(key, origin, &mut whole, text)?,
                TextPart::Inter(inter) => {
                    let found = self.interpolation(key, inter, origin)?;
                    self.append(key, origin, &mut whole, &scalar::python_text(&found.node().value))?;
                }
            }
        }
        Ok(whole)
    }

    fn interpolation(&mut self, key: &str, inter: &Interpolation, origin: &Origin) -> Result<ResolvedNode<'a>, Problem> {
        self.deeper(key, origin, |resolver| {
            let found = resolver.referred(key, inter, origin)?;
            // A computed value is copied to each place that uses it.
            if let ResolvedNode::Made(node) = &found {
                resolver.spend(node);
            }
            Ok(found)
        })
    }

    fn referred(&mut self, key: &str, inter: &Interpolation, origin: &Origin) -> Result<ResolvedNode<'a>, Problem> {
        match inter {
            Interpolation::Key { dots, names } => {
                let names = names.iter().map(|name| self.name(key, name, origin)).collect::<Result<Vec<_>, _>>()?;
                let Some(target) = absolute(key, *dots, &names) else {
                    let written = format!("{}{}", ".".repeat(*dots), names.join("."));
                    let message = format!("`{key}` refers to `{written}`, which is above the top of the configuration");
                    return Err(Problem::new(key, message).at(origin));
                };
                match self.look_up(&target)? {
                    LookUp::At(found) => Ok(found),
                    LookUp::Missing(missing) => Err(self.refers_to_missing(key, &missing, origin)),
                    _ => {
                        let target = target.join(".");
                        let unknown = unknown_key(&target, &self.root.keys(), Addition::No);
                        let problem = Problem::new(key, format!("`{key}` refers to `{target}`, which does not exist")).at(origin);
                        Err(unknown.help.into_iter().fold(problem, Problem::help))
                    }
                }
            }
            Interpolation::Call { function, arguments } => {
                let names = function.iter().map(|name| self.name(key, name, origin)).collect::<Result<Vec<_>, _>>()?;
                self.call(key, &names.join("."), arguments, origin)
            }
        }
    }

    fn name(&mut self, key: &str, name: &Name, origin: &Origin) -> Result<String, Problem> {
        let nested = match name {
            Name::Plain(name) => return Ok(name.clone()),
            Name::Nested(nested) => nested,
        };
        let found = self.interpolation(key, nested, origin)?;
        match &found.node().value {
            Value::Text(name) => Ok(name.clone()),
            other => {
                let message = format!("`{key}` uses `${{…}}` as the name of a key, but its value is a {}", other.kind());
                Err(Problem::new(key, message).at(origin).help("the name of a key must be a string"))
            }
        }
    }

    /// Looks up a key, following the interpolations in its path.
    pub(super) fn look_up(&mut self, names: &[String]) -> Result<LookUp<'a>, Problem> {
        let mut at = ResolvedNode::At(String::new(), self.root);
        for name in names {
            let index_given = name.parse::<usize>().is_ok();
            match &at.node().value {
                Value::Map(_) => {}
                Value::List(_) if index_given => {}
                Value::List(_) => return Ok(LookUp::NoIndex),
                _ => return Ok(LookUp::NoContainer),
            }
            at = match at {
                ResolvedNode::At(key, node) => {
                    let Some(child) = node.child(name) else { return Ok(LookUp::Nothing) };
                    let key = below(&key, name);
                    if is_missing(child) {
                        return Ok(LookUp::Missing(key));
                    }
                    self.follow(&key, child)?
                }
                ResolvedNode::Made(node) => {
                    let Some(child) = node.child(name) else { return Ok(LookUp::Nothing) };
                    ResolvedNode::Made(child.clone())
                }
            };
        }
        Ok(LookUp::At(at))
    }

    /// Returns the problem of a reference to a missing value, or the problem of the missing value if that is reported too.
    fn refers_to_missing(&self, key: &str, missing: &str, origin: &Origin) -> Problem {
        match (self.missing, self.root.get(missing)) {
            (Missing::IsWrong, Some(node)) => missing_value(missing, &node.origin),
            _ => Problem::new(key, format!("`{key}` refers to `{missing}`, which must be given"))
                .at(origin)
                .help(format!("write {missing}=VALUE")),
        }
    }
}

fn missing_value(key: &str, origin: &Origin) -> Problem {
    Problem::new(key, format!("`{key}` must be given")).at(origin).help(format!("write {key}=VALUE"))
}

pub(super) fn is_missing(node: &Node) -> bool {
    matches!(&node.value, Value::Text(text) if text == MISSING)
}

fn parsed(key: &str, text: &str, origin: &Origin) -> Result<Vec<TextPart>, Problem> {
    syntax::parse_text(text).map_err(|error| {
        let message = format!("`{key}` has an interpolation that cannot be read: {}", error.message);
        Problem::new(key, message)
            .at(origin)
            .help(format!("the error is at `{}`; to write a literal ${{, write \\${{", &text[error.at..]))
    })
}

/// Returns the absolute key of a reference at `key`. One leading dot is the mapping that contains `key`, each further dot its
/// parent. `None` if the reference leads above the root.
pub(super) fn absolute(key: &str, dots: usize, names: &[String]) -> Option<Vec<String>> {
    if dots == 0 {
        return Some(names.to_vec());
    }
    let parts: Vec<&str> = segments(key).collect();
    let kept = parts.len().checked_sub(dots)?;
    Some(parts[..kept].iter().map(|part| part.to_string()).chain(names.iter().cloned()).collect())
}
