//! Several values of one override: `a,b`, `choice(a,b)`, `range(1,4)` as in Hydra's sweeps, and `1..3` for whole numbers with
//! both ends.

use super::value::ValueParser;
use super::words::SyntaxError;
use crate::provenance::Origin;
use crate::tree::Value;

/// The largest number of values of one override.
pub(crate) const MOST_VALUES: usize = 1000;

/// Functions of Hydra that are not taken, and the way to write the same.
const REFUSED: &[(&str, &str)] = &[
    (
        "interval",
        "a range without steps is for optimizers such as Optuna: write the values as a,b,c or as range(start,stop,step)",
    ),
    ("glob", "name the options of the group: group=a,b"),
    ("sort", "write the values in their order: a,b,c"),
    ("shuffle", "write the values in the order in which the jobs start: a,b,c"),
    ("tag", "tags are for optimizers such as Optuna: write the values as a,b,c"),
];

const UNCLOSED: &str = "this `(` has no closing `)`";
const RANGE: &str = "write range(stop), range(start,stop) or range(start,stop,step) with numbers";

/// Returns the texts of the values after the `=` of an override, in order; one text if the override is not a sweep. Each text is
/// read by [`parse_value`](super::value::parse_value).
///
/// # Errors
/// If the text does not follow the grammar, or has no value or too many.
pub(crate) fn parse_values(text: &str, origin: &Origin) -> Result<Vec<String>, SyntaxError> {
    let mut parser = ValueParser::new(text, origin);
    parser.skip_spaces();
    if parser.rest().is_empty() {
        return Ok(vec![text.to_owned()]);
    }
    let values = match parser.function() {
        Some(("choice", inside)) => parser.choices(inside)?,
        Some(("range", inside)) => parser.range(inside)?,
        _ => return parser.simple(),
    };
    parser.skip_spaces();
    match parser.rest().is_empty() {
        true => Ok(values),
        false => parser.fail("choice(…) and range(…) are the whole value: nothing may follow"),
    }
}

