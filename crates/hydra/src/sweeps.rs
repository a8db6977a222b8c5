//! The overrides of several runs, made of the overrides of one command by the rules of Hydra's sweeps (`--multirun`).

use super::error::Problem;
use super::grammar::{MOST_VALUES, parse_values};
use super::overrides::position;
use super::provenance::Origin;
use std::sync::Arc;

/// An override with its values.
#[derive(Debug, Clone, PartialEq)]
pub struct SweptOverride {
    /// The part before the `=`, with its sign and package.
    pub key: String,
    /// The texts of the values; `None` for `~key`.
    values: Option<Vec<String>>,
}

impl SweptOverride {
    fn parse(word: &str) -> Result<Self, Problem> {
        let Some((key, text)) = word.split_once('=') else { return Ok(Self { key: word.to_owned(), values: None }) };
        let origin = Origin::Override(Arc::from(word));
        let values = parse_values(text, &origin).map_err(|error| {
            let name = key.trim_start_matches(['+', '~']);
            let message = format!("the values of `{name}` cannot be read: {}", error.message);
            Problem::new(name, message).at(&position(word, key.len() + 1 + error.at))
        })?;
        Ok(Self { key: key.to_owned(), values: Some(values) })
    }

    /// Returns the values if there are several.
    pub fn swept(&self) -> Option<&[String]> {
        self.values.as_deref().filter(|values| values.len() > 1)
    }

    /// Returns an override with one value for each value.
    fn words(&self) -> Vec<String> {
        match &self.values {
            None => vec![self.key.clone()],
            Some(values) => values.iter().map(|value| format!("{}={value}", self.key)).collect(),
        }
    }
}

/// Reads the overrides of a sweep. A later override of a key replaces an earlier one, at its place.
///
/// # Errors
/// All words that cannot be read.
pub fn read(words: &[String]) -> Result<Vec<SweptOverride>, Vec<Problem>> {
    let (mut read, mut problems): (Vec<SweptOverride>, Vec<Problem>) = (vec![], vec![]);
    for word in words {
        match SweptOverride::parse(word) {
            Err(problem) => problems.push(problem),
            Ok(one) => match read.iter_mut().find(|earlier| earlier.key == one.key) {
                Some(earlier) => *earlier = one,
                None => read.push(one),
            },
        }
    }
    if problems.is_empty() { Ok(read) } else { Err(problems) }
}

