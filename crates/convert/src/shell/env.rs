//! What a script finds when it starts.

use std::path::PathBuf;

/// What a script finds when it starts.
pub struct ShellEnv<'a> {
    /// `$0`.
    pub name: &'a str,
    /// `$1` and the following.
    pub arguments: &'a [String],
    /// The working folder.
    pub folder: String,
    /// The folder of the script: below it and the working folder, files may be read for `source` and `bash FILE`. `None` for a text that
    /// is no file.
    pub script_folder: Option<PathBuf>,
    /// Looks up a variable that the script does not set itself.
    pub variable: &'a (dyn Fn(&str) -> Option<String> + Sync),
    /// The line of the program that is meant, where a script starts several; `None` for all of them.
    pub line: Option<usize>,
    /// True if the programs that are not run are taken to succeed and print nothing, as where stubs stand in their place. Otherwise
    /// what they do is not known; but that there are no devices of Ascend's is.
    pub stubs: bool,
    /// The time of `$(date)`, in seconds since 1970.
    pub now: i64,
}

impl ShellEnv<'static> {
    /// Returns the env of a text that is no file: without arguments, variables and files.
    pub fn for_text(name: &'static str) -> Self {
        Self {
            name,
            arguments: &[],
            folder: "/".into(),
            script_folder: None,
            variable: &|_| None,
            line: None,
            stubs: false,
            now: 0,
        }
    }
}
