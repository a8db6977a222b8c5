//! `${function:arguments}`: the functions of OmegaConf, and Hydra's `now`.

use super::clock;
use super::resolver::{LookUp, ResolvedNode, Resolver, absolute};
use super::syntax::{self, Argument, TextPart};
use super::unresolved_calls::{self, ENVIRONMENT, has_call};
use crate::error::Problem;
use crate::provenance::{Origin, YamlSource};
use crate::scalar;
use crate::tree::{Node, Value, below};
use crate::yaml;
use std::sync::Arc;

const AVAILABLE: &str = "available: oc.env, oc.select, oc.decode, oc.create, oc.dict.keys, oc.dict.values and now";

/// The place of a function call.
struct CallSite<'s> {
    key: &'s str,
    function: &'s str,
    origin: &'s Origin,
}

impl CallSite<'_> {
    fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::new(self.key, message).at(self.origin)
    }

    fn made<'a>(&self, value: Value) -> Result<ResolvedNode<'a>, Problem> {
        Ok(ResolvedNode::Made(Node::new(value, self.origin.clone())))
    }

    /// Returns the first argument, and the second one if it is given.
    fn arguments<'n>(&self, nodes: &'n [Node], max: usize) -> Result<(&'n Node, Option<&'n Node>), Problem> {
        let (function, count) = (self.function, nodes.len());
        match nodes {
            [first, rest @ ..] if count <= max => Ok((first, rest.first())),
            _ => {
                let takes = if max == 1 { "one argument".into() } else { format!("one to {max} arguments") };
                let help = "put a text with commas in quotes";
                Err(self.problem(format!("`{function}` takes {takes}, not {count}")).help(help))
            }
        }
    }

    fn text<'n>(&self, node: &'n Node) -> Result<&'n str, Problem> {
        match &node.value {
            Value::Text(text) => Ok(text),
            other => Err(self.problem(format!("`{}` takes a string, not a {}", self.function, other.kind()))),
        }
    }
}

