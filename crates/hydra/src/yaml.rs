//! Parses YAML text into [`Node`]s with their positions. No other file uses the YAML parser.

use super::error::Problem;
use super::grammar::{DEEPEST, TOO_DEEP};
use super::interpolation;
use super::provenance::{Mark, Origin, YamlSource};
use super::scalar;
use super::tree::{Map, Node, Value};
use burnish_util::secret;
use serde_saphyr::granit_parser::{Event, Marker, Parser, ScalarStyle, Span};
use std::collections::HashMap;
use std::sync::Arc;

/// The maximum number of values of a document once its aliases are replaced by their values.
const MAX_NODES: usize = 1_000_000;
/// The maximum number of bytes of text of a document once its aliases are replaced by their values.
const MAX_TEXT: usize = 64 << 20;

/// Reads one YAML document; an empty one is an empty mapping.
///
/// # Errors
/// If there is a syntax error, a duplicate key, a tag, or a second document; the problem has its position.
pub fn parse(source: &Arc<YamlSource>) -> Result<Node, Problem> {
    // This must happen before the first message that could quote a line.
    secret::remember_in(&source.text);
    let mut reader =
        Reader { source, parser: Parser::new_from_str(&source.text), anchors: HashMap::new(), nodes: 0, text: 0, depth: 0 };
    let mut root = None;
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamEnd => break,
            Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
            _ if root.is_some() => {
                return Err(reader.problem(mark(span.start), "a configuration file must hold a single document"));
            }
            _ => root = Some(reader.node(event, span, None)?),
        }
    }
    if let Some(root) = &root {
        root.walk(&mut |key, node| {
            if let Value::Text(text) = &node.value {
                secret::remember_setting(key, text);
            }
        });
    }
    let start = Mark { line: 1, column: 1 };
    let empty = || Node::new(Value::Map(Map::new()), Origin::File { source: source.clone(), key: start, value: start });
    Ok(root.filter(|node| node.value != Value::Null).unwrap_or_else(empty))
}

struct Reader<'a> {
    source: &'a Arc<YamlSource>,
    parser: Parser<'a, serde_saphyr::granit_parser::StrInput<'a>>,
    anchors: HashMap<usize, Anchored>,
    /// Number of values read so far.
    nodes: usize,
    /// Bytes of text read so far.
    text: usize,
    /// Number of open lists and mappings.
    depth: usize,
}

/// The value of an alias.
struct Anchored {
    node: Node,
    /// The number of values in the node, itself included.
    nodes: usize,
    /// The bytes of text in the node.
    text: usize,
    /// The nesting depth of the node.
    height: usize,
}

