//! The number of processes that a configuration written for verl asks for. It starts none: whoever launches the program does, and
//! here the two are compared.

use super::library::LIBRARY;
use burnish_hydra::{Ignored, Node, Origin, Problem, Source, Value};

/// verl's keys of the number of processes, which are no settings: the first counts machines, the second processes of each.
const KEYS: [&str; 2] = ["trainer.nnodes", "trainer.n_gpus_per_node"];

/// The numbers of machines and of processes on each, as far as somebody wrote them: verl's own defaults describe no run.
#[derive(Debug, Clone, Default)]
pub struct Processes([Option<(usize, Origin)>; 2]);

impl Processes {
    /// Reads the keys that are no settings, with `${…}` resolved.
    pub(super) fn of(others: &Node) -> Self {
        Self(KEYS.map(|key| {
            let node = others.get(key).filter(|node| !is_verls(&node.origin))?;
            Some((count(&node.value)?, node.origin.clone()))
        }))
    }

    /// Compares the numbers with that of the processes that were started. One that is not written may be any.
    ///
    /// # Errors
    /// The two differ.
    pub(super) fn check(&self, started: usize) -> Result<(), Problem> {
        let product = self.0.iter().flatten().fold(1, |product: usize, (count, _)| product.saturating_mul(*count));
        let fits = match &self.0 {
            [Some(_), Some(_)] => product == started,
            _ => product > 0 && started.is_multiple_of(product),
        };
        let written =
            || KEYS.iter().zip(&self.0).filter_map(|(key, one)| one.as_ref().map(|(count, origin)| (*key, count, origin)));
        let Some((key, _, origin)) = written().next_back().filter(|_| !fits) else { return Ok(()) };
        let numbers: Vec<String> = written().map(|(key, count, _)| format!("{key}={count}")).collect();
        let message = format!("{} is written, but {started} processes were started", numbers.join(" and "));
        let help = "their product is the number of processes, as in `mpirun -n N trainer …`, and one alone divides it; or leave both keys out";
        Err(Problem::new(key, message).at(origin).help(help))
    }

    /// True if a key without effect is one of these.
    pub(super) fn is_about(one: &Ignored) -> bool {
        KEYS.contains(&one.key.as_str())
    }
}

/// The whole number that a value is, as text too; one below 0 is no number of processes. `None` for what is no number.
fn count(value: &Value) -> Option<usize> {
    match value {
        Value::Int(count) => Some(usize::try_from(*count).unwrap_or(0)),
        Value::Float(count) if count.fract() == 0.0 => Some(*count as usize),
        Value::Text(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// True if a value is a default, of this program or in a file of verl's own.
fn is_verls(origin: &Origin) -> bool {
    let is_theirs = |source: &Source| LIBRARY.packs.iter().any(|pack| pack.files.iter().any(|(_, text)| *text == source.text));
    let is_ours = |source: &Source| LIBRARY.is_built_in(source) || LIBRARY.is_copy_of_built_in(source);
    matches!(origin, Origin::File { source, .. } if is_ours(source) || is_theirs(source))
}