impl ValueParser<'_> {
    /// Returns the name of a function of sweeps that begins here, and the byte of its `(`.
    fn function(&self) -> Option<(&'static str, usize)> {
        let names = ["choice", "range"].into_iter().chain(REFUSED.iter().map(|(name, _)| *name));
        names.into_iter().find_map(|name| {
            let rest = self.rest().strip_prefix(name)?;
            let spaces = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            rest[spaces..].starts_with('(').then_some((name, self.at + name.len() + spaces))
        })
    }

    /// Reads values with commas between them up to the end.
    fn simple(&mut self) -> Result<Vec<String>, SyntaxError> {
        let mut values = vec![];
        loop {
            self.not_empty()?;
            values.extend(self.value()?);
            if values.len() > MOST_VALUES {
                return self.fail(format!("a sweep has at most {MOST_VALUES} values"));
            }
            match self.peek() {
                None => return Ok(values),
                Some(',') => self.at += 1,
                Some(_) => return self.fail("no space or text may follow this value"),
            }
            self.skip_spaces();
            if self.rest().is_empty() {
                return self.fail("a value is missing after this `,`");
            }
        }
    }

    /// Reads a value, and the spaces after it. Whole numbers with `..` between them are several values.
    fn value(&mut self) -> Result<Vec<String>, SyntaxError> {
        let start = self.at;
        if let Some((name, _)) = self.function() {
            let instead = REFUSED.iter().find(|(refused, _)| *refused == name).map(|(_, instead)| *instead);
            return self.fail(match instead {
                Some(instead) => format!("`{name}(…)` is not taken here: {instead}"),
                None => format!("`{name}(…)` must be the whole value"),
            });
        }
        self.element()?;
        let text = self.text[start..self.at].trim_end().to_owned();
        self.skip_spaces();
        match counted(&text) {
            None => Ok(vec![text]),
            Some((first, last)) => match last.checked_sub(first).and_then(|more| usize::try_from(more).ok()) {
                Some(more) if more < MOST_VALUES => Ok((first..=last).map(|number| number.to_string()).collect()),
                Some(_) => Err(SyntaxError { at: start, message: format!("a sweep has at most {MOST_VALUES} values") }),
                None => Err(SyntaxError { at: start, message: format!("`{text}` has no values: write {last}..{first}") }),
            },
        }
    }

    /// Reads the values of `choice(…)`, from the `(`.
    fn choices(&mut self, inside: usize) -> Result<Vec<String>, SyntaxError> {
        let start = std::mem::replace(&mut self.at, inside);
        let mut values = vec![];
        self.sequence(')', UNCLOSED, |parser| {
            values.extend(parser.value()?);
            Ok(())
        })?;
        match values.len() {
            0 => Err(SyntaxError { at: start, message: "`choice()` has no values".into() }),
            1..=MOST_VALUES => Ok(values),
            _ => Err(SyntaxError { at: start, message: format!("a sweep has at most {MOST_VALUES} values") }),
        }
    }

    /// Reads the numbers of `range(…)`, from the `(`. The end does not belong to the range, as in Python.
    fn range(&mut self, inside: usize) -> Result<Vec<String>, SyntaxError> {
        const NAMES: [&str; 3] = ["start", "stop", "step"];
        let start = std::mem::replace(&mut self.at, inside);
        let mut given: [Option<Value>; 3] = [None, None, None];
        let mut next = 0;
        self.sequence(')', UNCLOSED, |parser| {
            let named = NAMES
                .iter()
                .position(|name| parser.rest().strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('=')));
            if named.is_some() {
                parser.at += parser.rest().find('=').map_or(0, |at| at + 1);
                parser.skip_spaces();
            }
            let place = named.unwrap_or(next);
            let value = parser.element()?.value;
            let is_number = matches!(value, Value::Int(_)) || matches!(value, Value::Float(number) if number.is_finite());
            match given.get_mut(place) {
                Some(free @ None) if is_number => *free = Some(value),
                _ => return parser.fail(RANGE),
            }
            next += 1;
            Ok(())
        })?;
        let fail = |message: String| Err(SyntaxError { at: start, message });
        let (from, to, step) = match given {
            [Some(stop), None, step] => (Value::Int(0), stop, step),
            [Some(start), Some(stop), step] => (start, stop, step),
            _ => return fail(RANGE.into()),
        };
        let values = match (from, to, step.unwrap_or(Value::Int(1))) {
            (_, _, Value::Int(0)) => return fail("the step of a range cannot be 0".into()),
            (_, _, Value::Float(0.0)) => return fail("the step of a range cannot be 0".into()),
            (Value::Int(from), Value::Int(to), Value::Int(step)) => whole_numbers(from.into(), to.into(), step.into()),
            (from, to, step) => floats(float(&from), float(&to), float(&step)),
        };
        match values.len() {
            0 => fail("this range has no values: its end does not belong to it".into()),
            1..=MOST_VALUES => Ok(values),
            _ => fail(format!("a sweep has at most {MOST_VALUES} values")),
        }
    }
}

/// Returns the ends of `FIRST..LAST`.
fn counted(text: &str) -> Option<(i64, i64)> {
    let (first, last) = text.split_once("..")?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

fn whole_numbers(from: i128, to: i128, step: i128) -> Vec<String> {
    let numbers = (0..=MOST_VALUES as i128).map(|i| from + i * step);
    numbers.take_while(|number| if step > 0 { *number < to } else { *number > to }).map(|number| number.to_string()).collect()
}

/// Returns the numbers of a range of floats. Hydra adds the steps exactly and rounds each sum.
fn floats(from: f64, to: f64, step: f64) -> Vec<String> {
    let left = |i: usize| (i as f64).mul_add(step, from - to);
    let inside = |i: &usize| if step > 0.0 { left(*i) < 0.0 } else { left(*i) > 0.0 };
    let number = |i: usize| format!("{:?}", (i as f64).mul_add(step, from));
    (0..=MOST_VALUES).take_while(inside).map(number).collect()
}

fn float(value: &Value) -> f64 {
    match value {
        Value::Int(number) => *number as f64,
        Value::Float(number) => *number,
        _ => f64::NAN,
    }
}
