//! Python's `textwrap.wrap`, called without expanding tabs or replacing whitespace, as in Jinja's filter `wordwrap`.

/// Returns true for ASCII whitespace, where a line may break.
fn is_space(c: char) -> bool {
    matches!(c, '\t'..='\r' | ' ')
}

/// Breaks a text into lines of at most `width` characters. `long`: breaks words that are too long; `hyphens`: breaks words after
/// hyphens.
pub(crate) fn wrap(text: &str, width: usize, long: bool, hyphens: bool) -> Vec<String> {
    let mut chunks: Vec<Vec<char>> = chunks(text, hyphens).into_iter().rev().collect();
    let is_blank = |chunk: &[char]| chunk.iter().all(|c| burnish_util::python_text::is_space(*c));
    let mut lines = Vec::new();
    while let Some(first) = chunks.last() {
        if is_blank(first) && !lines.is_empty() {
            chunks.pop();
            if chunks.is_empty() {
                break;
            }
        }
        let (mut line, mut length) = (Vec::<Vec<char>>::new(), 0);
        while let Some(chunk) = chunks.pop_if(|chunk| length + chunk.len() <= width) {
            length += chunk.len();
            line.push(chunk);
        }
        if let Some(chunk) = chunks.last_mut().filter(|chunk| chunk.len() > width) {
            if long {
                let space = width.saturating_sub(length).max(usize::from(width < 1));
                let mut at = space;
                if hyphens && chunk.len() > space {
                    // Prefers a break after a hyphen that has other characters before it.
                    let hyphen = chunk[..space].iter().rposition(|c| *c == '-');
                    at = hyphen.filter(|&i| i > 0 && chunk[..i].iter().any(|c| *c != '-')).map_or(at, |i| i + 1);
                }
                let rest = chunk.split_off(at);
                line.push(std::mem::replace(chunk, rest));
            } else if line.is_empty() {
                line.extend(chunks.pop());
            }
        }
        line.pop_if(|chunk| is_blank(chunk));
        if !line.is_empty() {
            lines.push(line.concat().into_iter().collect());
        }
    }
    lines
}

/// Returns the pieces between which a line may break.
fn chunks(text: &str, hyphens: bool) -> Vec<Vec<char>> {
    let chars: Vec<char> = text.chars().collect();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < chars.len() {
        let end = match is_space(chars[at]) {
            true => at + chars[at..].iter().take_while(|c| is_space(**c)).count(),
            false if hyphens => piece_end(&chars, at),
            false => at + chars[at..].iter().take_while(|c| !is_space(**c)).count(),
        };
        out.push(chars[at..end].to_vec());
        at = end;
    }
    out
}

/// Returns the end of the piece that begins at `at`, following `wordsep_re` of Python's textwrap.
fn piece_end(chars: &[char], at: usize) -> usize {
    let is_word = |i: usize| chars.get(i).is_some_and(|c| burnish_util::python_text::is_word(*c));
    let is_punctuated = |i: usize| is_word(i) || chars.get(i).is_some_and(|c| "!\"'&.,?".contains(*c));
    let is_letter = |i: usize| is_word(i) && !chars[i].is_numeric();
    let is_hyphen = |i: usize| chars.get(i) == Some(&'-');
    let dashes = |i: usize| (i..chars.len()).take_while(|&i| is_hyphen(i)).count();
    // A dash between words.
    let run = dashes(at);
    if run >= 2 && at > 0 && is_punctuated(at - 1) && is_word(at + run) {
        return at + run;
    }
    for i in at + 1..=chars.len() {
        let ends = i == chars.len() || is_space(chars[i]);
        let before_dash = is_punctuated(i - 1) && dashes(i) >= 2 && is_word(i + dashes(i));
        let before = (i >= 2 && is_letter(i - 2) && is_letter(i - 1))
            || (i >= 3 && is_letter(i - 3) && is_hyphen(i - 2) && is_punctuated(i - 1));
        let after = is_letter(i + 1) && (is_letter(i + 2) || is_hyphen(i + 2) && is_letter(i + 3));
        if is_hyphen(i) && before && after {
            return i + 1;
        }
        if ends || before_dash {
            return i;
        }
    }
    chars.len()
}
