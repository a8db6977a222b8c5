//! The part of `pylatexenc` that converts most answers from LaTeX to text, which verl passes to sympy.

use std::iter::Peekable;
use std::str::Chars;

use burnish_util::python_text::is_space;

/// Macros without arguments, and their text.
const SYMBOLS: &[(&str, &str)] = &[
    ("pi", "π"),
    ("infty", "∞"),
    ("cup", "∪"),
    ("cdot", "·"),
    ("times", "×"),
    ("pm", "±"),
    ("le", "≤"),
    ("leq", "≤"),
    ("ge", "≥"),
    ("geq", "≥"),
    ("in", "∈"),
    ("alpha", "α"),
    ("beta", "β"),
    ("theta", "θ"),
    ("circ", "∘"),
    ("sin", "sin"),
    ("cos", "cos"),
    ("tan", "tan"),
    ("ln", "ln"),
    ("log", "log"),
    ("left", ""),
    ("right", ""),
    ("{", "{"),
    ("}", "}"),
    (",", " "),
    ("!", ""),
    (" ", " "),
    ("%", "%"),
];

/// Macros that are replaced by their only argument.
const WRAPPERS: &[&str] = &["text", "mathrm", "textbf", "boxed"];

/// Deepest nesting of groups that is parsed here. `pylatexenc` fails, by Python's recursion limit, from about 120 nested roots,
/// 160 nested other macros, or 250 nested braces.
const DEEPEST: usize = 100;
const DEEPEST_OF_ALL: usize = 250;

/// Returns the text of `latex`; `None` if it contains a construct whose conversion is not implemented here.
pub(super) fn text(latex: &str) -> Option<String> {
    let mut reader = Reader { rest: latex.chars().peekable(), depth: 0 };
    let text = reader.nodes(false)?;
    reader.rest.next().is_none().then_some(text)
}

/// Returns true if groups are nested so deeply that `pylatexenc` raises an error for any content. Unclosed groups count too.
pub(crate) fn is_too_deep(latex: &str) -> bool {
    let mut chars = latex.chars();
    let mut depth = 0_usize;
    while let Some(c) = chars.next() {
        match c {
            // An escaped brace does not open a group.
            '\\' => _ = chars.next(),
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST_OF_ALL {
            return true;
        }
    }
    false
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    /// Number of open groups.
    depth: usize,
}

impl Reader<'_> {
    /// Reads to the end, or up to the brace that closes this group. The brace is not consumed.
    fn nodes(&mut self, group: bool) -> Option<String> {
        let mut out = String::new();
        while let Some(c) = self.rest.next_if(|c| *c != '}' || !group) {
            match c {
                '\\' => out.push_str(&self.macro_text()?),
                '{' => out.push_str(&self.group()?),
                // Comments, alignment, and characters that TeX replaces when they occur twice.
                '}' | '%' | '~' | '&' | '#' | '$' | '\n' | '`' | '\'' | '?' | '<' | '>' => return None,
                '-' if self.rest.peek() == Some(&'-') => return None,
                c => out.push(c),
            }
        }
        Some(out)
    }

    /// Reads a group after its opening brace; `None` if it is nested too deeply.
    fn group(&mut self) -> Option<String> {
        self.depth += 1;
        let text = (self.depth <= DEEPEST).then(|| self.nodes(true))??;
        self.depth -= 1;
        self.rest.next().map(|_| text)
    }

    /// Reads a macro after its backslash.
    fn macro_text(&mut self) -> Option<String> {
        let first = self.rest.next()?;
        let mut name = first.to_string();
        if first.is_ascii_alphabetic() {
            while let Some(letter) = self.rest.next_if(char::is_ascii_alphabetic) {
                name.push(letter);
            }
            self.skip_spaces()?;
        }
        if let Some((_, text)) = SYMBOLS.iter().find(|(symbol, _)| *symbol == name) {
            return Some((*text).to_owned());
        }
        match name.as_str() {
            "frac" => Some(format!("{}/{}", self.argument()?, self.argument()?)),
            "sqrt" if self.rest.peek() != Some(&'[') => Some(format!("√({})", self.argument()?)),
            // An \mbox is dropped with its content.
            "mbox" => self.argument().map(|_| String::new()),
            name if WRAPPERS.contains(&name) => self.argument(),
            _ => None,
        }
    }

    /// Reads an argument: a group, a macro without arguments, or one character.
    fn argument(&mut self) -> Option<String> {
        self.skip_spaces()?;
        match self.rest.next()? {
            '{' => self.group(),
            '\\' | '}' | '%' | '~' | '&' | '#' | '$' | '`' | '\'' | '-' | '?' | '<' | '>' => None,
            c => Some(c.to_string()),
        }
    }

    /// Skips spaces; `None` before a letter that may belong to a macro's name, and before other white space.
    fn skip_spaces(&mut self) -> Option<()> {
        let is_unclear = |c: &char| !c.is_ascii() && (c.is_alphabetic() || c.is_whitespace()) || (*c != ' ' && is_space(*c));
        let is_next_unclear = self.rest.peek().is_some_and(is_unclear);
        while self.rest.next_if(|c| *c == ' ').is_some() {}
        (!is_next_unclear && !self.rest.peek().is_some_and(|c| is_space(*c))).then_some(())
    }
}
