//! The problems of a configuration, and the message that reports all of them at once.

use super::provenance::Origin;
use super::tree::Node;
use std::fmt;

/// One problem of a configuration: the message, the place in the file or override, and advice.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// The dotted key of the problem; empty if the problem is not about a key.
    pub key: String,
    pub message: String,
    pub origin: Option<Origin>,
    pub help: Option<String>,
}

impl Problem {
    pub fn new(key: &str, message: impl Into<String>) -> Self {
        Self { key: key.to_string(), message: message.into(), origin: None, help: None }
    }

    pub fn at(mut self, origin: &Origin) -> Self {
        self.origin = Some(origin.clone());
        self
    }

    /// Adds the place of the value, and the key that the value was taken from.
    pub fn with_value(mut self, node: &Node) -> Self {
        if let Some(through) = &node.through {
            self.message += &format!(" (the value comes from `{through}`)");
        }
        self.at(&node.origin)
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(origin) = &self.origin {
            write!(f, "\n  --> {origin}")?;
            for line in origin.snippet().lines() {
                write!(f, "\n      {}", line.trim_end())?;
            }
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {}", help.replace('\n', "\n        "))?;
        }
        Ok(())
    }
}

/// All problems of a configuration that cannot be used. Its `Display` is the complete message.
#[derive(Debug)]
pub struct ConfigError {
    pub problems: Vec<Problem>,
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.problems.len() > 1 {
            writeln!(f, "{} problems with the configuration\n", self.problems.len())?;
        }
        let shown: Vec<String> = self.problems.iter().map(Problem::to_string).collect();
        f.write_str(&shown.join("\n\n"))
    }
}

impl std::error::Error for ConfigError {}
