//! What `pylatexenc` makes of the LaTeX that most answers are written in; verl hands its output to sympy.

use std::iter::Peekable;
use std::str::Chars;

use crate::util::python_text::is_space;

/// Macros without arguments and the text they stand for.
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

/// How deep groups are read here. `pylatexenc` gives up, by Python's limit of recursion, from about 120 roots in each other on, 160 of
/// other macros and 250 braces alone.
const DEEPEST: usize = 100;
const DEEPEST_OF_ALL: usize = 250;

/// The text of `latex`; `None` if it has anything of which that is not known here.
pub fn text(latex: &str) -> Option<String> {
    let mut reader = Reader { rest: latex.chars().peekable(), depth: 0 };
    let text = reader.nodes(false)?;
    reader.rest.next().is_none().then_some(text)
}

/// Whether groups are nested so deeply that `pylatexenc` raises an error, whatever is in them. One that nothing closes counts too.
pub fn is_too_deep(latex: &str) -> bool {
    let mut chars = latex.chars();
    let mut depth = 0_usize;
    while let Some(c) = chars.next() {
        match c {
            // What is escaped opens nothing.
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
    /// How many groups are open.
    depth: usize,
}

impl Reader<'_> {
    /// Up to the end, or to the brace that closes this group, which is left.
    fn nodes(&mut self, group: bool) -> Option<String> {
        let mut out = String::new();
        while let Some(c) = self.rest.next_if(|c| *c != '}' || !group) {
            match c {
                '\\' => out.push_str(&self.macro_text()?),
                '{' => out.push_str(&self.group()?),
                // Comments, alignment, and what TeX sets as another character where it stands twice.
                '}' | '%' | '~' | '&' | '#' | '$' | '\n' | '`' | '\'' | '?' | '<' | '>' => return None,
                '-' if self.rest.peek() == Some(&'-') => return None,
                c => out.push(c),
            }
        }
        Some(out)
    }

    /// After its opening brace; `None` if it is too deep.
    fn group(&mut self) -> Option<String> {
        self.depth += 1;
        let text = (self.depth <= DEEPEST).then(|| self.nodes(true))??;
        self.depth -= 1;
        self.rest.next().map(|_| text)
    }

    /// After its backslash.
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
            // A box of TeX's own is dropped with what is in it.
            "mbox" => self.argument().map(|_| String::new()),
            name if WRAPPERS.contains(&name) => self.argument(),
            _ => None,
        }
    }

    /// A group, a macro without arguments, or one character.
    fn argument(&mut self) -> Option<String> {
        self.skip_spaces()?;
        match self.rest.next()? {
            '{' => self.group(),
            '\\' | '}' | '%' | '~' | '&' | '#' | '$' | '`' | '\'' | '-' | '?' | '<' | '>' => None,
            c => Some(c.to_string()),
        }
    }

    /// `None` before a letter that may belong to a macro's name, or white space of another kind.
    fn skip_spaces(&mut self) -> Option<()> {
        let is_unclear = |c: &char| !c.is_ascii() && (c.is_alphabetic() || c.is_whitespace()) || (*c != ' ' && is_space(*c));
        let is_next_unclear = self.rest.peek().is_some_and(is_unclear);
        while self.rest.next_if(|c| *c == ' ').is_some() {}
        (!is_next_unclear && !self.rest.peek().is_some_and(|c| is_space(*c))).then_some(())
    }
}
