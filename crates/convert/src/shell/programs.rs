//! External programs: the list of their calls, and the output of those that are simple enough to predict.

use super::budget::{ELEMENT, TextBudget};
use super::machine::ShellMachine;
use super::patterns::{compiled, substituted};
use super::state::{ShellFlow, Status};
use super::text::{ProgramCall, ShellError, is_known, short};
use super::words::unescaped;
use burnish_util::strftime::strftime;
use std::collections::HashMap;

impl ShellMachine<'_> {
    /// Records an external command, and appends its output if it can be predicted.
    pub(super) fn program(&mut self, words: &[String], line: usize) -> Result<ShellFlow, ShellError> {
        if let Some(flow) = self.nested(words)? {
            return Ok(flow);
        }
        self.calls.push(ProgramCall { line, words: self.budget.copied(words) });
        self.step(0)?;
        let (output, status) = self.result(words);
        let output = match output {
            _ if self.state.output.is_none() => return Ok(self.finish(status)),
            Some(output) => output,
            None if self.env.stubs => String::new(),
            None => {
                self.unknown(format!("`{}` is not run", short(&super::text::replace_unknowns(&words.join(" "), &|_| "…".into()))))
            }
        };
        self.print(&output)?;
        Ok(self.finish(status))
    }

    pub(super) fn finish(&mut self, status: Status) -> ShellFlow {
        self.state.status = status;
        ShellFlow::Next
    }

    /// Predicts the output and the status of a program.
    fn result(&mut self, words: &[String]) -> (Option<String>, Status) {
        let rest: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let lines = |text: String| Some(text + "\n");
        let input = self.known_input();
        let budget = &self.budget.clone();
        let is_known_call = words.iter().all(|word| is_known(word));
        let ascend = (Some(String::new()), Status::Is(self.env.stubs));
        let output = match (words[0].rsplit('/').next().unwrap_or_default(), rest.as_slice()) {
            ("npu-smi" | "ascend-dmi", _) => return ascend,
            ("which", [name]) if name.contains("npu") => return ascend,
            (program, ["-c", code, ..]) if program.starts_with("python") && code.contains("torch_npu") => return ascend,
            ("mkdir" | "rm" | "cp" | "mv" | "ln" | "touch" | "chmod" | "sleep" | "flock", _) => {
                return (Some(String::new()), Status::Is(true));
            }
            ("rsync" | "tar" | "unzip" | "wget", _)
            | ("pip" | "pip3" | "git" | "apt" | "apt-get" | "conda" | "module" | "ray" | "hf" | "huggingface-cli", _) => {
                return (None, Status::Is(true));
            }
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
            ("whoami", []) | ("id", ["-un"]) => (self.env.variable)("USER").and_then(lines),
            ("uname", [] | ["-s"]) => lines("Linux".into()),
            ("cat" | "tee", []) | ("cat", ["-"]) => input,
            ("cat", [name]) => self.file(name),
            ("seq", ["-s", between, numbers @ ..]) => seq(numbers, between, budget),
            ("seq", ["-w", numbers @ ..]) => seq(numbers, "\n", budget).map(|text| {
                let width = text.lines().map(str::len).max().unwrap_or(0);
                text.lines().map(|line| format!("{line:0>width$}\n")).collect()
            }),
            ("seq", [flag, numbers @ ..]) if flag.starts_with("-s") => seq(numbers, &flag[2..], budget),
            ("seq", numbers) => seq(numbers, "\n", budget),
            ("tr", words) => input.and_then(|text| tr(&text, words, budget)),
            ("xargs", []) => input.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ") + "\n"),
            ("sed", words) => input.and_then(|text| sed(&text, words, budget)),
            ("expr", words) if words.len() > 1 => return (self.expr(words), Status::Is(true)),
            ("sort", []) => input.map(|text| {
                let mut lines: Vec<&str> = text.lines().collect();
                lines.sort_unstable();
                lines.iter().map(|line| format!("{line}\n")).collect()
            }),
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
        let status = if output.is_some() || self.env.stubs { Status::Is(true) } else { Status::Unknown };
        (output, status)
    }

    /// Returns the input, if it is known, and pays for it: with its copy, a program that lists the words of the input.
    fn known_input(&self) -> Option<String> {
        let input = self.state.input.as_ref().filter(|input| is_known(input))?;
        let spaces = input.bytes().filter(u8::is_ascii_whitespace).count();
        self.budget.take(input.len() + spaces * ELEMENT / 2)?;
        Some(input.clone())
    }

    /// Returns the result of `expr A + B`.
    fn expr(&mut self, words: &[&str]) -> Option<String> {
        let value = self.arithmetic(&words.join(" ")).ok()?;
        is_known(&value).then(|| value + "\n")
    }

    fn date(&self, words: &[&str]) -> Option<String> {
        let format = match words {
            [] => "+%a %b %e %H:%M:%S UTC %Y",
            [format] | ["-u", format] => format,
            _ => return None,
        };
        strftime(format.strip_prefix('+')?, self.env.now, 0).ok().map(|text| text + "\n")
    }
}

