//! Programs: those whose output is known without running them, and shells in the words of others. Every other one is listed.

use super::machine::Machine;
use super::state::{Flow, Status};
use super::text::{Call, ShellError, is_known, short};
use crate::util::strftime::strftime;

const SHELLS: &[&str] = &["bash", "sh", "zsh", "dash"];

/// Programs that take a command as one word.
const TAKE_TEXT: &[&str] = &["ssh", "tmux", "screen", "su", "ray", "pdsh"];

impl Machine<'_> {
    /// Lists the call of a program, and takes its output where it is known.
    pub fn program(&mut self, words: &[String], line: usize) -> Result<Flow, ShellError> {
        if let Some(flow) = self.nested(words)? {
            return Ok(flow);
        }
        self.calls.push(Call { line, words: words.to_vec() });
        let (output, status) = self.result(words);
        let output = match output {
            _ if self.state.output.is_none() => return Ok(self.finish(status)),
            Some(output) => output,
            None => self.hole(format!("`{}` is not run", short(&super::text::replace_holes(&words.join(" "), &|_| "…".into())))),
        };
        self.print(&output)?;
        Ok(self.finish(status))
    }

    fn finish(&mut self, status: Status) -> Flow {
        self.state.status = status;
        Flow::Next
    }

    /// Reads what a shell in the words would run: `bash -c TEXT`, `srun … bash FILE`, `ssh HOST TEXT`.
    fn nested(&mut self, words: &[String]) -> Result<Option<Flow>, ShellError> {
        let name = |word: &String| word.rsplit('/').next().unwrap_or_default().to_string();
        let shell = words.iter().position(|word| SHELLS.contains(&name(word).as_str()));
        let (text, arguments) = if let Some(at) = shell {
            let rest = &words[at + 1..];
            let flags = rest.iter().take_while(|word| word.starts_with('-')).count();
            let is_text = rest[..flags].iter().any(|flag| !flag.starts_with("--") && flag.ends_with('c'));
            match rest.get(flags) {
                Some(text) if is_text => (Some(text.clone()), rest[flags + 1..].iter().skip(1)),
                Some(file) => (self.file(file), rest[flags + 1..].iter().skip(0)),
                None => (self.state.input.clone(), [].iter().skip(0)),
            }
        } else if TAKE_TEXT.contains(&name(&words[0]).as_str()) {
            let text = words.iter().find(|word| word.contains("verl") && word.contains(char::is_whitespace));
            (text.cloned(), [].iter().skip(0))
        } else {
            let is_path = words.len() == 1 || words[0].contains('/');
            (self.file(&words[0]).filter(|_| is_path && words[0].ends_with(".sh")), words[1..].iter().skip(0))
        };
        let Some(text) = text.filter(|text| is_known(text)) else { return Ok(None) };
        let arguments: Vec<String> = arguments.cloned().collect();
        let after = self.subshell(|machine| {
            machine.state.arguments = arguments;
            machine.inside(&text)
        })?;
        self.state.output = after.output;
        Ok(Some(self.finish(after.status)))
    }

    /// Returns the output and the status of a program.
    fn result(&mut self, words: &[String]) -> (Option<String>, Status) {
        let rest: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let lines = |text: String| Some(text + "\n");
        let input = self.state.input.clone().filter(|input| is_known(input));
        let is_known_call = words.iter().all(|word| is_known(word));
        let output = match (words[0].rsplit('/').next().unwrap_or_default(), rest.as_slice()) {
            // This program trains on a CPU or with CUDA: what is asked about Ascend's devices has no for an answer.
            ("npu-smi" | "ascend-dmi", _) => return (Some(String::new()), Status::Is(false)),
            (program, ["-c", code, ..]) if program.starts_with("python") && code.contains("torch_npu") => {
                return (Some(String::new()), Status::Is(false));
            }
            ("which", [name]) if name.contains("npu") => return (Some(String::new()), Status::Is(false)),
            _ if !is_known_call => None,
            ("dirname", [path]) => lines(dirname(path)),
            ("basename", [path]) => lines(basename(path).into()),
            ("basename", [path, suffix]) | ("basename", ["-s", suffix, path]) => {
                let name = basename(path);
                lines(name.strip_suffix(suffix).filter(|rest| !rest.is_empty()).unwrap_or(name).into())
            }
            ("realpath", [path]) | ("readlink", ["-f", path]) => lines(joined(&self.state.folder, path)),
            ("date", words) => self.date(words),
            ("nproc", []) => std::thread::available_parallelism().ok().and_then(|count| lines(count.to_string())),
            ("whoami", []) | ("id", ["-un"]) => (self.around.environment)("USER").and_then(lines),
            ("uname", [] | ["-s"]) => lines("Linux".into()),
            ("cat" | "tee", []) => input,
            ("seq", numbers) => seq(numbers),
            ("tr", [from, to]) if from.chars().count() == 1 && to.chars().count() == 1 => {
                input.map(|text| text.replace(from, to))
            }
            ("tr", ["-d", gone]) if !gone.contains(['[', '\\', '-']) => input.map(|text| text.replace(|c| gone.contains(c), "")),
            ("tr", ["a-z", "A-Z"] | ["[:lower:]", "[:upper:]"]) => input.map(|text| text.to_uppercase()),
            ("tr", ["A-Z", "a-z"] | ["[:upper:]", "[:lower:]"]) => input.map(|text| text.to_lowercase()),
            ("cut", words) => input.and_then(|text| cut(&text, words)),
            ("wc", ["-l"]) => input.map(|text| format!("{}\n", text.matches('\n').count())),
            ("wc", ["-w"]) => input.map(|text| format!("{}\n", text.split_whitespace().count())),
            ("head", ["-1" | "-n1"] | ["-n", "1"]) => {
                input.map(|text| text.lines().take(1).map(|line| format!("{line}\n")).collect())
            }
            ("tail", ["-1" | "-n1"] | ["-n", "1"]) => {
                input.map(|text| text.lines().last().map(|line| format!("{line}\n")).unwrap_or_default())
            }
            _ => None,
        };
        let status = if output.is_some() { Status::Is(true) } else { Status::Unknown };
        (output, status)
    }

    fn date(&self, words: &[&str]) -> Option<String> {
        let format = match words {
            [] => "+%a %b %e %H:%M:%S UTC %Y",
            [format] | ["-u", format] => format,
            _ => return None,
        };
        strftime(format.strip_prefix('+')?, self.around.now, 0).ok().map(|text| text + "\n")
    }
}

