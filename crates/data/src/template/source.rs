//! Rewrites the source of a chat template where Jinja and minijinja differ: line ends, escapes in strings, and `'%s' % x`.

use std::ops::Range;

use super::filters::PERCENT;
use super::namespaces::guarded;

/// Nesting limit of `'…' % x`.
const DEEPEST: usize = 20;

/// Returns a source that means the same to minijinja as `source` to Jinja.
pub(crate) fn as_jinja_reads(source: &str) -> String {
    // Jinja's lexer converts every line end to a newline, even in strings. Escapes such as '\r' stay.
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while let Some(tag) = next_tag(&source, at) {
        out.push_str(&source[at..tag.start]);
        let mut written = String::with_capacity(tag.len());
        rewrite(&source[tag.clone()], DEEPEST, &mut written);
        out.push_str(&guarded(&written));
        at = tag.end;
    }
    out.push_str(&source[at..]);
    out
}

/// Returns the byte range of the next `{{ … }}` or `{% … %}` outside of comments and raw text.
fn next_tag(source: &str, from: usize) -> Option<Range<usize>> {
    let mut at = from;
    loop {
        at += source[at..].find('{')?;
        let rest = &source[at..];
        if rest.starts_with("{#") {
            at += rest.find("#}")? + 2;
        } else if rest.starts_with("{{") || rest.starts_with("{%") {
            let end = tag_end(source, at)?;
            let inside = source[at + 2..end].trim_start_matches(['-', '+']).trim_start();
            if !rest.starts_with("{%") || !inside.starts_with("raw") || !inside[3..].trim_start().starts_with(['%', '-', '+']) {
                return Some(at..end);
            }
            at = end + source[end..].find("endraw")?;
        } else {
            at += 1;
        }
    }
}

/// Returns the end of the tag that begins at `at`: after the first `}}` or `%}` outside of quotes and brackets.
fn tag_end(source: &str, at: usize) -> Option<usize> {
    let close = if source[at..].starts_with("{{") { "}}" } else { "%}" };
    let (mut depth, mut i) = (0_usize, at + 2);
    loop {
        let rest = &source[i..];
        if depth == 0 && rest.starts_with(close) {
            return Some(i + 2);
        }
        match rest.chars().next()? {
            '\'' | '"' => i = quoted_end(source, i)?,
            c => {
                match c {
                    '(' | '[' | '{' => depth += 1,
                    ')' | ']' | '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                i += c.len_utf8();
            }
        }
    }
}

/// Returns the end of the string that begins at `at`.
fn quoted_end(source: &str, at: usize) -> Option<usize> {
    let quote = source[at..].chars().next()?;
    let mut escaped = false;
    for (i, c) in source[at + 1..].char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return Some(at + 2 + i),
            _ => {}
        }
    }
    None
}

/// Writes a tag with Python's escapes in strings, and with `'…' % x` as a filter, nested at most `depth` times.
fn rewrite(tag: &str, depth: usize, out: &mut String) {
    let mut at = 0;
    while let Some(begin) = tag[at..].find(['\'', '"']).map(|begin| at + begin) {
        let Some(end) = quoted_end(tag, begin) else { break };
        out.push_str(&tag[at..begin]);
        escapes(&tag[begin..end], out);
        at = end;
        if depth > 0
            && let Some((operand, formatted)) = percent(tag, end)
        {
            rewrite(&formatted, depth - 1, out);
            at = operand;
        }
    }
    out.push_str(&tag[at..]);
}

/// Writes a string with escapes that mean the same to minijinja as to Python.
fn escapes(quoted: &str, out: &mut String) {
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        out.push(c);
        if c != '\\' {
            continue;
        }
        match chars.next() {
            Some('/') => out.push_str("\\/"),
            Some('a') => out.push_str("x07"),
            Some('v') => out.push_str("x0b"),
            // A continued line.
            Some('\n') => _ = out.pop(),
            Some(other) => out.push(other),
            None => {}
        }
    }
}

/// If a `%` operator follows at `at`, returns the end of its right operand and the filter that replaces both.
fn percent(tag: &str, at: usize) -> Option<(usize, String)> {
    let rest = tag[at..].trim_start().strip_prefix('%').filter(|rest| !rest.starts_with('}'))?;
    let begin = tag.len() - rest.trim_start().len();
    let end = operand_end(tag, begin)?;
    Some((end, format!("|{PERCENT}({})", &tag[begin..end])))
}

/// Returns the end of the operand that begins at `begin`: a name, number, string or bracket, with its calls, lookups and filters.
fn operand_end(tag: &str, begin: usize) -> Option<usize> {
    let mut at = begin + (tag[begin..].len() - tag[begin..].trim_start_matches(['-', '+']).len());
    at = primary_end(tag, at)?;
    loop {
        let next = at + (tag[at..].len() - tag[at..].trim_start().len());
        let rest = &tag[next..];
        at = match rest.chars().next() {
            Some('(' | '[') => primary_end(tag, next)?,
            Some('.') => word_end(tag, next + 1)?,
            Some('|') => {
                let begin = next + 1;
                word_end(tag, begin + (tag[begin..].len() - tag[begin..].trim_start().len()))?
            }
            _ => return Some(at),
        };
    }
}

fn primary_end(tag: &str, at: usize) -> Option<usize> {
    match tag[at..].chars().next()? {
        '\'' | '"' => quoted_end(tag, at),
        '(' | '[' | '{' => {
            let (mut depth, mut i) = (0, at);
            loop {
                match tag[i..].chars().next()? {
                    '\'' | '"' => {
                        i = quoted_end(tag, i)?;
                        continue;
                    }
                    '(' | '[' | '{' => depth += 1,
                    ')' | ']' | '}' => depth -= 1,
                    _ => {}
                }
                i += tag[i..].chars().next()?.len_utf8();
                if depth == 0 {
                    return Some(i);
                }
            }
        }
        c if c.is_ascii_digit() => {
            Some(at + tag[at..].find(|c: char| !c.is_ascii_alphanumeric() && !"._".contains(c)).unwrap_or(tag.len() - at))
        }
        _ => word_end(tag, at),
    }
}

fn word_end(tag: &str, at: usize) -> Option<usize> {
    let length = tag[at..].find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(tag.len() - at);
    (length > 0).then_some(at + length)
}
