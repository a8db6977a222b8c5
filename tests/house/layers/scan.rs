//! The items that a file of the crate declares and the paths that it names, read from its tokens.

/// A token: a word, `::`, or one other character.
pub(super) type Token = String;

/// One binding of a `use`, or one path in code.
#[derive(Debug, Clone)]
pub(super) struct Named {
    /// The module of the path: the names of inline modules below the file's own.
    pub within: Vec<String>,
    /// The path as written, `crate`, `super` and `self` included.
    pub path: Vec<String>,
    /// The name that a `use` binds; `*` for all names of a module; `None` for a path in code.
    pub binds: Option<String>,
    /// True for a `use` that is visible to other modules.
    pub is_public: bool,
}

/// One definition.
#[derive(Debug)]
pub(super) struct Definition {
    /// The names of inline modules around it.
    pub within: Vec<String>,
    /// The keyword: `struct`, `fn`, `impl` and so on.
    pub keyword: String,
    /// The word after the keyword.
    pub name: String,
}

/// Declarations and paths of one file.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Declared modules, each with the inline modules around it: modules with their own files, and inline ones.
    pub modules: Vec<(Vec<String>, String)>,
    /// Everything that is defined at the top of a module.
    pub defines: Vec<Definition>,
    /// Every `use`, and every path of two parts or more.
    pub named: Vec<Named>,
}

/// The tokens of a text, without comments, strings, characters and lifetimes.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        match at(i) {
            '/' if at(i + 1) == '/' => {
                while i < chars.len() && at(i) != '\n' {
                    i += 1;
                }
            }
            '/' if at(i + 1) == '*' => {
                while i < chars.len() && !(at(i) == '*' && at(i + 1) == '/') {
                    i += 1;
                }
                i += 2;
            }
            '"' => i = after_string(&chars, i + 1),
            // A character, unless it is a lifetime.
            '\'' if at(i + 1) == '\\' => {
                i += 3;
                while at(i) != '\'' {
                    i += 1;
                }
                i += 1;
            }
            '\'' if at(i + 2) == '\'' => i += 3,
            '\'' => {
                i += 1;
                while in_word(at(i)) {
                    i += 1;
                }
            }
            ':' if at(i + 1) == ':' => {
                tokens.push("::".to_owned());
                i += 2;
            }
            c if in_word(c) => {
                let start = i;
                while in_word(at(i)) {
                    i += 1;
                }
                let word: String = chars[start..i].iter().collect();
                let hashes = (i..).take_while(|i| at(*i) == '#').count();
                if word.ends_with('r') && word.len() <= 2 && at(i + hashes) == '"' {
                    let end: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
                    let rest: String = chars[i + hashes + 1..].iter().collect();
                    let length = rest.find(&end).map_or(0, |end| rest[..end].chars().count());
                    i += hashes + 1 + length + end.len();
                } else if at(i) == '"' && word == "b" {
                    i = after_string(&chars, i + 1);
                } else {
                    tokens.push(word);
                }
            }
            c => {
                if !c.is_whitespace() {
                    tokens.push(c.to_string());
                }
                i += 1;
            }
        }
    }
    tokens
}

