//! The texts of a file: comments and strings of Rust, comments of YAML and Python, paragraphs of Markdown.

use fancy_regex::Regex;
use std::path::Path;
use std::sync::LazyLock;

/// The part of a file that a text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `///` or `//!`.
    Doc,
    Comment,
    /// A string literal with a space.
    Message,
    Paragraph,
}

/// A text without its quotations: every part in backticks is `x`.
#[derive(Debug)]
pub(super) struct Text {
    pub line: usize,
    pub kind: Kind,
    pub words: String,
}

static QUOTATION: LazyLock<Regex> = LazyLock::new(|| Regex::new("`[^`]*`").unwrap());
/// A line end within a string literal, which the compiler removes.
static CONTINUED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\\\n\s*").unwrap());

impl Text {
    pub(super) fn new(line: usize, kind: Kind, text: &str) -> Self {
        Self { line, kind, words: QUOTATION.replace_all(text, "`x`").into_owned() }
    }
}

/// Returns the texts of a file by its ending, or `None` if the file holds other things.
pub(super) fn of_file(name: &Path, path: &Path) -> Option<Vec<Text>> {
    let ending = name.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let read = || std::fs::read_to_string(path).unwrap();
    let lines = match ending {
        "rs" => of_rust(&read()),
        "md" => of_markdown(&read()),
        "yaml" | "py" => of_hashes(&read()),
        _ => return None,
    };
    Some(joined(lines).into_iter().map(|(line, kind, text)| Text::new(line, kind, &text)).collect())
}

/// A line of text, or a whole string.
type Line = (usize, Kind, String);

/// Joins the lines of one comment or paragraph.
fn joined(lines: Vec<Line>) -> Vec<Line> {
    let mut joined: Vec<Line> = vec![];
    let mut last = 0;
    for (line, kind, text) in lines {
        match joined.last_mut() {
            Some((_, before, words))
                if *before == kind && kind != Kind::Message && last + 1 == line && !text.trim().is_empty() =>
            {
                words.push(' ');
                words.push_str(&text);
            }
            _ => joined.push((line, kind, text)),
        }
        last = line;
    }
    joined
}

fn of_markdown(text: &str) -> Vec<Line> {
    let mut is_code = false;
    let mut lines = vec![];
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code && !line.starts_with("    ") {
            lines.push((index + 1, Kind::Paragraph, line.to_owned()));
        }
    }
    lines
}

fn of_hashes(text: &str) -> Vec<Line> {
    let comment = |line: &str| match line.split_once("# ") {
        Some((before, comment)) if before.is_empty() || before.ends_with(char::is_whitespace) => Some(comment.to_owned()),
        _ => None,
    };
    text.lines().enumerate().filter_map(|(index, line)| Some((index + 1, Kind::Comment, comment(line)?))).collect()
}

fn of_rust(text: &str) -> Vec<Line> {
    let mut lines = vec![];
    let (mut rest, mut line) = (text, 1);
    // The last character before `rest`.
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            let slashes = rest[..length].trim_start_matches("//");
            let is_doc = slashes.starts_with(['/', '!']) && !slashes.starts_with("//");
            let (kind, words) = if is_doc { (Kind::Doc, &slashes[1..]) } else { (Kind::Comment, slashes) };
            lines.push((line, kind, words.strip_prefix(' ').unwrap_or(words).to_owned()));
            length
        } else if let Some((start, end)) = string(rest, before) {
            let words = CONTINUED.replace_all(&rest[start..end.0], "").into_owned();
            if words.contains(' ') {
                lines.push((line, Kind::Message, words));
            }
            end.1
        } else {
            character(rest).unwrap_or(first.len_utf8())
        };
        line += rest[..length].matches('\n').count();
        before = rest[..length].chars().next_back().unwrap_or(' ');
        rest = &rest[length..];
    }
    lines
}

/// The string literal at the start of a text: where its words begin, and where its words and the literal end.
fn string(text: &str, before: char) -> Option<(usize, (usize, usize))> {
    if let Some(words) = text.strip_prefix('"') {
        let mut escaped = false;
        let end = words.char_indices().find(|&(_, c)| {
            let is_end = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            is_end
        });
        let end = end.map_or(words.len(), |(index, _)| index) + 1;
        return Some((1, (end, (end + 1).min(text.len()))));
    }
    let raw = text.strip_prefix('b').unwrap_or(text).strip_prefix('r').filter(|_| !before.is_alphanumeric() && before != '_')?;
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    let words = raw[hashes..].strip_prefix('"')?;
    let start = text.len() - words.len();
    let close = format!("\"{}", "#".repeat(hashes));
    let end = start + words.find(&close).unwrap_or(words.len());
    Some((start, (end, (end + close.len()).min(text.len()))))
}

/// The length of the character literal at the start of a text, such as `'"'`.
fn character(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('\'')?;
    let escaped = inner.starts_with('\\');
    let first = if escaped { inner[1..].chars().next()?.len_utf8() + 1 } else { inner.chars().next()?.len_utf8() };
    let close = if escaped { first + inner[first..].find('\'')? } else { first };
    (inner[close..].starts_with('\'') && (!escaped || close < 12)).then_some(close + 2)
}
