//! Words: quotes, braces and substitutions.

use super::budget::{ELEMENT, TextBudget, bytes_of};
use super::limits;
use super::machine::ShellMachine;
use super::patterns::escaped;
use super::pieces::{ExpansionMode, Fields};
use super::state::Status;
use super::text::{ShellError, short};
use brush_parser::ParserOptions;
use brush_parser::ast::Word;
use brush_parser::word::{
    self, BraceExpressionMember as Member, BraceExpressionOrText as Brace, TildeExpr, WordPiece, WordPieceWithSource,
};

/// The limit of words from the braces of one word.
const MAX_WORDS: usize = 1000;

impl ShellMachine<'_> {
    /// Expands a word into words.
    pub(super) fn fields(&mut self, word: &Word) -> Result<Vec<String>, ShellError> {
        self.at(word.loc.as_ref());
        let mut fields = vec![];
        // `~` in a word such as `NAME=~/x` is expanded as in an assignment.
        let value = match word.value.split_once("=~") {
            Some((name, rest)) if is_name(name) && (rest.is_empty() || rest.starts_with('/')) => {
                format!("{name}={}{rest}", self.variable("HOME"))
            }
            _ => word.value.clone(),
        };
        for text in self.braces(&value)? {
            fields.extend(self.expanded(&text, ExpansionMode::Split)?);
        }
        Ok(fields)
    }

    /// Expands a word without splitting.
    pub(super) fn text(&mut self, word: &Word) -> Result<String, ShellError> {
        self.at(word.loc.as_ref());
        Ok(self.expanded(&word.value, ExpansionMode::Whole)?.join(" "))
    }

    /// Expands a text as in double quotes; quotes inside are ordinary characters.
    pub(crate) fn quoted_text(&mut self, text: &str) -> Result<String, ShellError> {
        self.checked(text)?;
        let Ok(pieces) = word::parse_heredoc(text, &ParserOptions::default()) else { return self.unreadable(text) };
        let mut fields = Fields::new(&self.budget);
        self.pieces(&pieces, ExpansionMode::Whole, &mut fields)?;
        Ok(fields.finish().join(" "))
    }

    fn unreadable<T>(&self, text: &str) -> Result<T, ShellError> {
        self.fail(&format!("`{}` is not valid shell syntax", short(text)))
    }

    /// Counts a text, and checks it for the parser.
    fn checked(&mut self, text: &str) -> Result<(), ShellError> {
        self.step(text.len())?;
        limits::check(text).or_else(|error| self.fail(&error.message))
    }

    /// Expands a text into words.
    pub(super) fn expanded(&mut self, text: &str, mode: ExpansionMode) -> Result<Vec<String>, ShellError> {
        let mut fields = Fields::new(&self.budget);
        self.expand(text, mode, &mut fields)?;
        Ok(fields.finish())
    }

    pub(super) fn expand(&mut self, text: &str, mode: ExpansionMode, fields: &mut Fields) -> Result<(), ShellError> {
        self.checked(text)?;
        let Ok(pieces) = word::parse(text, &ParserOptions::default()) else { return self.unreadable(text) };
        let outer = std::mem::replace(&mut self.is_quoted, false);
        let result = self.deeper(|machine| machine.pieces(&pieces, mode, fields));
        self.is_quoted = outer;
        result
    }

    /// Appends the word after `:-` inside double quotes: drops inner double quotes, and keeps `'` as an ordinary character.
    pub(crate) fn expand_quoted(&mut self, text: &str, mode: ExpansionMode, fields: &mut Fields) -> Result<(), ShellError> {
        self.expand(&format!("\"{}\"", without_quotes(text)), mode, fields)
    }

    fn pieces(&mut self, pieces: &[WordPieceWithSource], mode: ExpansionMode, fields: &mut Fields) -> Result<(), ShellError> {
        self.step(pieces.len() * ELEMENT)?;
        for WordPieceWithSource { piece, .. } in pieces {
            match piece {
                WordPiece::Text(text) | WordPiece::SingleQuotedText(text) => fields.push(text),
                WordPiece::AnsiCQuotedText(text) => fields.push(&unescaped(text)),
                WordPiece::EscapeSequence(text) => fields.push(text.strip_prefix('\\').unwrap_or(text).trim_start_matches('\n')),
                WordPiece::TildeExpansion(tilde) => {
                    let home = match tilde {
                        TildeExpr::Home => self.variable("HOME"),
                        TildeExpr::WorkingDir => self.state.folder.clone(),
                        TildeExpr::UserHome(user) => format!("~{user}"),
                        _ => self.unknown("`~` with a number is not supported".into()),
                    };
                    fields.push(&home);
                }
                WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
                    // `"$@"` without arguments does not result in a word.
                    let is_list = matches!(inner.as_slice(), [one] if is_list(&one.piece));
                    if !is_list || mode == ExpansionMode::Whole {
                        fields.push("");
                    }
                    let outer = std::mem::replace(&mut self.is_quoted, true);
                    let result =
                        self.pieces(inner, if mode == ExpansionMode::Whole { mode } else { ExpansionMode::Quoted }, fields);
                    self.is_quoted = outer;
                    result?;
                }
                WordPiece::ParameterExpansion(parameter) => self.parameter(parameter, mode, fields)?,
                WordPiece::CommandSubstitution(command) | WordPiece::BackquotedCommandSubstitution(command) => {
                    let output = self.output_of(command)?;
                    match mode {
                        ExpansionMode::Split => fields.split(&output, &self.separators()),
                        _ => fields.push(&output),
                    }
                }
                WordPiece::ArithmeticExpression(formula) => {
                    let value = self.arithmetic(&formula.value)?;
                    fields.push(&value);
                }
            }
        }
        Ok(())
    }

    /// Returns the output of `$(…)`.
    fn output_of(&mut self, command: &str) -> Result<String, ShellError> {
        self.step(command.len())?;
        let calls = self.calls.len();
        let after = self.subshell(|machine| {
            machine.state.output = Some(String::new());
            machine.state.input = None;
            machine.inside(command)
        })?;
        self.calls.truncate(calls);
        self.substituted = Some(after.status);
        let output = after.output.unwrap_or_default();
        self.step(output.len())?;
        Ok(output.trim_end_matches('\n').to_string())
    }

    /// Returns a word as a pattern; its quoted parts match literally.
    pub(super) fn pattern(&mut self, word: &Word) -> Result<String, ShellError> {
        self.at(word.loc.as_ref());
        self.pattern_text(&word.value)
    }

    pub(crate) fn pattern_text(&mut self, text: &str) -> Result<String, ShellError> {
        self.checked(text)?;
        let Ok(pieces) = word::parse(text, &ParserOptions::default()) else { return self.unreadable(text) };
        let mut pattern = String::new();
        for one in &pieces {
            let mut fields = Fields::new(&self.budget);
            self.pieces(std::slice::from_ref(one), ExpansionMode::Whole, &mut fields)?;
            let text = fields.finish().join(" ");
            let is_active = matches!(one.piece, WordPiece::Text(_) | WordPiece::ParameterExpansion(_));
            pattern.push_str(&if is_active { text } else { escaped(&text) });
        }
        Ok(pattern)
    }

    /// Expands the braces of `a{b,c}` and `{1..3}`, before all other expansions.
    fn braces(&mut self, text: &str) -> Result<Vec<String>, ShellError> {
        let is_brace = text.contains('{') && (text.contains(',') || text.contains(".."));
        if !is_brace {
            return Ok(vec![text.to_string()]);
        }
        self.checked(text)?;
        let parts = word::parse_brace_expansions(text, &ParserOptions::default());
        let Ok(Some(parts)) = parts else { return Ok(vec![text.to_string()]) };
        match combined(&parts, &self.budget) {
            Some(words) => Ok(words),
            None => self.fail("the braces expand to too many words"),
        }
    }

    /// Sets the status of a condition.
    pub(crate) fn set_status(&mut self, holds: Option<bool>) {
        self.state.code = 1;
        self.state.status = holds.map_or(Status::Unknown, Status::Is);
    }
}

