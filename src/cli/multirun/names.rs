//! Names of jobs, which say the swept values.

use std::collections::HashSet;

use burnish_report::compare::short_key;

/// Largest number of characters of a value, and of a whole name.
const LONGEST: (usize, usize) = (40, 150);

/// Returns a unique name for each job, of characters that need no quotes in a shell or an override.
pub(super) fn names(keys: &[String], values: &[Vec<String>]) -> Vec<String> {
    let all: Vec<&str> = keys.iter().map(String::as_str).collect();
    let plain = |text: &str| -> String {
        let text = text.trim_matches(['\'', '"', '[', ']']);
        let skipped = text.chars().count().saturating_sub(LONGEST.0);
        let keep = |c: char| if c.is_ascii_alphanumeric() || ".-+".contains(c) { c } else { '_' };
        text.chars().skip(skipped).map(keep).collect()
    };
    let name = |values: &Vec<String>| {
        let parts = keys.iter().zip(values).map(|(key, value)| format!("{}-{}", plain(short_key(key, &all)), plain(value)));
        parts.collect::<Vec<_>>().join("_").chars().take(LONGEST.1).collect::<String>()
    };
    let mut seen = HashSet::new();
    let unique = |(i, values): (usize, &Vec<String>)| {
        let name = name(values);
        if name.is_empty() {
            return i.to_string();
        }
        let numbered = (i..).map(|number| format!("{name}_{number}"));
        std::iter::once(name.clone()).chain(numbered).find(|name| seen.insert(name.to_lowercase())).unwrap_or(name.clone())
    };
    values.iter().enumerate().map(unique).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_the_values_and_are_unique() {
        let named = |keys: &[&str], values: &[&[&str]]| {
            let rows: Vec<Vec<String>> = values.iter().map(|row| row.iter().map(ToString::to_string).collect()).collect();
            names(&keys.iter().map(ToString::to_string).collect::<Vec<_>>(), &rows)
        };
        assert_eq!(
            named(&["a.optim.lr", "trainer.seed"], &[&["1e-6", "1"], &["1e-6", "2"]]),
            ["lr-1e-6_seed-1", "lr-1e-6_seed-2"]
        );
        assert_eq!(named(&["a.lr", "b.lr"], &[&["'x y'", "[1,2]"]]), ["a.lr-x_y_b.lr-1_2"]);
        assert_eq!(named(&["m"], &[&["a/b"], &["a_b"]]), ["m-a_b", "m-a_b_1"]);
        assert_eq!(named(&["m"], &[&["a_b"], &["a/b"], &["a_b_1"]]), ["m-a_b", "m-a_b_1", "m-a_b_1_2"]);
        assert_eq!(named(&[], &[&[]]), ["0"]);
        let long = "x".repeat(300);
        assert!(named(&["p"], &[&[&long]])[0].len() < 60);
    }
}