/// The position after the closing quote of a string whose first character is at `i`.
fn after_string(chars: &[char], mut i: usize) -> usize {
    while i < chars.len() && chars[i] != '"' {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    i + 1
}

/// The owner of an open brace. Items in the braces of a macro call, such as `choices! { pub enum … }`, belong to the module.
#[derive(PartialEq)]
enum Brace {
    Module,
    Macro,
    Other,
}

/// Reads the text of one file.
pub(super) fn scan(text: &str) -> Scan {
    let tokens = tokens(text);
    let token = |i: usize| tokens.get(i).map_or("", String::as_str);
    let is_word = |i: usize| token(i).starts_with(|c: char| c.is_alphabetic() || c == '_');
    let mut scan = Scan::default();
    let mut within: Vec<String> = Vec::new();
    let mut open: Vec<Brace> = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        let at_top = !open.contains(&Brace::Other);
        match token(i) {
            "{" if i > 0 && token(i - 1) == "!" => open.push(Brace::Macro),
            "{" => open.push(Brace::Other),
            "}" if open.pop() == Some(Brace::Module) => drop(within.pop()),
            "mod" if is_word(i + 1) && matches!(token(i + 2), ";" | "{") => {
                scan.modules.push((within.clone(), token(i + 1).to_owned()));
                if token(i + 2) == "{" {
                    within.push(token(i + 1).to_owned());
                    open.push(Brace::Module);
                }
                i += 2;
            }
            "use" => {
                let end = (i..tokens.len()).find(|end| token(*end) == ";").unwrap_or(tokens.len());
                let mut bindings = Vec::new();
                use_tree(&tokens[i + 1..end], &[], &mut bindings);
                scan.named.extend(bindings.into_iter().map(|(path, name)| Named {
                    within: within.clone(),
                    path,
                    binds: Some(name),
                    is_public: i > 0 && matches!(token(i - 1), "pub" | ")"),
                }));
                i = end;
            }
            "struct" | "enum" | "trait" | "type" | "const" | "static" | "fn" | "union" if at_top && is_word(i + 1) => {
                scan.defines.push(Definition {
                    within: within.clone(),
                    keyword: token(i).to_owned(),
                    name: token(i + 1).to_owned(),
                });
                i += 1;
            }
            // Not the `impl` of a type, which follows `->` or `:`.
            "impl" if at_top && (i == 0 || matches!(token(i - 1), ";" | "}" | "]" | "unsafe")) => {
                scan.defines.push(Definition {
                    within: within.clone(),
                    keyword: "impl".to_owned(),
                    name: token(i + 1).to_owned(),
                });
            }
            "macro_rules" if token(i + 1) == "!" => {
                scan.defines.push(Definition {
                    within: within.clone(),
                    keyword: token(i).to_owned(),
                    name: token(i + 2).to_owned(),
                });
                i += 2;
            }
            // `pub(in crate::model)` is a visibility, not a use.
            "in" if i >= 2 && token(i - 1) == "(" && token(i - 2) == "pub" => {
                while token(i) != ")" {
                    i += 1;
                }
            }
            _ if is_word(i) && token(i + 1) == "::" && (i == 0 || token(i - 1) != "::") => {
                let mut path = vec![token(i).to_owned()];
                while token(i + 1) == "::" && is_word(i + 2) {
                    path.push(token(i + 2).to_owned());
                    i += 2;
                }
                if path.len() > 1 {
                    scan.named.push(Named { within: within.clone(), path, binds: None, is_public: false });
                }
            }
            _ => {}
        }
        i += 1;
    }
    scan
}

/// The paths of a `use` tree, each with the name that it binds.
fn use_tree(tokens: &[Token], prefix: &[String], found: &mut Vec<(Vec<String>, String)>) {
    let mut path = prefix.to_vec();
    let mut i = 0;
    while i < tokens.len() {
        match tokens[i].as_str() {
            "::" => {}
            "{" => {
                let mut start = i + 1;
                let mut depth = 0;
                for (j, token) in tokens.iter().enumerate().skip(i) {
                    match token.as_str() {
                        "{" => depth += 1,
                        "}" => depth -= 1,
                        _ => {}
                    }
                    if depth == 0 || depth == 1 && token == "," {
                        if j > start {
                            use_tree(&tokens[start..j], &path, found);
                        }
                        start = j + 1;
                    }
                }
                return;
            }
            "*" => {
                found.push((path, "*".to_owned()));
                return;
            }
            "as" => {
                found.push((path, tokens[i + 1].clone()));
                return;
            }
            // `use a::{self}` binds `a`.
            "self" if !prefix.is_empty() && path.len() == prefix.len() => {}
            word => path.push(word.to_owned()),
        }
        i += 1;
    }
    if let Some(last) = path.last().cloned() {
        found.push((path, last));
    }
}
