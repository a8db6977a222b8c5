//! The parser, and limits on its input. The parser backtracks: on invalid text, its time doubles with every open bracket. It also
//! recurses with every block.

use super::text::ShellError;
use brush_parser::ast::Program;
use brush_parser::{ParseError, Parser, ParserOptions};
use burnish_hydra::grammar::LONGEST;

/// The limit of brackets that are open at the same time.
const BRACKETS: usize = 16;

/// The limit of words that open a block.
const BLOCKS: usize = 4000;

const OPENERS: &[&str] = &["if", "while", "until", "for", "select", "case", "!", "time", "coproc"];

/// Parses a script, or a text inside one.
///
/// # Errors
/// If the text is not a shell script, is too long, or is nested too deeply.
pub(super) fn parse(text: &str) -> Result<Program, ShellError> {
    check(text)?;
    let text = &*ended(text);
    let options = ParserOptions::default();
    Parser::new(text.as_bytes(), &options).parse_program().map_err(|error| {
        let last = text.lines().count().max(1);
        let line = match &error {
            ParseError::ParsingNear(position) => position.line,
            ParseError::Tokenizing { position: Some(position), .. } => position.line,
            _ => last,
        };
        let message = match error {
            ParseError::ParsingNear(_) => match text.lines().nth(line.clamp(1, last) - 1).and_then(to_be_replaced) {
                Some(name) => format!("this is not valid shell syntax: replace {name} by its value"),
                None => "this is not valid shell syntax".into(),
            },
            ParseError::ParsingAtEndOfInput => "the script ends inside a command, a quote or a block".into(),
            ParseError::Tokenizing { inner, .. } => format!("this is not valid shell syntax: {inner}"),
        };
        ShellError { line: line.clamp(1, last), message, is_endless: false }
    })
}

/// Checks the limits before parsing. Brackets in comments do not count.
///
/// # Errors
/// If the text is too long or too many brackets are open at once.
pub(super) fn check(text: &str) -> Result<(), ShellError> {
    let fail = |line, message: &str| Err(ShellError { line, message: message.into(), is_endless: false });
    if text.len() > LONGEST {
        return fail(1, "the script is longer than 1 MB");
    }
    let (mut open, mut cases, mut blocks) = (0_usize, 0_usize, 0_usize);
    for (index, line) in text.lines().enumerate() {
        let code = if line.trim_start().starts_with('#') { "" } else { line.split(" #").next().unwrap_or_default() };
        for c in code.chars() {
            open = if matches!(c, '(' | '{') { open + 1 } else { open.saturating_sub(usize::from(matches!(c, ')' | '}'))) };
            if open + cases > BRACKETS {
                return fail(index + 1, "this is nested too deeply");
            }
        }
        for word in code.split(|c: char| c.is_whitespace() || ";()&|".contains(c)) {
            cases = if word == "case" { cases + 1 } else { cases.saturating_sub(usize::from(word == "esac")) };
            blocks += usize::from(OPENERS.contains(&word));
        }
        if blocks > BLOCKS {
            return fail(index + 1, "the script has too many blocks");
        }
    }
    Ok(())
}

/// Replaces a backslash at the very end, which continues no line, by nothing, as bash does.
fn ended(text: &str) -> std::borrow::Cow<'_, str> {
    let backslashes = text.len() - text.trim_end_matches('\\').len();
    if backslashes.is_multiple_of(2) { text.into() } else { text[..text.len() - 1].into() }
}

/// Returns a text such as `<PATH>` that a line asks to replace.
fn to_be_replaced(line: &str) -> Option<&str> {
    let start = line.find("=<")? + 1;
    let end = start + line[start..].find('>')?;
    let is_name = line[start + 1..end].chars().all(|c| c.is_ascii_alphanumeric() || "_- ./".contains(c));
    (is_name && end > start + 1).then(|| &line[start..=end])
}
