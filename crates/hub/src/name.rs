//! The grammar of names on the Hub: what is a name, and what is a path.
//!
//! ```text
//! REPO      = ["ORG/"]NAME
//! model     = REPO["@"REVISION["/"PART]] | "hf://"["models/"]REPO["@"REVISION]["/"PART]
//! data set  = REPO["@"REVISION["/"PART]] | "hf://datasets/"REPO["@"REVISION]["/"PART]
//! ```
//!
//! A `PART` needs `ORG/`. Of a data set it is a file (`data/train.parquet`), or a split, a configuration, or both (`main/train`); of a
//! model it is a folder in the repository. A revision is a branch, a tag or a commit; one with a slash is written `refs/pr/1`,
//! `refs/convert/parquet`, or with `%2F`.

use std::fmt;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Context, Result, bail, ensure};
use regex::Regex;

const PROTOCOL: &str = "hf://";
/// The branch that a repository has.
pub const MAIN: &str = "main";
/// The most characters of a repository's name.
const LONGEST: usize = 96;

/// Revisions with a slash that are told apart from what follows them.
static SPECIAL: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^refs/(?:convert/[\w.-]+|pr/\d+)").ok());

/// The kind of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Model,
    Dataset,
}

impl Kind {
    /// The word of the Hub's addresses.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Model => "models",
            Self::Dataset => "datasets",
        }
    }

    /// The kind in words.
    pub fn said(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Dataset => "data set",
        }
    }
}

/// The name of a repository on the Hub, or of a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HubName {
    pub kind: Kind,
    /// `org/name`, or `name`.
    pub repo: String,
    /// A branch, a tag or a commit; `None` for `main`.
    pub revision: Option<String>,
    /// What follows the repository and its revision, without slashes around it; empty for all of it.
    pub rest: String,
}

impl HubName {
    /// Reads the value of a setting that names a model or data: `None` if it is a path.
    ///
    /// What exists is a path, whatever it is called. So is what looks like one: it begins with `/`, `./`, `../` or `~`, ends in
    /// `.parquet`, `.json` or `.jsonl`, or is no name. `hf://` is never a path.
    ///
    /// # Errors
    /// If it begins with `hf://` and is no name of this kind.
    pub fn of(text: &str, kind: Kind) -> Result<Option<Self>> {
        if let Some(body) = text.strip_prefix(PROTOCOL) {
            return Self::of_address(body, kind)
                .map(Some)
                .with_context(|| format!("{text}: this is no name of a {}", kind.said()));
        }
        // Without a revision, three words are a path: data/arithmetic/model.
        let folders = !text.contains('@') && text.matches('/').count() > 1;
        let path =
            folders || text.starts_with(['/', '.', '~']) || [".parquet", ".json", ".jsonl"].iter().any(|end| text.ends_with(end));
        if path || Path::new(text).exists() {
            return Ok(None);
        }
        Ok(Self::parse(text, kind).ok())
    }

    /// Reads what follows `hf://`.
    fn of_address(body: &str, kind: Kind) -> Result<Self> {
        let (first, rest) = body.split_once('/').unwrap_or((body, ""));
        match (first, kind) {
            ("models", Kind::Model) | ("datasets", Kind::Dataset) => Self::parse(rest, kind),
            ("datasets", Kind::Model) => bail!("it names a data set"),
            ("models", Kind::Dataset) => bail!("it names a model"),
            ("spaces" | "buckets" | "kernels", _) => bail!("{first} are not read here"),
            (_, Kind::Model) => Self::parse(body, kind),
            (_, Kind::Dataset) => bail!("write {PROTOCOL}datasets/{body}"),
        }
    }

    /// Reads a name without `hf://`.
    ///
    /// # Errors
    /// If it is no name.
    pub fn parse(text: &str, kind: Kind) -> Result<Self> {
        let (repo, revision, rest) = match text.split_once('@') {
            Some((repo, after)) => {
                let (revision, rest) = split_revision(after);
                (repo.to_owned(), Some(revision.replace("%2F", "/").replace("%2f", "/")), rest)
            }
            None => {
                let mut parts = text.splitn(3, '/');
                let repo: Vec<&str> = parts.by_ref().take(2).collect();
                (repo.join("/"), None, parts.next().unwrap_or_default())
            }
        };
        check_repo(&repo)?;
        if let Some(revision) = &revision {
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-/+".contains(c);
            let ok = revision.chars().all(plain) && is_plain(revision) && revision.len() <= 255;
            ensure!(ok, "`{revision}` is no branch, tag or commit");
        }
        let rest = rest.trim_end_matches('/');
        ensure!(rest.is_empty() || is_plain(rest) && !rest.contains(['\\', '\0']), "`{rest}` is no path in a repository");
        ensure!(rest.is_empty() || repo.contains('/'), "a name with a part has the form ORG/NAME/PART");
        Ok(Self { kind, repo, revision, rest: rest.to_owned() })
    }

    /// The revision that is asked for.
    pub fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or(MAIN)
    }

    /// The name in a form that a setting of its kind takes for nothing else.
    pub fn address(&self) -> String {
        if self.kind == Kind::Model { self.to_string() } else { format!("{PROTOCOL}datasets/{self}") }
    }

    /// The name of the whole repository, without revision, as it stands in the addresses of its pages: `datasets/openai/gsm8k`.
    pub fn page(&self) -> String {
        match self.kind {
            Kind::Model => self.repo.clone(),
            Kind::Dataset => format!("datasets/{}", self.repo),
        }
    }
}