/// Returns a path below a folder, without `.` and `..`.
pub fn joined(folder: &str, path: &str) -> String {
    let whole = if path.starts_with('/') || !is_known(path) { path.to_string() } else { format!("{folder}/{path}") };
    let mut parts: Vec<&str> = vec![];
    for part in whole.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    let root = if whole.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

fn dirname(path: &str) -> String {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", _)) => "/".into(),
        Some((folder, _)) => folder.trim_end_matches('/').into(),
        None if path.starts_with('/') => "/".into(),
        None => ".".into(),
    }
}

fn basename(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

fn seq(numbers: &[&str]) -> Option<String> {
    let numbers: Vec<i64> = numbers.iter().map(|number| number.parse().ok()).collect::<Option<_>>()?;
    let (start, step, end) = match numbers.as_slice() {
        [end] => (1, 1, *end),
        [start, end] => (*start, 1, *end),
        [start, step, end] if *step > 0 => (*start, *step, *end),
        _ => return None,
    };
    let is_short = end.checked_sub(start)? / step < 10_000;
    let count = || (0..).map(|index| start + index * step).take_while(|number| *number <= end);
    is_short.then(|| count().map(|number| format!("{number}\n")).collect())
}

/// `cut -dX -fN`.
fn cut(text: &str, words: &[&str]) -> Option<String> {
    let all = words.join(" ");
    let after = |flag: &str| {
        let rest = all.split_once(flag)?.1;
        Some(rest.strip_prefix(' ').unwrap_or(rest))
    };
    let delimiter = after("-d")?.trim_matches('\'').chars().next()?;
    let field: usize = after("-f")?.split(' ').next()?.parse().ok()?;
    let line = |line: &str| {
        let part = if line.contains(delimiter) { line.split(delimiter).nth(field.checked_sub(1)?)? } else { line };
        Some(format!("{part}\n"))
    };
    text.lines().map(|one| line(one).or(Some("\n".into()))).collect()
}

/// Formats as `printf` does, with `%s`, `%d` and `%%`; `None` for other formats.
pub fn printf(words: &[String]) -> Option<String> {
    let (format, values) = words.split_first()?;
    let format = format.replace("\\n", "\n").replace("\\t", "\t");
    let mut values = values.iter();
    let mut out = String::new();
    loop {
        let before = values.len();
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            match (c, c == '%') {
                (_, false) => out.push(c),
                _ => match chars.next()? {
                    '%' => out.push('%'),
                    's' | 'd' | 'i' => out.push_str(values.next().map_or("", String::as_str)),
                    _ => return None,
                },
            }
        }
        if values.len() == 0 || values.len() == before {
            return Some(out);
        }
    }
}
