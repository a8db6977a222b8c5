//! The grammar of names on the Hub, and the rules that tell names from paths.
//!
//! ```text
//! REPO      = ["ORG/"]NAME
//! model     = REPO["@"REVISION["/"PART]] | "hf://"["models/"]REPO["@"REVISION]["/"PART]
//! data set  = REPO["@"REVISION["/"PART]] | "hf://datasets/"REPO["@"REVISION]["/"PART]
//! ```
//!
//! A `PART` needs `ORG/`. The part of a data set is a file (`data/train.parquet`), or a split, a configuration, or both
//! (`main/train`). The part of a model is a folder in the repository. A revision is a branch, a tag or a commit. A slash in a
//! revision is written `%2F`, except in `refs/pr/1` and `refs/convert/parquet`.

use std::fmt;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Context, Result, bail, ensure};
use regex::Regex;

use burnish_util::data_format::data_format;

const PROTOCOL: &str = "hf://";
/// The default branch of every repository.
pub(crate) const MAIN: &str = "main";
/// The length limit of a repository's name.
const LONGEST: usize = 96;

/// Endings of data files that are not read; their reader says so.
const UNREAD_FILES: &[&str] = &[".tsv", ".arrow", ".gz", ".txt"];

/// Revisions that may be written with slashes.
static SPECIAL: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^refs/(?:convert/[\w.-]+|pr/\d+)").ok());

/// The kind of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RepoKind {
    Model,
    Dataset,
}

impl RepoKind {
    /// Returns the word in the Hub's addresses.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Model => "models",
            Self::Dataset => "datasets",
        }
    }

    /// Returns the kind in words.
    pub fn label(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Dataset => "data set",
        }
    }
}

/// The name of a repository on the Hub, or of a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HubName {
    pub kind: RepoKind,
    /// Repository: `org/name` or `name`.
    pub repo: String,
    /// Branch, tag or commit; `None` for `main`.
    pub revision: Option<String>,
    /// Part of the repository, without slashes around it; empty for the whole repository.
    pub rest: String,
}

impl HubName {
    /// Reads the value of a setting for a model or data; `None` for a path.
    ///
    /// A text is a path if it exists, begins with `/`, `./`, `../` or `~`, ends like a data file, or is not a valid name. A text with `hf://` is never a path.
    ///
    /// # Errors
    /// If it begins with `hf://` and is not a name of this kind.
    pub fn from_setting(text: &str, kind: RepoKind) -> Result<Option<Self>> {
        if let Some(body) = text.strip_prefix(PROTOCOL) {
            return Self::from_address(body, kind)
                .map(Some)
                .with_context(|| format!("{text}: this is not the name of a {}", kind.label()));
        }
        // Without a revision, three words are a path: `data/arithmetic/model`.
        let folders = !text.contains('@') && text.matches('/').count() > 1;
        let is_file = data_format(text).is_some() || UNREAD_FILES.iter().any(|end| text.ends_with(end));
        let path = folders || text.starts_with(['/', '.', '~']) || is_file;
        if path || Path::new(text).exists() {
            return Ok(None);
        }
        Ok(Self::parse(text, kind).ok())
    }

    /// Reads the text after `hf://`.
    fn from_address(body: &str, kind: RepoKind) -> Result<Self> {
        let (first, rest) = body.split_once('/').unwrap_or((body, ""));
        match (first, kind) {
            ("models", RepoKind::Model) | ("datasets", RepoKind::Dataset) => Self::parse(rest, kind),
            ("datasets", RepoKind::Model) => bail!("this names a data set, not a model"),
            ("models", RepoKind::Dataset) => bail!("this names a model, not a data set"),
            ("spaces" | "buckets" | "kernels", _) => bail!("{first} are not supported"),
            (_, RepoKind::Model) => Self::parse(body, kind),
            (_, RepoKind::Dataset) => bail!("write {PROTOCOL}datasets/{body}"),
        }
    }

    /// Reads a name without `hf://`.
    ///
    /// # Errors
    /// If it is not a valid name.
    pub fn parse(text: &str, kind: RepoKind) -> Result<Self> {
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
            ensure!(ok, "`{revision}` is not a branch, tag or commit");
        }
        let rest = rest.trim_end_matches('/');
        ensure!(rest.is_empty() || is_plain(rest) && !rest.contains(['\\', '\0']), "`{rest}` is not a path in a repository");
        ensure!(rest.is_empty() || repo.contains('/'), "a name with a part must have the form ORG/NAME/PART");
        Ok(Self { kind, repo, revision, rest: rest.to_owned() })
    }

    /// Returns the revision, `main` by default.
    pub fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or(MAIN)
    }

    /// Returns the name in a form that a setting cannot mistake for a path or another kind.
    pub fn address(&self) -> String {
        if self.kind == RepoKind::Model { self.to_string() } else { format!("{PROTOCOL}datasets/{self}") }
    }

    /// Returns the path of the repository's page, without revision: `datasets/openai/gsm8k`.
    pub fn page(&self) -> String {
        match self.kind {
            RepoKind::Model => self.repo.clone(),
            RepoKind::Dataset => format!("datasets/{}", self.repo),
        }
    }
}

/// Writes the name in its short form: `openai/gsm8k@main/train`.
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

/// Splits a text into the revision and the part after it.
fn split_revision(text: &str) -> (&str, &str) {
    let special = SPECIAL.as_ref().and_then(|special| special.find(text)).map(|found| found.end());
    let end = special.filter(|end| text[*end..].is_empty() || text[*end..].starts_with('/'));
    let end = end.or_else(|| text.find('/')).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start_matches('/'))
}

/// Returns true if no part between slashes is empty, `.` or `..`.
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
    ensure!(ok, "`{repo}` is not the name of a repository, ORG/NAME");
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
            "src/lib.rs",
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
            assert_eq!(HubName::from_setting(text, RepoKind::Model).unwrap(), None, "{text}");
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
                let name = HubName::from_setting(&text, RepoKind::Dataset).unwrap().unwrap();
                let read = (name.repo.as_str(), name.revision.as_deref(), name.rest.as_str());
                assert_eq!((read, name.to_string().as_str()), ((repo, revision, rest), shown), "{text}");
            }
        }
        let named = HubName::from_setting("hf://datasets/openai/gsm8k/main/train", RepoKind::Dataset).unwrap().unwrap();
        assert_eq!((named.revision.as_deref(), named.to_string().as_str()), (None, "openai/gsm8k@main/main/train"));
        let file = HubName::from_setting("hf://datasets/o/n@main/data/train-00000.parquet", RepoKind::Dataset).unwrap().unwrap();
        assert_eq!((file.rest.as_str(), file.page().as_str()), ("data/train-00000.parquet", "datasets/o/n"));
        let model = HubName::from_setting("hf://models/o/n", RepoKind::Model).unwrap();
        assert_eq!(model, HubName::from_setting("hf://o/n", RepoKind::Model).unwrap());
        for (text, kind, expected) in [
            ("hf://datasets/o/n", RepoKind::Model, "names a data set"),
            ("hf://models/o/n", RepoKind::Dataset, "names a model"),
            ("hf://o/n", RepoKind::Dataset, "write hf://datasets/o/n"),
            ("hf://spaces/o/n", RepoKind::Model, "spaces are not"),
            ("hf://o/n/../x", RepoKind::Model, "not a path"),
            ("hf://", RepoKind::Model, "ORG/NAME"),
        ] {
            let error = format!("{:#}", HubName::from_setting(text, kind).unwrap_err());
            assert!(error.starts_with(text) && error.contains(expected), "{error}");
        }
    }
}
