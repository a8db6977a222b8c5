//! `${…}`: absolute keys, relative keys (`${.x}`, `${..x}`), and functions such as `${oc.env:NAME,default}`, alone or inside a
//! longer text.

mod clock;
mod functions;
mod limits;
mod syntax;

use super::error::Problem;
use super::grammar::Fault;
use super::overrides::unknown_key;
use super::provenance::Origin;
use super::scalar;
use super::tree::{Node, Value, below, segments};
use syntax::{Interpolation, Name, Part};

/// The text that stands for a value still to be given.
const MISSING: &str = "???";

/// Replaces every interpolation by its value and reports those that have none, and values still to be given (`???`).
pub fn resolve(root: &Node) -> (Node, Vec<Problem>) {
    resolve_in(root, root)
}

/// As [`resolve`], for a part of a tree whose other keys may be referred to but are not resolved themselves.
pub fn resolve_in(part: &Node, root: &Node) -> (Node, Vec<Problem>) {
    resolve_with(part, root, Missing::IsWrong)
}

/// As [`resolve`], but a value still to be given stays `???`.
pub fn resolve_given(root: &Node) -> (Node, Vec<Problem>) {
    resolve_with(root, root, Missing::Stays)
}

fn resolve_with(part: &Node, root: &Node, missing: Missing) -> (Node, Vec<Problem>) {
    let mut resolver = Resolver::new(root, missing);
    let mut problems = vec![];
    let resolved = resolver.tree("", part, &mut problems);
    (resolved, problems)
}

/// The present value of a key, with interpolations followed; `None` if there is none, or it is null or still to be given.
pub fn select(root: &Node, key: &str) -> Result<Option<Node>, Problem> {
    let mut resolver = Resolver::new(root, Missing::Stays);
    let names: Vec<String> = segments(key).map(str::to_string).collect();
    let found = match resolver.look_up(&names)? {
        LookUp::At(found) => found,
        _ => return Ok(None),
    };
    let node = found.node().clone();
    let is_given = node.value != Value::Null && !is_missing(&node);
    Ok(is_given.then_some(node))
}

/// The key at which the node of a key is once interpolations are followed, on the way and at the end; `None` if it is nowhere.
pub fn place(root: &Node, key: &str) -> Option<String> {
    let mut resolver = Resolver::new(root, Missing::Stays);
    let names: Vec<String> = segments(key).map(str::to_string).collect();
    match resolver.look_up(&names) {
        Ok(LookUp::At(Found::At(key, _))) => Some(key),
        _ => None,
    }
}

/// The value of a text that stands nowhere in the tree.
pub fn text(root: &Node, text: &str, origin: &Origin) -> Result<Node, Problem> {
    let mut resolver = Resolver::new(root, Missing::Stays);
    resolver.leaf("", text, origin)
}

/// The first text in a value that does not follow the grammar.
pub fn check(value: &Value) -> Option<Fault> {
    match value {
        Value::Text(text) if text.contains("${") => syntax::parse_text(text).err(),
        Value::Map(map) => map.iter().find_map(|(_, node)| check(&node.value)),
        Value::List(items) => items.iter().find_map(|node| check(&node.value)),
        _ => None,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Missing {
    Stays,
    IsWrong,
}

struct Resolver<'a> {
    root: &'a Node,
    missing: Missing,
    /// The keys whose values are being worked out, outermost first.
    open: Vec<String>,
    depth: usize,
    /// How many values have been worked out; a long text counts as several.
    spent: usize,
}

/// What an interpolation comes to.
enum Found<'a> {
    /// A node of the tree, as written but no interpolation itself, and its key.
    At(String, &'a Node),
    Made(Node),
}

/// What is under a key.
enum LookUp<'a> {
    At(Found<'a>),
    Nothing,
    /// A value on the way is no mapping or list.
    NoContainer,
    /// A list has no item of this name.
    NoIndex,
    /// The value at this key is still to be given.
    Missing(String),
}

impl Found<'_> {
    fn node(&self) -> &Node {
        match self {
            Self::At(_, node) => node,
            Self::Made(node) => node,
        }
    }
}

impl<'a> Resolver<'a> {
    fn new(root: &'a Node, missing: Missing) -> Self {
        Self { root, missing, open: vec![], depth: 0, spent: 0 }
    }

