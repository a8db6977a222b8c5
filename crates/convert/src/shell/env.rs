//! The environment of a script at its start.

use std::path::PathBuf;

/// The environment of a script at its start.
pub struct ShellEnv<'a> {
    /// Name of the script, `$0`.
    pub name: &'a str,
    /// Arguments of the script, `$1` and the following.
    pub arguments: &'a [String],
    /// Working folder.
    pub folder: String,
    /// Folder of the script; `None` for a text that is not a file. Files for `source` and `bash FILE` must be below it or the working
    /// folder.
    pub script_folder: Option<PathBuf>,
    /// Looks up a variable that the script does not set itself.
    pub variable: &'a (dyn Fn(&str) -> Option<String> + Sync),
    /// Line of the program to report, if a script starts several; `None` for all programs.
    pub line: Option<usize>,
    /// Number of the launch to report, from 1, if a script starts several, as in a loop; `None` for all programs.
    pub launch: Option<usize>,
    /// True if programs count as successful and silent, as in a test that replaces them by stubs. Otherwise their results are
    /// unknown, except that Ascend devices count as missing.
    pub stubs: bool,
    /// Time for `$(date)`, in seconds since 1970.
    pub now: i64,
}

impl ShellEnv<'static> {
    /// Returns the environment of a text that is not a file: without arguments, variables and files.
    pub fn for_text(name: &'static str) -> Self {
        Self {
            name,
            arguments: &[],
            folder: "/".into(),
            script_folder: None,
            variable: &|_| None,
            line: None,
            launch: None,
            stubs: false,
            now: 0,
        }
    }
}