/// Joins a path to a folder, and resolves `.` and `..`.
pub(super) fn joined(folder: &str, path: &str) -> String {
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

/// The limit of the numbers of `seq`.
const MAX_NUMBERS: i64 = 10_000;

/// The limit of the characters in a set of `tr`.
const MAX_CHARACTERS: usize = 1000;

/// Runs `seq`: numbers with a text between them.
fn seq(numbers: &[&str], between: &str, budget: &TextBudget) -> Option<String> {
    let numbers: Vec<i64> = numbers.iter().map(|number| number.parse().ok()).collect::<Option<_>>()?;
    let (start, step, end) = match numbers.as_slice() {
        [end] => (1, 1, *end),
        [start, end] => (*start, 1, *end),
        [start, step, end] if *step > 0 => (*start, *step, *end),
        _ => return None,
    };
    let last = if end < start { -1 } else { end.checked_sub(start)? / step };
    if last >= MAX_NUMBERS {
        return None;
    }
    // A number has at most 20 characters.
    budget.take(usize::try_from(last + 1).ok()? * (20 + between.len() + ELEMENT))?;
    let all: Vec<String> = (0..=last).map(|index| (start + index * step).to_string()).collect();
    Some(all.join(between) + if all.is_empty() { "" } else { "\n" })
}

/// Runs `tr FROM TO` and `tr -d SET`.
fn tr(text: &str, words: &[&str], budget: &TextBudget) -> Option<String> {
    // A character has at most four bytes.
    budget.take(4 * text.len())?;
    match words {
        ["-d", gone] => {
            let gone: HashMap<char, usize> = positions(&set(gone)?);
            Some(text.chars().filter(|c| !gone.contains_key(c)).collect())
        }
        [from, to] if !from.starts_with("-") || from.len() == 1 => {
            let (from, to) = (positions(&set(from)?), set(to)?);
            let last = *to.last()?;
            let one = |c| from.get(&c).map_or(c, |at| *to.get(*at).unwrap_or(&last));
            Some(text.chars().map(one).collect())
        }
        _ => None,
    }
}

/// Returns the characters of a set such as `a-z_`; `None` if the set has too many, or an unknown class.
fn set(words: &str) -> Option<Vec<char>> {
    let named = words.replace("[:upper:]", "A-Z").replace("[:lower:]", "a-z").replace("[:digit:]", "0-9");
    let chars: Vec<char> = unescaped(&named).chars().collect();
    let (mut set, mut at) = (vec![], 0);
    while at < chars.len() {
        let is_range = chars.get(at + 1) == Some(&'-') && at + 2 < chars.len();
        let last = if is_range { chars[at + 2] } else { chars[at] };
        set.extend((chars[at]..=last).take(MAX_CHARACTERS + 1));
        if set.len() > MAX_CHARACTERS {
            return None;
        }
        at += if is_range { 3 } else { 1 };
    }
    (!named.contains("[:")).then_some(set)
}

/// Returns the first position of each character.
fn positions(set: &[char]) -> HashMap<char, usize> {
    set.iter().enumerate().rev().map(|(at, c)| (*c, at)).collect()
}

/// Runs `sed s/PATTERN/TEXT/`, with `g` and `-E`.
fn sed(text: &str, words: &[&str], budget: &TextBudget) -> Option<String> {
    let (is_extended, command) = match words {
        ["-E" | "-r", command] => (true, command),
        [command] | ["-e", command] => (false, command),
        _ => return None,
    };
    let mark = command.strip_prefix('s')?.chars().next()?;
    // A delimiter after a backslash is an ordinary character.
    let rest = command[1 + mark.len_utf8()..].replace(&format!("\\{mark}"), "\u{1}");
    let parts: Vec<String> = rest.split(mark).map(|part| part.replace('\u{1}', &mark.to_string())).collect();
    let [pattern, by, flags] = parts.as_slice() else { return None };
    // A basic regular expression needs a backslash before these operators.
    let is_operator = |c: char| "+?|(){}".contains(c);
    if !is_extended && (pattern.contains(is_operator) || by.contains(['\\', '&'])) && pattern.contains('\\')
        || by.contains(['&', '$'])
    {
        return None;
    }
    if !matches!(flags.as_str(), "" | "g") {
        return None;
    }
    let pattern: String = if is_extended {
        pattern.clone()
    } else {
        pattern.chars().flat_map(|c| is_operator(c).then_some('\\').into_iter().chain([c])).collect()
    };
    let by = regex::Regex::new(r"\\(\d)").ok()?.replace_all(by, "$${$1}").into_owned();
    let by = if by.contains("${") { by } else { by.replace("\\", "") };
    let regex = compiled(&pattern, text)?;
    let most = if flags == "g" { usize::MAX } else { 1 };
    let line = |line: &str| Some(substituted(&regex, line, &by, most, by.contains("${"), budget)? + "\n");
    text.lines().map(line).collect()
}

/// Runs `cut -dX -fN`.
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
