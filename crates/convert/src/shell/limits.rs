//! The parser, and limits on its input. The parser backtracks: on invalid text, its time doubles with every open bracket. It also
//! recurses with every block. Brackets are counted in the tokens that the parser reads.

use super::text::ShellError;
use brush_parser::ast::Program;
use brush_parser::{ParseError, Parser, ParserOptions, Token, parse_tokens, uncached_tokenize_str};
use burnish_hydra::grammar::LONGEST;

/// The limit of brackets that are open at the same time.
const BRACKETS: usize = 16;

/// The limit of words that open a block.
const BLOCKS: usize = 4000;

/// The message about brackets.
const TOO_DEEP: &str = "this is nested too deeply";

const OPENERS: &[&str] = &["if", "while", "until", "for", "select", "case", "!", "time", "coproc"];

/// The limit of tokens of a script with all texts inside it: the syntax tree takes about a kilobyte for each.
const TOKENS: usize = 150_000;

/// The limit of `$`: the tokenizer recurses with each expansion that is open.
const EXPANSIONS: usize = 50_000;

/// Parses a script, or a text inside one, after `before` tokens of other texts. Returns the number of its tokens as well.
///
/// # Errors
/// If the text is not a shell script, is too long, or is nested too deeply.
pub(super) fn parse(text: &str, before: usize) -> Result<(Program, usize), ShellError> {
    check_length(text)?;
    if text.matches('$').count() > EXPANSIONS {
        return fail(1, "the script has too many expansions");
    }
    // The tokens themselves take 100 bytes each.
    if text.bytes().filter(|byte| b" \t\n;&|()<>".contains(byte)).count() > 2 * TOKENS {
        return fail(1, "the script has too many words");
    }
    let text = &*ended(text);
    let options = ParserOptions::default();
    // A text that is not tokens is read again for the place of its error.
    let parsed = match uncached_tokenize_str(text, &options.tokenizer_options()) {
        Ok(tokens) => {
            check_tokens(&tokens, before)?;
            parse_tokens(&tokens, &options).map(|program| (program, tokens.len()))
        }
        Err(_) => Parser::new(text.as_bytes(), &options).parse_program().map(|program| (program, 0)),
    };
    parsed.map_err(|error| {
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

fn fail<T>(line: usize, message: &str) -> Result<T, ShellError> {
    Err(ShellError { line, message: message.into(), is_endless: false })
}

fn check_length(text: &str) -> Result<(), ShellError> {
    if text.len() > LONGEST { fail(1, "the script is longer than 1 MB") } else { Ok(()) }
}

/// Checks the limits of a word, a here-document or a formula before parsing.
///
/// # Errors
/// If the text is too long or too many brackets are open at once.
pub(super) fn check(text: &str) -> Result<(), ShellError> {
    check_length(text)?;
    if deepest(0, text) > BRACKETS { fail(1, TOO_DEEP) } else { Ok(()) }
}

/// Checks the limits of a script before parsing. Tokens hold here-documents and quoted texts, but not comments.
fn check_tokens(tokens: &[Token], before: usize) -> Result<(), ShellError> {
    if before + tokens.len() > TOKENS {
        return fail(1, "the script has too many words");
    }
    let (mut open, mut cases, mut blocks) = (0_usize, 0_usize, 0_usize);
    for token in tokens {
        let text = token.to_str();
        match text {
            "case" => cases += 1,
            "esac" => cases = cases.saturating_sub(1),
            "(" | "{" => open += 1,
            ")" | "}" => open = open.saturating_sub(1),
            _ => {}
        }
        let inside = if text.len() > 1 { deepest(open + cases, text) } else { open + cases };
        if inside > BRACKETS {
            return fail(token.location().start.line, TOO_DEEP);
        }
        blocks += usize::from(OPENERS.contains(&text));
        if blocks > BLOCKS {
            return fail(token.location().start.line, "the script has too many blocks");
        }
    }
    Ok(())
}

/// Returns the number of brackets that are open at the deepest place of a text, if some are open before the text.
fn deepest(before: usize, text: &str) -> usize {
    let (mut open, mut deepest) = (before, before);
    for c in text.chars() {
        match c {
            '(' | '{' => open += 1,
            ')' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
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
