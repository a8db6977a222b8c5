//! Shells in the words of other programs: `bash -c TEXT`, `srun … bash FILE`, `sbatch FILE`, `ssh HOST TEXT`.

use super::machine::Machine;
use super::state::Flow;
use super::text::{ShellError, is_known};

const SHELLS: &[&str] = &["bash", "sh", "zsh", "dash"];

/// Programs that take a command as one word.
const TAKE_TEXT: &[&str] = &["ssh", "tmux", "screen", "su", "ray", "pdsh"];

/// Names in a word that make it a command to evaluate.
const LIBRARIES: &[&str] = &["verl", "openrlhf", "trl"];

impl Machine<'_> {
    /// Evaluates the script that a shell in the words would run; `None` without such a shell, or if its text is unknown.
    pub(super) fn nested(&mut self, words: &[String]) -> Result<Option<Flow>, ShellError> {
        let Some((text, arguments)) = self.text_in(words).filter(|(text, _)| is_known(text)) else { return Ok(None) };
        let after = self.subshell(|machine| {
            machine.state.arguments = arguments;
            machine.inside(&text)
        })?;
        self.state.output = after.output;
        Ok(Some(self.finish(after.status)))
    }

    /// Returns the script in the words, and its arguments.
    fn text_in(&self, words: &[String]) -> Option<(String, Vec<String>)> {
        let name = |word: &String| word.rsplit('/').next().unwrap_or_default().to_string();
        if let Some(at) = words.iter().position(|word| SHELLS.contains(&name(word).as_str())) {
            let rest = &words[at + 1..];
            let flags = rest.iter().take_while(|word| word.starts_with('-')).count();
            let is_text = rest[..flags].iter().any(|flag| !flag.starts_with("--") && flag.ends_with('c'));
            let Some(first) = rest.get(flags) else { return Some((self.state.input.clone()?, vec![])) };
            let arguments = &rest[flags + 1..];
            return match is_text {
                // The first argument is `$0`.
                true => Some((first.clone(), arguments.iter().skip(1).cloned().collect())),
                false => Some((self.file(first)?, arguments.to_vec())),
            };
        }
        let program = name(&words[0]);
        let text =
            || words.iter().find(|word| LIBRARIES.iter().any(|name| word.contains(name)) && word.contains(char::is_whitespace));
        if TAKE_TEXT.contains(&program.as_str()) {
            return Some((text()?.clone(), vec![]));
        }
        if program == "sbatch" {
            if words.iter().any(|word| word.starts_with("--wrap")) {
                return Some((text()?.trim_start_matches("--wrap=").to_string(), vec![]));
            }
            return match words.iter().skip(1).position(|word| !word.starts_with('-')) {
                Some(at) => Some((self.file(&words[at + 1])?, words[at + 2..].to_vec())),
                None => Some((self.state.input.clone()?, vec![])),
            };
        }
        let is_path = words.len() == 1 || words[0].contains('/');
        let is_script = is_path && words[0].ends_with(".sh");
        Some((self.file(&words[0]).filter(|_| is_script)?, words[1..].to_vec()))
    }
}