/// Returns the overrides of each run in Hydra's order: the last swept key changes first.
///
/// # Errors
/// If there are too many runs.
pub fn product(overrides: &[SweptOverride]) -> Result<Vec<Vec<String>>, Problem> {
    let count = overrides.iter().map(|one| one.words().len()).try_fold(1usize, usize::checked_mul);
    if count.is_none_or(|count| count > MOST_VALUES) {
        return Err(Problem::new("", format!("a sweep has at most {MOST_VALUES} jobs, the product of all its values")));
    }
    Ok(overrides.iter().fold(vec![vec![]], |runs, one| {
        let longer = |run: Vec<String>| one.words().into_iter().map(move |word| [run.clone(), vec![word]].concat());
        runs.into_iter().flat_map(longer).collect()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of hydra-core 1.3.2 (`BasicSweeper.split_arguments`), and the short form `1..3`, which Hydra reads as a text.
    #[test]
    fn values_are_those_of_hydra() {
        let cases: &[(&str, &[&str])] = &[
            ("k=a,b,c", &["a", "b", "c"]),
            ("k=a , b", &["a", "b"]),
            ("k= a,b ", &["a", "b"]),
            ("k=[1,2]", &["[1,2]"]),
            ("k=[1,2],[3]", &["[1,2]", "[3]"]),
            ("k={a:1,b:2},{a:2}", &["{a:1,b:2}", "{a:2}"]),
            ("k='a,b'", &["'a,b'"]),
            ("k='a,b',c", &["'a,b'", "c"]),
            ("k=\"a,b\" , c", &["\"a,b\"", "c"]),
            ("k=a\\,b,c", &["a\\,b", "c"]),
            ("k=1e-6,1e-5", &["1e-6", "1e-5"]),
            ("k=1,1", &["1", "1"]),
            ("k=str(1),2", &["str(1)", "2"]),
            ("k=${x},${y}", &["${x}", "${y}"]),
            ("k=", &[""]),
            ("k=choice(a)", &["a"]),
            ("k=choice( a , 'b c' )", &["a", "'b c'"]),
            ("k=choice(1,[2,3],{a:1})", &["1", "[2,3]", "{a:1}"]),
            ("k=range(1,4)", &["1", "2", "3"]),
            ("k=range( 3 )", &["0", "1", "2"]),
            ("k=range(0,10,3)", &["0", "3", "6", "9"]),
            ("k=range(3,0,-1)", &["3", "2", "1"]),
            ("k=range(0,1,0.25)", &["0.0", "0.25", "0.5", "0.75"]),
            ("k=range(0.1,0.5,0.1)", &["0.1", "0.2", "0.30000000000000004", "0.4"]),
            ("k=range(1.0,3)", &["1.0", "2.0"]),
            ("k=range(1,stop=5,step=2)", &["1", "3"]),
            ("k=range(start=1,stop=3)", &["1", "2"]),
            ("k=1..3", &["1", "2", "3"]),
            ("k=-1..1,7", &["-1", "0", "1", "7"]),
            ("k='1..3'", &["'1..3'"]),
            ("k=../a", &["../a"]),
        ];
        for (word, expected) in cases {
            let read = SweptOverride::parse(word).unwrap_or_else(|problem| panic!("{word}: {problem}"));
            assert_eq!(read.values.unwrap(), *expected, "{word}");
        }
        for (word, part) in [
            ("k=a,", "missing"),
            ("k=,a", "missing"),
            ("k=choice()", "no values"),
            ("k=choice(a,b", "no closing"),
            ("k=choice(a,b),c", "whole value"),
            ("k=a,choice(b,c)", "whole value"),
            ("k=range(1,4),7", "whole value"),
            ("k=range(stop=5)", "write range(stop)"),
            ("k=range(a,b)", "write range(stop)"),
            ("k=range(true,3)", "write range(stop)"),
            ("k=range(1,2,3,4)", "write range(stop)"),
            ("k=range(1,4,0)", "cannot be 0"),
            ("k=range(3,1)", "no values"),
            ("k=range(0,1e9)", "at most"),
            ("k=1..100000", "at most"),
            ("k=3..1", "write 1..3"),
            ("k=interval(0,1)", "`interval(…)` is not taken"),
            ("k=glob(*)", "group=a,b"),
            ("k=sort(3,1)", "`sort(…)`"),
            ("k=int(1.0,2.0)", "takes one value"),
            ("k=[a,b", "no closing"),
            ("k='a,b", "not closed"),
        ] {
            let problem = SweptOverride::parse(word).map(|read| read.values).unwrap_err();
            assert!(problem.message.contains(part), "{word}: {problem}");
        }
    }

    #[test]
    fn the_last_key_changes_first_and_later_words_replace_earlier_ones() {
        let words = |words: &[&str]| read(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
        let read_words = words(&["k=a,b", "j=5", "~x", "+s=1,2"]).unwrap();
        assert_eq!(
            product(&read_words).unwrap(),
            [
                ["k=a", "j=5", "~x", "+s=1"],
                ["k=a", "j=5", "~x", "+s=2"],
                ["k=b", "j=5", "~x", "+s=1"],
                ["k=b", "j=5", "~x", "+s=2"]
            ]
        );
        assert_eq!(product(&words(&["k=1,2", "j=5", "k=3"]).unwrap()).unwrap(), [["k=3", "j=5"]]);
        assert_eq!(product(&words(&[]).unwrap()).unwrap(), [Vec::<String>::new()]);
        assert!(product(&words(&["a=1..100", "b=1..100"]).unwrap()).unwrap_err().message.contains("at most 1000 jobs"));
        assert_eq!(words(&["a=,", "b=1", "c=glob(*)"]).unwrap_err().len(), 2);
    }
}
