//! Splits a turn into the regions of a template.

use std::cmp::Reverse;
use std::sync::Arc;

use regex::Regex;

use super::field::{FieldStart, ResponseTemplate};
use super::patterns::pattern;

/// A region of the turn.
#[derive(Debug)]
pub(crate) struct Region {
    /// The index of the field in the template.
    pub field: usize,
    /// The name of a function, from the pattern that began the region.
    pub name: Option<String>,
    pub body: String,
}

/// A pattern with its cached next match (still valid for any later start before that match).
struct CachedPattern {
    field: usize,
    opens: bool,
    pattern: Pattern,
    cached: Option<Option<PatternMatch>>,
}

enum Pattern {
    Regex(Arc<Regex>),
    /// The end of the text, before a last newline.
    End,
    /// The current position, if this text follows.
    Before(&'static str),
}

#[derive(Clone)]
struct PatternMatch {
    start: usize,
    end: usize,
    name: Option<String>,
}

/// Splits the turn, including the part that the prompt already contains, into regions.
///
/// # Errors
/// If a pattern of the template is invalid.
pub(crate) fn regions(template: &ResponseTemplate, prefix: &str, text: &str) -> Result<Vec<Region>, String> {
    let from = pattern(template.anchor)?.find_iter(prefix).last().map_or(0, |found| found.end());
    let mut watched = Vec::new();
    for (field, known) in template.fields.iter().enumerate() {
        let open = match known.open {
            FieldStart::Rest => None,
            FieldStart::Pattern(open) => Some(Pattern::Regex(pattern(open)?)),
            FieldStart::Before(word) => Some(Pattern::Before(word)),
        };
        watched.extend(open.map(|pattern| CachedPattern { field, opens: true, pattern, cached: None }));
        watched.push(CachedPattern { field, opens: false, pattern: Pattern::Regex(pattern(known.close)?), cached: None });
        if known.end_closes {
            watched.push(CachedPattern { field, opens: false, pattern: Pattern::End, cached: None });
        }
    }
    let rest = template.fields.iter().position(|field| matches!(field.open, FieldStart::Rest));
    let mut machine =
        RegionParser { buffer: prefix[from..].to_owned(), at: 0, rest, current: None, body: String::new(), found: Vec::new() };
    machine.run(&mut watched, false);
    machine.buffer.push_str(text);
    watched.iter_mut().for_each(|watched| watched.cached = None);
    machine.run(&mut watched, true);
    Ok(machine.found)
}

/// The order of matches (the smallest wins): start, reversed length, true if it closes.
type MatchOrder = (usize, Reverse<usize>, bool);

struct RegionParser {
    buffer: String,
    at: usize,
    /// Index of the catch-all field.
    rest: Option<usize>,
    /// The open field and the name of its function; `None` while text goes to `rest`.
    current: Option<(usize, Option<String>)>,
    body: String,
    found: Vec<Region>,
}

impl RegionParser {
    /// Processes the buffer. Before the end of the text, a match that touches the buffer's edge waits, because it may still grow.
    fn run(&mut self, watched: &mut [CachedPattern], ended: bool) {
        loop {
            // The earliest match wins; ties go to the longest, then to an opening one.
            let mut best: Option<(MatchOrder, usize, Option<String>)> = None;
            for watched in watched.iter_mut() {
                let concerns = match &self.current {
                    Some((field, _)) => !watched.opens && watched.field == *field,
                    None => watched.opens || Some(watched.field) == self.rest,
                };
                if !concerns {
                    continue;
                }
                let Some(found) = watched.find(&self.buffer, self.at) else {
                    // The text that must follow may still arrive; the field would then begin here.
                    if !ended && matches!(watched.pattern, Pattern::Before(_)) {
                        return;
                    }
                    continue;
                };
                let key = (found.start, Reverse(found.end - found.start), !watched.opens);
                if best.as_ref().is_none_or(|(best, ..)| key < *best) {
                    best = Some((key, watched.field, found.name));
                }
            }
            let Some(((start, Reverse(length), closes), field, name)) = best else { break };
            let end = start + length;
            if !ended && end == self.buffer.len() {
                break;
            }
            self.body.push_str(&self.buffer[self.at..start]);
            self.at = end;
            let had_body = self.current.is_some() || !self.body.is_empty();
            self.close();
            if !closes {
                self.current = Some((field, name));
            } else if !had_body && start == end {
                return;
            }
        }
        if ended {
            self.body.push_str(&self.buffer[self.at..]);
            self.at = self.buffer.len();
            self.close();
        }
    }

    fn close(&mut self) {
        let body = std::mem::take(&mut self.body);
        match (self.current.take(), self.rest) {
            (Some((field, name)), _) => self.found.push(Region { field, name, body }),
            (None, Some(field)) if !body.is_empty() => self.found.push(Region { field, name: None, body }),
            _ => {}
        }
    }
}

impl CachedPattern {
    fn find(&mut self, text: &str, at: usize) -> Option<PatternMatch> {
        if let Some(cached) = &self.cached
            && cached.as_ref().is_none_or(|cached| cached.start >= at)
        {
            return match (cached, &self.pattern) {
                (Some(_), Pattern::Before(_)) => Some(PatternMatch { start: at, end: at, name: None }),
                (cached, _) => cached.clone(),
            };
        }
        let found = match &self.pattern {
            Pattern::Regex(pattern) => pattern.captures_at(text, at).map(|found| {
                let matched = found.get_match();
                PatternMatch {
                    start: matched.start(),
                    end: matched.end(),
                    name: found.get(1).map(|name| name.as_str().to_owned()),
                }
            }),
            Pattern::End => {
                let end = text.len() - usize::from(text.ends_with('\n'));
                let end = if end < at { text.len() } else { end };
                Some(PatternMatch { start: end, end, name: None })
            }
            Pattern::Before(word) => {
                text[at..].find(word).map(|length| PatternMatch { start: at + length, end: at + length, name: None })
            }
        };
        self.cached = Some(found.clone());
        match self.pattern {
            Pattern::Before(_) => found.map(|_| PatternMatch { start: at, end: at, name: None }),
            _ => found,
        }
    }
}