    /// Resolves everything below a node; what fails stays as it is.
    fn tree(&mut self, key: &str, node: &Node, problems: &mut Vec<Problem>) -> Node {
        let resolved = self.deeper(key, &node.origin, |resolver| {
            resolver.spend(node);
            Ok(resolver.children(key, node, problems))
        });
        resolved.unwrap_or_else(|problem| {
            // Once the limit is reached every other value is beyond it too: the first is enough.
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
                    MISSING => Err(must_be_given(key, &node.origin)),
                    text => self.leaf(key, text, &node.origin),
                };
                return resolved.unwrap_or_else(|problem| {
                    // Everything that refers to a failed value fails with that value's own problem.
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

    /// The value of a text with interpolations, with everything below it.
    fn leaf(&mut self, key: &str, text: &str, origin: &Origin) -> Result<Node, Problem> {
        self.opened(key, origin, |resolver| {
            let found = resolver.parts(key, &parsed(key, text, origin)?, origin)?;
            resolver.whole(found, origin)
        })
    }

    /// What was found with everything below it resolved, as the value of what is written at `origin`.
    fn whole(&mut self, found: Found, origin: &Origin) -> Result<Node, Problem> {
        let (node, through) = match found {
            Found::Made(node) => return Ok(node),
            Found::At(key, node) => {
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

    /// What a node comes to if it is an interpolation: the node that it leads to.
    fn follow(&mut self, key: &str, node: &'a Node) -> Result<Found<'a>, Problem> {
        match &node.value {
            Value::Text(text) if text.contains("${") => {
                self.opened(key, &node.origin, |resolver| resolver.parts(key, &parsed(key, text, &node.origin)?, &node.origin))
            }
            _ => Ok(Found::At(key.to_string(), node)),
        }
    }

    /// Does something while a key counts as being worked out.
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

    /// A text in its parts. If it is nothing but one interpolation, it takes the value of that with its type.
    fn parts(&mut self, key: &str, parts: &[Part], origin: &Origin) -> Result<Found<'a>, Problem> {
        match parts {
            [Part::Inter(only)] => self.interpolation(key, only, origin),
            parts => Ok(Found::Made(Node::new(Value::Text(self.joined(key, parts, origin)?), origin.clone()))),
        }
    }

    /// The parts of a text as one string.
    fn joined(&mut self, key: &str, parts: &[Part], origin: &Origin) -> Result<String, Problem> {
        let mut whole = String::new();
        for part in parts {
            match part {
                Part::Text(text) => self.append(key, origin, &mut whole, text)?,
                Part::Inter(inter) => {
                    let found = self.interpolation(key, inter, origin)?;
                    self.append(key, origin, &mut whole, &scalar::python_text(&found.node().value))?;
                }
            }
        }
        Ok(whole)
    }

    fn interpolation(&mut self, key: &str, inter: &Interpolation, origin: &Origin) -> Result<Found<'a>, Problem> {
        self.deeper(key, origin, |resolver| {
            let found = resolver.referred(key, inter, origin)?;
            // What was made is copied to wherever it is used.
            if let Found::Made(node) = &found {
                resolver.spend(node);
            }
            Ok(found)
        })
    }

    fn referred(&mut self, key: &str, inter: &Interpolation, origin: &Origin) -> Result<Found<'a>, Problem> {
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
                        let unknown = unknown_key(&target, &self.root.keys(), false);
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
                let message = format!("`{key}` looks up a key whose name is given by `${{…}}`, but that is a {}", other.kind());
                Err(Problem::new(key, message).at(origin).help("the name of a key is a string"))
            }
        }
    }

    /// What is under a key. Interpolations on the way are followed.
    fn look_up(&mut self, names: &[String]) -> Result<LookUp<'a>, Problem> {
        let mut at = Found::At(String::new(), self.root);
        for name in names {
            let index_given = name.parse::<usize>().is_ok();
            match &at.node().value {
                Value::Map(_) => {}
                Value::List(_) if index_given => {}
                Value::List(_) => return Ok(LookUp::NoIndex),
                _ => return Ok(LookUp::NoContainer),
            }
            at = match at {
                Found::At(key, node) => {
                    let Some(child) = node.child(name) else { return Ok(LookUp::Nothing) };
                    let key = below(&key, name);
                    if is_missing(child) {
                        return Ok(LookUp::Missing(key));
                    }
                    self.follow(&key, child)?
                }
                Found::Made(node) => {
                    let Some(child) = node.child(name) else { return Ok(LookUp::Nothing) };
                    Found::Made(child.clone())
                }
            };
        }
        Ok(LookUp::At(at))
    }

    /// A value refers to one that is still to be given; that one's own problem is enough where it is one.
    fn refers_to_missing(&self, key: &str, missing: &str, origin: &Origin) -> Problem {
        match (self.missing, self.root.get(missing)) {
            (Missing::IsWrong, Some(node)) => must_be_given(missing, &node.origin),
            _ => Problem::new(key, format!("`{key}` refers to `{missing}`, which must be given"))
                .at(origin)
                .help(format!("write {missing}=VALUE")),
        }
    }
}

fn must_be_given(key: &str, origin: &Origin) -> Problem {
    Problem::new(key, format!("`{key}` must be given")).at(origin).help(format!("write {key}=VALUE"))
}

fn is_missing(node: &Node) -> bool {
    matches!(&node.value, Value::Text(text) if text == MISSING)
}

fn parsed(key: &str, text: &str, origin: &Origin) -> Result<Vec<Part>, Problem> {
    syntax::parse_text(text).map_err(|fault| {
        let message = format!("`{key}` has an interpolation that cannot be read: {}", fault.message);
        Problem::new(key, message)
            .at(origin)
            .help(format!("it is about `{}`; a text with ${{ is written as \\${{", &text[fault.at..]))
    })
}

/// A key as written at `key`: each leading dot goes one mapping up, one dot being the mapping that `key` is in. `None` if that
/// is above the top.
fn absolute(key: &str, dots: usize, names: &[String]) -> Option<Vec<String>> {
    if dots == 0 {
        return Some(names.to_vec());
    }
    let parts: Vec<&str> = segments(key).collect();
    let kept = parts.len().checked_sub(dots)?;
    Some(parts[..kept].iter().map(|part| part.to_string()).chain(names.iter().cloned()).collect())
}
