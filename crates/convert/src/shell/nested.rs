//! Shells in the words of other programs: `bash -c TEXT`, `srun … bash FILE`, `sbatch FILE`, `ssh HOST TEXT`.

use super::launchers::VALUED_OF_SHELLS;
use super::limits;
use super::machine::ShellMachine;
use super::state::ShellFlow;
use super::target::{self, Place};
use super::text::{ShellError, is_known};

impl ShellMachine<'_> {
    /// Evaluates the script that a shell in the words would run; `None` without such a shell, or if its text is unknown.
    pub(super) fn nested(&mut self, words: &[String]) -> Result<Option<ShellFlow>, ShellError> {
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
        match target::locate(words)? {
            Place::Target(_) => None,
            Place::Input => Some((self.state.input.clone()?, vec![])),
            // A text for another program than a shell can have any form.
            Place::Text(text) => limits::parse(&text, 0).is_ok().then_some((text, vec![])),
            Place::File(at) => Some((self.file(&words[at])?, self.budget.copied(&words[at + 1..]))),
            Place::Shell(at) => self.text_of_shell(&words[at + 1..]),
        }
    }

    /// Returns the script of a shell with these words behind its name, and the script's arguments.
    fn text_of_shell(&self, words: &[String]) -> Option<(String, Vec<String>)> {
        let (mut at, mut is_text, mut is_input) = (0, false, false);
        while let Some(flag) = words.get(at).filter(|word| word.starts_with(['-', '+'])) {
            let has = |letter| !flag.starts_with("--") && flag.contains(letter);
            is_text |= has('c');
            is_input |= has('s') || flag == "-";
            let is_valued = VALUED_OF_SHELLS.contains(&flag.as_str()) || has('o') && flag.ends_with('o');
            at += 1 + usize::from(is_valued);
            if flag == "--" {
                break;
            }
        }
        let rest = words.get(at..).unwrap_or_default();
        match rest.split_first() {
            Some((text, arguments)) if is_text => {
                Some((text.clone(), self.budget.copied(arguments.get(1..).unwrap_or_default())))
            }
            Some((path, arguments)) if !is_input => Some((self.file(path)?, self.budget.copied(arguments))),
            _ => Some((self.state.input.clone()?, self.budget.copied(rest))),
        }
    }
}
