//! Quotes command lines for copying into a shell.

use std::ffi::OsStr;
use std::path::Path;

use crate::platform::bytes_of;

/// Joins words into a command line, with quotes where a shell needs them.
pub fn command_line<S: AsRef<OsStr>>(words: &[S]) -> String {
    words.iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Quotes a path as one word.
pub fn word(path: &Path) -> String {
    quoted(path.as_os_str())
}

fn quoted(word: &OsStr) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(plain) => text.to_owned(),
        Some(text) if !text.chars().any(char::is_control) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => escaped(bytes_of(word)),
    }
}

/// Returns bash's and zsh's `$'…'`, for text with control characters and for bytes that are not UTF-8.
fn escaped(bytes: &[u8]) -> String {
    let mut word = String::from("$'");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' | '\\' => word.extend(['\\', c]),
                c if c.is_control() => c.to_string().bytes().for_each(|byte| word.push_str(&format!("\\x{byte:02x}"))),
                c => word.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| word.push_str(&format!("\\x{byte:02x}")));
    }
    word + "'"
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn shells_read_the_words_back() {
        let words = ["trainer", "a.b=[1,2]", "it's", "", "x=$HOME", "ü", "my proj/Grüße"];
        assert_eq!(command_line(&words), r"trainer 'a.b=[1,2]' 'it'\''s' '' 'x=$HOME' ü 'my proj/Grüße'");
        let mut words: Vec<OsString> = words.map(OsString::from).to_vec();
        words.extend(["~", "a\nb", "tab\t'\\", "*", "!x", "a;b", "#c", "\u{85}1"].map(OsString::from));
        words.push(OsString::from_vec(vec![b'a', 0xff, b'1', b'\'', 0xc3]));
        let script = format!("printf '%s\\0' {}", command_line(&words));
        let message = Command::new("bash").args(["--norc", "-c", &script]).env("LC_ALL", "C.UTF-8").output().unwrap().stdout;
        let expected: Vec<u8> = words.iter().flat_map(|word| [bytes_of(word), b"\0"].concat()).collect();
        assert_eq!(message, expected, "{script}");
    }
}
