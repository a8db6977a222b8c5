//! Operators on known values.

use super::limit::EvaluationLimit;
use super::machine::PyMachine;
use super::value::PyValue;
use rustpython_ruff_python_ast::{CmpOp, Operator};

impl<'a> PyMachine<'a> {
    /// Applies a binary operator; `None` if a value is unknown.
    pub(super) fn operate(&mut self, left: &PyValue<'a>, op: Operator, right: &PyValue<'a>) -> Option<PyValue<'a>> {
        match (left, op, right) {
            (PyValue::Text(one), Operator::Add, PyValue::Text(other)) => {
                self.is_short(one.len() + other.len()).then(|| PyValue::text(format!("{one}{other}")))
            }
            (PyValue::Text(text), Operator::Mult, PyValue::Int(times)) => {
                let times = usize::try_from(*times).unwrap_or(0);
                self.is_short(text.len().saturating_mul(times)).then(|| PyValue::text(text.repeat(times)))
            }
            (PyValue::Text(text), Operator::Mod, value) => percent(self, text, value),
            (PyValue::List(_), Operator::Add, PyValue::List(_)) => {
                let mut items = left.items()?;
                items.extend(right.items()?);
                self.is_short(items.len()).then(|| PyValue::list(items))
            }
            (PyValue::List(items), Operator::Mult, PyValue::Int(times)) => {
                let (items, times) = (items.borrow(), usize::try_from(*times).unwrap_or(0));
                let length = items.len().saturating_mul(times);
                self.is_short(length).then(|| PyValue::list(items.iter().cloned().cycle().take(length).collect()))
            }
            (PyValue::Dict(one), Operator::BitOr, PyValue::Dict(other)) => {
                if !self.entries(one.borrow().len().saturating_mul(other.borrow().len())) {
                    return None;
                }
                let mut entries = other.borrow().clone();
                let is_new = |key: &PyValue<'a>| other.borrow().iter().all(|(known, _)| known.equals(key) != Some(true));
                let mut first: Vec<_> = one.borrow().iter().filter(|(key, _)| is_new(key)).cloned().collect();
                first.append(&mut entries);
                Some(PyValue::dict(first))
            }
            // `Path("runs") / "a"`.
            (PyValue::Call(call), Operator::Div, PyValue::Text(part)) if call.name() == "Path" => {
                let [PyValue::Text(folder)] = call.arguments.as_slice() else { return None };
                Some(PyValue::text(format!("{}/{part}", folder.trim_end_matches('/'))))
            }
            (PyValue::Int(left), op, PyValue::Int(right)) => integers(*left, op, *right),
            (left, op, right) => floats(left.number()?, op, right.number()?),
        }
    }

    fn is_short(&mut self, length: usize) -> bool {
        self.fits(length, EvaluationLimit::LENGTH - 1, EvaluationLimit::Length)
    }
}

fn integers<'a>(left: i64, op: Operator, right: i64) -> Option<PyValue<'a>> {
    let bits = |shift: i64| u32::try_from(shift).ok().filter(|shift| *shift < 62);
    let floor = || {
        let quotient = left.checked_div(right)?;
        Some(if left % right != 0 && (left < 0) != (right < 0) { quotient - 1 } else { quotient })
    };
    let value = match op {
        Operator::Add => left.checked_add(right),
        Operator::Sub => left.checked_sub(right),
        Operator::Mult => left.checked_mul(right),
        Operator::Div => return (right != 0).then(|| PyValue::Float(left as f64 / right as f64)),
        Operator::FloorDiv => floor(),
        Operator::Mod => floor()?.checked_mul(right).and_then(|whole| left.checked_sub(whole)),
        Operator::Pow if right < 0 => return floats(left as f64, op, right as f64),
        Operator::Pow => left.checked_pow(u32::try_from(right).ok()?),
        Operator::LShift => left.checked_mul(1_i64 << bits(right)?),
        Operator::RShift => Some(left >> bits(right)?),
        Operator::BitAnd => Some(left & right),
        Operator::BitOr => Some(left | right),
        Operator::BitXor => Some(left ^ right),
        Operator::MatMult => None,
    };
    value.map(PyValue::Int)
}

fn floats<'a>(left: f64, op: Operator, right: f64) -> Option<PyValue<'a>> {
    let value = match op {
        Operator::Add => left + right,
        Operator::Sub => left - right,
        Operator::Mult => left * right,
        Operator::Div if right != 0.0 => left / right,
        Operator::FloorDiv if right != 0.0 => (left / right).floor(),
        Operator::Mod if right != 0.0 => left - (left / right).floor() * right,
        Operator::Pow => left.powf(right),
        _ => return None,
    };
    value.is_finite().then_some(PyValue::Float(value))
}

/// Fills `%s` and `%d` of a text.
fn percent<'a>(machine: &mut PyMachine, text: &str, value: &PyValue<'a>) -> Option<PyValue<'a>> {
    let values = if let PyValue::Tuple(values) = value { values.to_vec() } else { vec![value.clone()] };
    let mut values = values.iter();
    let mut pieces = text.split('%');
    let mut filled = pieces.next()?.to_string();
    for piece in pieces {
        let rest = piece.strip_prefix(['s', 'd'])?;
        append(machine, &mut filled, &as_text(values.next()?)?)?;
        append(machine, &mut filled, rest)?;
    }
    Some(PyValue::text(filled))
}