impl<'a> Reader<'a> {
    /// Returns the next event that is not a comment.
    fn next(&mut self) -> Result<(Event<'a>, Span), Problem> {
        loop {
            match self.parser.next_event() {
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok(next)) => return Ok(next),
                Some(Err(error)) => {
                    return Err(self.problem(mark(*error.marker()), &format!("this is not YAML: {}", error.info())));
                }
                None => return Ok((Event::StreamEnd, Span::empty(Marker::new(0, 1, 0)))),
            }
        }
    }

    /// Reads the node that starts with `event`. `key`: the position of its key, if it has one.
    fn node(&mut self, event: Event<'a>, span: Span, key: Option<Mark>) -> Result<Node, Problem> {
        let at = mark(span.start);
        let before = (self.nodes, self.text);
        self.nodes += 1;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                if tag.is_some() {
                    return Err(self.problem(at, "tags (`!…`) are not supported"));
                }
                self.text += text.len();
                let plain = style == ScalarStyle::Plain;
                let value = if plain { scalar::read_yaml(&text) } else { Ok(Value::Text(text.into_owned())) };
                let value = value.and_then(|value| match interpolation::check(&value) {
                    Some(error) => Err(format!("this `${{…}}` cannot be read: {}", error.message)),
                    None => Ok(value),
                });
                (value.map_err(|message| self.problem(at, &message))?, anchor)
            }
            Event::SequenceStart(_, anchor, _) => (Value::List(self.deeper(at, Self::items)?), anchor),
            Event::MappingStart(_, anchor, _) => (Value::Map(self.deeper(at, Self::entries)?), anchor),
            Event::Alias(anchor) => {
                let Some(known) = self.anchors.get(&anchor) else {
                    return Err(self.problem(at, "this alias refers to a value that contains it"));
                };
                if self.depth + known.height > DEEPEST {
                    return Err(self.problem(at, TOO_DEEP));
                }
                self.nodes += known.nodes - 1;
                if self.nodes > MAX_NODES {
                    return Err(self.problem(at, "with this alias the file would hold more than 1,000,000 values"));
                }
                self.text += known.text;
                if self.text > MAX_TEXT {
                    return Err(self.problem(at, "with this alias the file would hold more than 64 MiB of text"));
                }
                (known.node.value.clone(), 0)
            }
            _ => return Err(self.problem(at, "expected a value here")),
        };
        let node = Node::new(value, Origin::File { source: self.source.clone(), key: key.unwrap_or(at), value: at });
        if anchor != 0 {
            let (nodes, text) = (self.nodes - before.0, self.text - before.1);
            let anchored = Anchored { node: node.clone(), nodes, text, height: height(&node) };
            self.anchors.insert(anchor, anchored);
        }
        Ok(node)
    }

    /// Reads the content of a list or mapping, and fails beyond the maximum depth.
    fn deeper<T>(&mut self, at: Mark, read: impl FnOnce(&mut Self) -> Result<T, Problem>) -> Result<T, Problem> {
        if self.depth == DEEPEST {
            return Err(self.problem(at, TOO_DEEP));
        }
        self.depth += 1;
        let inside = read(self);
        self.depth -= 1;
        inside
    }

    fn items(&mut self) -> Result<Vec<Node>, Problem> {
        let mut items = vec![];
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(items),
                (event, span) => items.push(self.node(event, span, None)?),
            }
        }
    }

    fn entries(&mut self) -> Result<Map, Problem> {
        let mut map = Map::new();
        let mut merged: Vec<Node> = vec![];
        loop {
            let (event, span) = self.next()?;
            let at = mark(span.start);
            let name = match event {
                Event::MappingEnd => break,
                Event::Scalar(text, ScalarStyle::Plain, ..) if matches!(scalar::read_yaml(&text), Ok(Value::Null)) => {
                    return Err(self.problem(at, "a key cannot be null: put it in quotes"));
                }
                Event::Scalar(text, ..) => text.into_owned(),
                _ => return Err(self.problem(at, "a key must be a plain word")),
            };
            let (event, span) = self.next()?;
            let node = self.node(event, span, Some(at))?;
            match map.get(&name) {
                _ if name == "<<" => merged.push(node),
                Some(first) => {
                    let message = format!("the key `{name}` appears twice; the first is at {}", first.origin.at_key());
                    return Err(self.problem(at, &message));
                }
                None => _ = map.insert(name, node),
            }
        }
        Ok(with_merge_keys(map, merged))
    }

    fn problem(&self, at: Mark, message: &str) -> Problem {
        Problem::new("", message).at(&Origin::File { source: self.source.clone(), key: at, value: at })
    }
}

/// Returns the nesting depth of lists and mappings in a value, itself included.
fn height(node: &Node) -> usize {
    match &node.value {
        Value::List(items) => 1 + items.iter().map(height).max().unwrap_or(0),
        Value::Map(map) => 1 + map.iter().map(|(_, node)| height(node)).max().unwrap_or(0),
        _ => 0,
    }
}

/// Adds the entries of `<<: *anchor` (or of a list of anchors) whose keys the mapping itself does not have.
fn with_merge_keys(mut map: Map, merged: Vec<Node>) -> Map {
    for node in merged {
        let sources = if let Value::List(items) = node.value { items } else { vec![node] };
        for source in sources {
            let Value::Map(entries) = source.value else { continue };
            for (key, node) in entries {
                map.entry(key).or_insert(node);
            }
        }
    }
    map
}

fn mark(marker: Marker) -> Mark {
    Mark { line: marker.line().max(1), column: marker.col() + 1 }
}