/// Removes double quotes from a text inside double quotes, except inside `$(…)` and `${…}`.
fn without_quotes(text: &str) -> String {
    let (mut out, mut open, mut before, mut is_escaped) = (String::new(), 0_usize, ' ', false);
    for c in text.chars() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '(' | '{' if before == '$' || open > 0 => open += 1,
            ')' | '}' => open = open.saturating_sub(1),
            '"' if open == 0 => {
                before = c;
                continue;
            }
            _ => {}
        }
        before = c;
        out.push(c);
    }
    out
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_list(piece: &WordPiece) -> bool {
    use word::{Parameter, ParameterExpr, SpecialParameter};
    let of = match piece {
        WordPiece::ParameterExpansion(
            ParameterExpr::Parameter { parameter, .. }
            | ParameterExpr::Substring { parameter, .. }
            | ParameterExpr::UseDefaultValues { parameter, .. }
            | ParameterExpr::UseAlternativeValue { parameter, .. },
        ) => parameter,
        WordPiece::ParameterExpansion(ParameterExpr::MemberKeys { concatenate: false, .. }) => return true,
        _ => return false,
    };
    matches!(
        of,
        Parameter::Special(SpecialParameter::AllPositionalParameters { concatenate: false })
            | Parameter::NamedWithAllIndices { concatenate: false, .. }
    )
}