/// Appends to a text; `None` if it becomes too long.
pub(super) fn append(machine: &mut PyMachine, text: &mut String, part: &str) -> Option<()> {
    machine.is_short(text.len() + part.len()).then(|| text.push_str(part))
}

/// Returns the text that `str` makes of a value.
pub(super) fn as_text(value: &PyValue) -> Option<String> {
    Some(match value {
        PyValue::None => "None".into(),
        PyValue::Bool(value) => if *value { "True" } else { "False" }.into(),
        PyValue::Int(value) => value.to_string(),
        PyValue::Float(value) => float_text(*value),
        PyValue::Text(text) => text.to_string(),
        PyValue::Call(call) if call.name() == "Path" => call.arguments.first()?.as_text()?.to_string(),
        _ => return None,
    })
}

/// Returns a number as Python writes it: with an exponent below 1e-4 and from 1e16.
fn float_text(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) && value.is_finite() {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{value:?}")
}

/// Compares two values; `None` if one of them is unknown.
pub(super) fn compare<'a>(left: &PyValue<'a>, op: CmpOp, right: &PyValue<'a>) -> Option<bool> {
    let order = || left.number()?.partial_cmp(&right.number()?);
    match op {
        CmpOp::Eq => left.equals(right),
        CmpOp::NotEq => left.equals(right).map(|equal| !equal),
        CmpOp::Lt => order().map(|order| order.is_lt()),
        CmpOp::LtE => order().map(|order| order.is_le()),
        CmpOp::Gt => order().map(|order| order.is_gt()),
        CmpOp::GtE => order().map(|order| order.is_ge()),
        CmpOp::Is | CmpOp::IsNot => {
            let same = match (left, right) {
                (PyValue::None, other) | (other, PyValue::None) => match other {
                    PyValue::None => Some(true),
                    PyValue::Unknown(_) | PyValue::Option(_) | PyValue::Item(_) | PyValue::Attribute(_) => None,
                    _ => Some(false),
                },
                (one, other) => one.equals(other),
            };
            same.map(|same| same == (op == CmpOp::Is))
        }
        CmpOp::In | CmpOp::NotIn => {
            let found = match (left, right) {
                (PyValue::Text(part), PyValue::Text(text)) => Some(text.contains(&**part)),
                (key, PyValue::Dict(entries)) => Some(entries.borrow().iter().any(|(known, _)| known.equals(key) == Some(true))),
                (one, other) => {
                    let found: Vec<Option<bool>> = other.items()?.iter().map(|item| item.equals(one)).collect();
                    if found.contains(&Some(true)) {
                        Some(true)
                    } else if found.contains(&None) {
                        None
                    } else {
                        Some(false)
                    }
                }
            };
            found.map(|found| found == (op == CmpOp::In))
        }
    }
}

/// Returns an item of a list, text or dict.
pub(super) fn item<'a>(object: &PyValue<'a>, key: &PyValue<'a>) -> Option<PyValue<'a>> {
    let index = |length: usize| {
        let PyValue::Int(index) = key else { return None };
        if *index < 0 { length.checked_sub(index.unsigned_abs() as usize) } else { usize::try_from(*index).ok() }
    };
    match object {
        PyValue::Dict(entries) => {
            entries.borrow().iter().find(|(known, _)| known.equals(key) == Some(true)).map(|(_, value)| value.clone())
        }
        PyValue::Text(text) => {
            let letters: Vec<char> = text.chars().collect();
            letters.get(index(letters.len())?).map(|letter| PyValue::text(letter.to_string()))
        }
        object => {
            let items = object.items()?;
            items.get(index(items.len())?).cloned()
        }
    }
}

/// Bounds of a slice: lower, upper, step.
pub(super) type Bounds<'a> = (Option<PyValue<'a>>, Option<PyValue<'a>>, Option<PyValue<'a>>);

/// Returns a slice of a list, tuple or text, with a step of 1.
pub(super) fn slice<'a>(object: &PyValue<'a>, (lower, upper, step): &Bounds<'a>) -> Option<PyValue<'a>> {
    if step.as_ref().is_some_and(|step| step.number() != Some(1.0)) {
        return None;
    }
    let bound = |bound: &Option<PyValue>, length: usize, default: usize| match bound {
        None | Some(PyValue::None) => Some(default),
        Some(PyValue::Int(at)) if *at < 0 => Some(length.saturating_sub(at.unsigned_abs() as usize)),
        Some(PyValue::Int(at)) => Some((*at as usize).min(length)),
        Some(_) => None,
    };
    if let PyValue::Text(text) = object {
        let letters: Vec<char> = text.chars().collect();
        let (from, to) = (bound(lower, letters.len(), 0)?, bound(upper, letters.len(), letters.len())?);
        return Some(PyValue::text(letters.get(from..to.max(from))?.iter().collect::<String>()));
    }
    let items = object.items()?;
    let (from, to) = (bound(lower, items.len(), 0)?, bound(upper, items.len(), items.len())?);
    Some(PyValue::list(items.get(from..to.max(from))?.to_vec()))
}
