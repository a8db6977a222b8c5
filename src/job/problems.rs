//! Problems of a run that are found before its start, reported together.

use std::fmt;

use anyhow::{Error, Result, anyhow};

use super::built_in::is_built_in;
use burnish_config::schema::Location;

/// Problems that do not depend on each other.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<Error>);

/// Several problems in one error, as a numbered list.
#[derive(Debug)]
struct ProblemList(Vec<String>);

impl std::error::Error for ProblemList {}

impl fmt::Display for ProblemList {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} problems before the start:", self.0.len())?;
        for (index, problem) in self.0.iter().enumerate() {
            write!(f, "\n  {}. {}", index + 1, problem.replace('\n', "\n     "))?;
        }
        Ok(())
    }
}

impl Problems {
    /// Returns the value, or keeps the problem.
    pub(crate) fn note<T>(&mut self, result: Result<T, impl Into<Error>>) -> Option<T> {
        result.map_err(|error| self.0.push(error.into())).ok()
    }

    /// Keeps a problem for each file that does not exist and is not built in, unless a problem of this key is known.
    pub(crate) fn note_missing_files(&mut self, key: &str, files: &[Location]) {
        if self.0.iter().any(|error| error.to_string().contains(&format!("`{key}`"))) {
            return;
        }
        let missing = files.iter().flat_map(Location::paths).filter(|path| !path.exists() && !is_built_in(path));
        self.0.extend(missing.map(|path| anyhow!("{key}: {}: no such file", path.display())));
    }

    /// Returns all problems as one error.
    ///
    /// # Errors
    /// If there is a problem. A single one is returned unchanged.
    pub(crate) fn end(mut self) -> Result<()> {
        let mut texts: Vec<String> = vec![];
        for error in &self.0 {
            match error.downcast_ref::<ProblemList>() {
                Some(list) => texts.extend(list.0.iter().cloned()),
                None => texts.push(format!("{error:#}")),
            }
        }
        match self.0.len() {
            0 => Ok(()),
            1 => Err(self.0.remove(0)),
            _ => Err(ProblemList(texts).into()),
        }
    }

    /// Returns the error of a value that is missing because of a problem.
    pub(crate) fn into_error(self) -> Error {
        self.end().err().unwrap_or_else(|| anyhow!("a problem was not named"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_problem_stays_and_several_are_numbered() {
        let mut inner = Problems::default();
        assert_eq!(inner.note(Ok::<_, Error>(1)), Some(1));
        inner.note_missing_files("data.val_files", &[Location::new("/no/such/file"), Location::new("/")]);
        let one = format!("{:#}", inner.into_error());
        assert_eq!(one, "data.val_files: /no/such/file: no such file");
        let mut outer = Problems::default();
        for list in [["a", "b\nc"], ["d", "e"]] {
            let mut inner = Problems::default();
            list.iter().for_each(|text| _ = inner.note(Err::<(), _>(anyhow!("{text}"))));
            outer.note(inner.end());
        }
        let all = "4 problems before the start:\n  1. a\n  2. b\n     c\n  3. d\n  4. e";
        assert_eq!(format!("{:#}", outer.into_error()), all);
        assert!(Problems::default().end().is_ok());
    }
}