/// The name as it is written: `openai/gsm8k@main/train`.
impl fmt::Display for HubName {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.repo)?;
        let revision = self.revision.as_deref().or((!self.rest.is_empty()).then_some(MAIN));
        if let Some(revision) = revision {
            let special =
                SPECIAL.as_ref().is_some_and(|special| special.find(revision).is_some_and(|found| found.len() == revision.len()));
            let shown = if special { revision.to_owned() } else { revision.replace('/', "%2F") };
            write!(f, "@{shown}")?;
        }
        if self.rest.is_empty() { Ok(()) } else { write!(f, "/{}", self.rest) }
    }
}

/// The revision, and what follows it.
fn split_revision(text: &str) -> (&str, &str) {
    let special = SPECIAL.as_ref().and_then(|special| special.find(text)).map(|found| found.end());
    let end = special.filter(|end| text[*end..].is_empty() || text[*end..].starts_with('/'));
    let end = end.or_else(|| text.find('/')).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start_matches('/'))
}

/// True if no part between slashes is empty or leads elsewhere.
fn is_plain(path: &str) -> bool {
    path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Checks the name of a repository by the rules of `huggingface_hub`.
fn check_repo(repo: &str) -> Result<()> {
    let parts: Vec<&str> = repo.split('/').collect();
    let letter = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let ends = |part: &str| part.starts_with(['-', '.']) || part.ends_with(['-', '.']);
    let ok = parts.len() <= 2 && parts.iter().all(|part| !part.is_empty() && part.chars().all(letter) && !ends(part));
    let ok = ok && repo.len() <= LONGEST && !repo.contains("--") && !repo.contains("..") && !repo.ends_with(".git");
    ensure!(ok, "`{repo}` is no name of a repository, which has the form ORG/NAME");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_paths() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("there"), "").unwrap();
        let there = dir.path().join("there");
        for text in [
            there.to_str().unwrap(),
            "src/hub",
            "src",
            "/models/x",
            "./x",
            "../x/y",
            "~/x/y",
            ".",
            "x/train.parquet",
            "train.jsonl",
            "data/train.json",
            "a b/c",
            "x--y/z",
            "",
            "a//b",
            "org/../name",
            "name/",
            "org/name@",
            "org/name@a b",
            "org/name@../x",
            "gpt2@main/part",
            "data/arithmetic/model",
        ] {
            assert_eq!(HubName::of(text, Kind::Model).unwrap(), None, "{text}");
        }
        for (text, repo, revision, rest) in [
            ("Qwen/Qwen2.5-0.5B-Instruct", "Qwen/Qwen2.5-0.5B-Instruct", None, ""),
            ("gpt2", "gpt2", None, ""),
            ("gpt2@v1.0", "gpt2", Some("v1.0"), ""),
            ("openai/gsm8k@main/main", "openai/gsm8k", Some("main"), "main"),
            ("openai/gsm8k@refs/convert/parquet/main", "openai/gsm8k", Some("refs/convert/parquet"), "main"),
            ("openai/gsm8k@refs/pr/3", "openai/gsm8k", Some("refs/pr/3"), ""),
            ("o/n@feature%2Fx/train", "o/n", Some("feature/x"), "train"),
        ] {
            for (text, shown) in [(text.to_owned(), text), (format!("hf://datasets/{text}"), text)] {
                let name = HubName::of(&text, Kind::Dataset).unwrap().unwrap();
                let read = (name.repo.as_str(), name.revision.as_deref(), name.rest.as_str());
                assert_eq!((read, name.to_string().as_str()), ((repo, revision, rest), shown), "{text}");
            }
        }
        let whole = HubName::of("hf://datasets/openai/gsm8k/main/train", Kind::Dataset).unwrap().unwrap();
        assert_eq!((whole.revision.as_deref(), whole.to_string().as_str()), (None, "openai/gsm8k@main/main/train"));
        let file = HubName::of("hf://datasets/o/n@main/data/train-00000.parquet", Kind::Dataset).unwrap().unwrap();
        assert_eq!((file.rest.as_str(), file.page().as_str()), ("data/train-00000.parquet", "datasets/o/n"));
        let model = HubName::of("hf://models/o/n", Kind::Model).unwrap();
        assert_eq!(model, HubName::of("hf://o/n", Kind::Model).unwrap());
        for (text, kind, told) in [
            ("hf://datasets/o/n", Kind::Model, "it names a data set"),
            ("hf://models/o/n", Kind::Dataset, "it names a model"),
            ("hf://o/n", Kind::Dataset, "write hf://datasets/o/n"),
            ("hf://spaces/o/n", Kind::Model, "spaces are not read"),
            ("hf://o/n/../x", Kind::Model, "no path"),
            ("hf://", Kind::Model, "ORG/NAME"),
        ] {
            let error = format!("{:#}", HubName::of(text, kind).unwrap_err());
            assert!(error.starts_with(text) && error.contains(told), "{error}");
        }
    }
}