impl<'a> Resolver<'a> {
    pub(super) fn call(
        &mut self,
        key: &str,
        function: &str,
        arguments: &[Argument],
        origin: &Origin,
    ) -> Result<ResolvedNode<'a>, Problem> {
        let site = CallSite { key, function, origin };
        let nodes = arguments.iter().map(|argument| self.argument(key, argument, origin)).collect::<Result<Vec<_>, _>>()?;
        if self.keeps_environment && (function == ENVIRONMENT || nodes.iter().any(has_call)) {
            return site.made(Value::Text(unresolved_calls::call(function, &nodes)));
        }
        match function {
            ENVIRONMENT => self.environment(&site, &nodes),
            "oc.select" => self.selected(&site, &nodes),
            "oc.decode" => self.decoded(&site, &nodes),
            "oc.create" => self.created(&site, &nodes),
            "oc.dict.keys" | "oc.dict.values" => self.dict(&site, &nodes),
            "now" => {
                let (format, _) = site.arguments(&nodes, 1)?;
                let time = clock::now(site.text(format)?).map_err(|directive| {
                    site.problem(format!("`${{now:…}}` does not support `{directive}`"))
                        .help("it supports %Y %m %d %H %M %S and a few more")
                })?;
                site.made(Value::Text(time))
            }
            "hydra" => Err(site
                .problem(format!("`{key}` uses `${{hydra:…}}`, but Hydra does not run here"))
                .help("write the value instead")),
            _ => Err(site.problem(format!("`{key}` uses `${{{function}:…}}`, which is not available")).help(AVAILABLE)),
        }
    }

    fn argument(&mut self, key: &str, argument: &Argument, origin: &Origin) -> Result<Node, Problem> {
        self.deeper(key, origin, |resolver| resolver.argument_value(key, argument, origin))
    }

    fn argument_value(&mut self, key: &str, argument: &Argument, origin: &Origin) -> Result<Node, Problem> {
        let value = match argument {
            Argument::Scalar(value) => value.clone(),
            Argument::Parts(parts) => {
                let found = self.parts(key, parts, origin)?;
                return self.resolved_tree(found, origin);
            }
            Argument::Quoted(parts) => match parts.as_slice() {
                [TextPart::Text(text)] => Value::Text(text.clone()),
                parts => Value::Text(self.joined(key, parts, origin)?),
            },
            Argument::List(items) => {
                Value::List(items.iter().map(|item| self.argument(key, item, origin)).collect::<Result<_, _>>()?)
            }
            Argument::Map(entries) => {
                let entries = entries.iter().map(|(name, value)| Ok((name.clone(), self.argument(key, value, origin)?)));
                Value::Map(entries.collect::<Result<_, _>>()?)
            }
        };
        Ok(Node::new(value, origin.clone()))
    }

    fn environment(&mut self, site: &CallSite, nodes: &[Node]) -> Result<ResolvedNode<'a>, Problem> {
        let (name, default) = site.arguments(nodes, 2)?;
        let name = site.text(name)?;
        match (std::env::var(name), default) {
            (Ok(text), _) => site.made(Value::Text(text)),
            (Err(_), Some(Node { value: Value::Null, .. })) => site.made(Value::Null),
            (Err(_), Some(default)) => site.made(Value::Text(scalar::python_text(&default.value))),
            (Err(_), None) => {
                let message = format!("`{}` needs the environment variable `{name}`, which is not set", site.key);
                Err(site.problem(message).help(format!("set {name}, or add a default after a comma: ${{oc.env:{name},DEFAULT}}")))
            }
        }
    }

    fn selected(&mut self, site: &CallSite, nodes: &[Node]) -> Result<ResolvedNode<'a>, Problem> {
        let (written, default) = site.arguments(nodes, 2)?;
        match self.look_up_written(site, site.text(written)?)? {
            LookUp::At(found) => Ok(found),
            LookUp::NoIndex => {
                Err(site.problem(format!("`{}` looks up an item of a list by a name that is not a number", site.key)))
            }
            _ => site.made(default.map_or(Value::Null, |node| node.value.clone())),
        }
    }

    fn decoded(&mut self, site: &CallSite, nodes: &[Node]) -> Result<ResolvedNode<'a>, Problem> {
        let (text, _) = site.arguments(nodes, 1)?;
        if text.value == Value::Null {
            return site.made(Value::Null);
        }
        let text = site.text(text)?;
        let argument = syntax::parse_argument(text)
            .map_err(|error| site.problem(format!("`{}` decodes `{text}`, which cannot be read: {}", site.key, error.message)))?;
        self.argument(site.key, &argument, site.origin).map(ResolvedNode::Made)
    }

    fn created(&mut self, site: &CallSite, nodes: &[Node]) -> Result<ResolvedNode<'a>, Problem> {
        let (node, _) = site.arguments(nodes, 1)?;
        match &node.value {
            Value::Text(text) => {
                let name = format!("oc.create at `{}`", site.key);
                let parsed = yaml::parse(&Arc::new(YamlSource { name, text: text.clone() }))?;
                let mut problems = vec![];
                let resolved = self.tree(site.key, &parsed, &mut problems);
                problems.into_iter().next().map_or(Ok(ResolvedNode::Made(resolved)), Err)
            }
            Value::Map(_) | Value::List(_) | Value::Null => Ok(ResolvedNode::Made(node.clone())),
            other => Err(site.problem(format!("`oc.create` takes a mapping, a list or YAML, not a {}", other.kind()))),
        }
    }

    fn dict(&mut self, site: &CallSite, nodes: &[Node]) -> Result<ResolvedNode<'a>, Problem> {
        let (written, _) = site.arguments(nodes, 1)?;
        let written = site.text(written)?;
        let found = match self.look_up_written(site, written)? {
            LookUp::At(found) => found,
            _ => return Err(site.problem(format!("`{}` refers to the entries of `{written}`, which does not exist", site.key))),
        };
        let Value::Map(map) = &found.node().value else {
            let message = format!("`{}` takes a mapping, but `{written}` is a {}", site.function, found.node().value.kind());
            return Err(site.problem(message));
        };
        let node = |value| Node::new(value, site.origin.clone());
        if site.function == "oc.dict.keys" {
            return site.made(Value::List(map.iter().map(|(name, _)| node(Value::Text(name.clone()))).collect()));
        }
        let mut items = vec![];
        for (name, entry) in map {
            let prefix = if let ResolvedNode::At(key, _) = &found { key.as_str() } else { site.key };
            let mut problems = vec![];
            items.push(self.tree(&below(prefix, name), entry, &mut problems));
            if let Some(problem) = problems.into_iter().next() {
                return Err(problem);
            }
        }
        site.made(Value::List(items))
    }

    /// Looks up a key given as text; leading dots make it relative to the key of the call.
    fn look_up_written(&mut self, site: &CallSite, written: &str) -> Result<LookUp<'a>, Problem> {
        let dots = written.len() - written.trim_start_matches('.').len();
        let names: Vec<String> =
            written[dots..].split(['.', '[', ']']).filter(|name| !name.is_empty()).map(str::to_string).collect();
        match absolute(site.key, dots, &names) {
            Some(names) => self.look_up(&names),
            None => {
                Err(site.problem(format!("`{}` looks up `{written}`, which is above the top of the configuration", site.key)))
            }
        }
    }
}
