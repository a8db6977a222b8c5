//! The number of processes in a configuration written for verl. It is only compared with the number of started processes; the
//! launcher starts them.

use super::library::LIBRARY;
use burnish_hydra::{Ignored, Node, Origin, Problem, Value, YamlSource};

/// verl's keys of the number of processes, which are not settings: machines, and processes per machine.
const PROCESS_KEYS: [&str; 2] = ["trainer.nnodes", "trainer.n_gpus_per_node"];

/// The written numbers of machines and of processes per machine, without verl's defaults, which do not describe a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Processes([Option<(usize, Origin)>; 2]);

impl Processes {
    /// Reads the two keys from the resolved keys that are not settings.
    pub(super) fn from_keys(others: &Node) -> Self {
        Self(PROCESS_KEYS.map(|key| {
            let node = others.get(key).filter(|node| !is_verls(&node.origin))?;
            Some((count(&node.value)?, node.origin.clone()))
        }))
    }

    /// Compares the written numbers with the number of started processes. A number that is not written may have any value.
    ///
    /// # Errors
    /// If the numbers differ.
    pub(super) fn check(&self, started: usize) -> Result<(), Problem> {
        let product = self.0.iter().flatten().fold(1, |product: usize, (count, _)| product.saturating_mul(*count));
        let fits = match &self.0 {
            [Some(_), Some(_)] => product == started,
            _ => product > 0 && started.is_multiple_of(product),
        };
        let written = || {
            PROCESS_KEYS.iter().zip(&self.0).filter_map(|(key, one)| one.as_ref().map(|(count, origin)| (*key, count, origin)))
        };
        let Some((key, _, origin)) = written().next_back().filter(|_| !fits) else { return Ok(()) };
        let numbers: Vec<String> = written().map(|(key, count, _)| format!("{key}={count}")).collect();
        let message = format!("{} is set, but {started} processes were started", numbers.join(" and "));
        let help =
            "the product of both keys must be N of `mpirun -n N trainer …`, and a single key must divide N; or remove both keys";
        Err(Problem::new(key, message).at(origin).help(help))
    }

    /// True if an ignored key is `trainer.nnodes` or `trainer.n_gpus_per_node`.
    pub(super) fn is_process_key(one: &Ignored) -> bool {
        PROCESS_KEYS.contains(&one.key.as_str())
    }
}

/// Returns a value, or its text, as a whole number; a negative number becomes 0. `None` if the value is not a whole number.
fn count(value: &Value) -> Option<usize> {
    match value {
        Value::Int(count) => Some(usize::try_from(*count).unwrap_or(0)),
        Value::Float(count) if count.fract() == 0.0 => Some(*count as usize),
        Value::Text(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// True if a value is a default of this program or of one of verl's files.
fn is_verls(origin: &Origin) -> bool {
    let is_theirs =
        |source: &YamlSource| LIBRARY.packs.iter().any(|pack| pack.files.iter().any(|(_, text)| *text == source.text));
    let is_ours = |source: &YamlSource| LIBRARY.is_built_in(source) || LIBRARY.is_copy_of_built_in(source);
    matches!(origin, Origin::File { source, .. } if is_ours(source) || is_theirs(source))
}
