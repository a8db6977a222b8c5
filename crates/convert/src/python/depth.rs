//! The nesting of a script's text. Parser and evaluator recurse with it, and a deep script would exhaust their stack.

/// Limit of nested brackets and chained operators together.
const LIMIT: usize = 2000;

/// Words that are operators, or parts of an expression that nests.
const WORDS: [&str; 6] = ["not", "await", "lambda", "if", "else", "elif"];

/// Returns the first line whose expressions nest too deeply.
pub(super) fn too_deep(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    // Operators since the last separator, for each open bracket.
    let mut open: Vec<usize> = vec![0];
    let (mut at, mut line, mut depth) = (0, 1, 0_usize);
    let mut last = b' ';
    while let Some(byte) = bytes.get(at) {
        let mut length = 1;
        match byte {
            b'\n' => {
                line += 1;
                if open.len() == 1 {
                    (open[0], depth) = (0, 0);
                }
            }
            b'#' => length = bytes[at..].iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len() - at),
            b'"' | b'\'' => {
                length = string(&bytes[at..]);
                line += bytes[at..at + length].iter().filter(|byte| **byte == b'\n').count();
            }
            b'(' | b'[' | b'{' => {
                // Each call or index of a result, as in `f()()[0]`, nests once more.
                count(&mut open, &mut depth, [b')', b']'].contains(&last));
                open.push(0);
                depth += 1;
            }
            b')' | b']' | b'}' if open.len() > 1 => depth = depth.saturating_sub(1 + open.pop().unwrap_or(0)),
            b',' | b';' => {
                let count = open.last_mut().map(std::mem::take).unwrap_or(0);
                depth = depth.saturating_sub(count);
            }
            b'_' | b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => {
                let is_part = |byte: &u8| *byte == b'_' || byte.is_ascii_alphanumeric() || *byte >= 0x80;
                length = bytes[at..].iter().take_while(|byte| is_part(byte)).count();
                let is_operator = WORDS.iter().any(|word| word.as_bytes() == &bytes[at..at + length]);
                count(&mut open, &mut depth, is_operator);
            }
            byte => count(&mut open, &mut depth, b"+-*/%.<>=!&|^~@".contains(byte)),
        }
        if depth > LIMIT {
            return Some(line);
        }
        if !byte.is_ascii_whitespace() && !b"#\\".contains(byte) {
            last = *byte;
        }
        at += length;
    }
    None
}

fn count(open: &mut [usize], depth: &mut usize, is_operator: bool) {
    if let Some(last) = open.last_mut().filter(|_| is_operator) {
        *last += 1;
        *depth += 1;
    }
}

/// Returns the length of a string literal, with its quotes.
fn string(bytes: &[u8]) -> usize {
    let quote = bytes[0];
    let is_triple = bytes.starts_with(&[quote; 3]);
    let mut at = if is_triple { 3 } else { 1 };
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'\n' if !is_triple => return at,
            byte if *byte == quote && !is_triple => return at + 1,
            byte if *byte == quote && bytes[at..].starts_with(&[quote; 3]) => return at + 3,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nests_is_counted() {
        for part in ["()", "[0]", " ()", "\\\n()", "(#\n)", "()[0]", ".a", "+1", "(1)"] {
            assert!(too_deep(&format!("x = (f{})", part.repeat(3000))).is_some(), "{part}");
            assert_eq!(too_deep(&format!("x = (f{})", part.repeat(500))), None, "{part}");
        }
        for part in ["f()\n", "(), ", "f(), ", "[1], ", "(f)(), "] {
            assert_eq!(too_deep(&part.repeat(5000)), None, "{part}");
        }
    }
}