/// Returns the words of nested braces; `None` if there are too many, or if they are too long.
fn combined(parts: &[Brace], budget: &TextBudget) -> Option<Vec<String>> {
    let mut words = vec![String::new()];
    for part in parts {
        let choices = match part {
            Brace::Text(text) => vec![text.clone()],
            Brace::Expr(members) => {
                let mut choices = vec![];
                for member in members {
                    choices.extend(match member {
                        Member::NumberSequence { start, end, increment } => {
                            numbers(*start, *end, *increment)?.map(|number| number.to_string()).collect()
                        }
                        Member::CharSequence { start, end, increment } => {
                            let codes = numbers(i64::from(u32::from(*start)), i64::from(u32::from(*end)), *increment)?;
                            codes.filter_map(|code| char::from_u32(code as u32)).map(String::from).collect()
                        }
                        Member::Child(parts) => combined(parts, budget)?,
                    });
                    if choices.len() > MAX_WORDS {
                        return None;
                    }
                }
                choices
            }
        };
        if words.len() * choices.len() > MAX_WORDS {
            return None;
        }
        budget.take(bytes_of(&words) * choices.len() + bytes_of(&choices) * words.len())?;
        words = words.iter().flat_map(|word| choices.iter().map(move |choice| format!("{word}{choice}"))).collect();
    }
    Some(words)
}

/// Counts from one number to another.
fn numbers(start: i64, end: i64, increment: i64) -> Option<impl Iterator<Item = i64>> {
    let step = i64::try_from(increment.unsigned_abs().max(1)).ok()?;
    let count = end.checked_sub(start)?.checked_abs()? / step + 1;
    let sign = if end < start { -1 } else { 1 };
    (count <= MAX_WORDS as i64).then(|| (0..count).map(move |index| start + sign * step * index))
}

/// Replaces the escapes of `$'…'` and `echo -e`.
pub(super) fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let escape = if c == '\\' { chars.next() } else { None };
        match escape {
            None => out.push(c),
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some(c @ ('\\' | '\'' | '"')) => out.push(c),
            Some(other) => out.extend(['\\', other]),
        }
    }
    out
}
