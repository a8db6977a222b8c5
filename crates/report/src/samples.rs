//! samples.jsonl: selects the responses for which the page has room.

use std::borrow::Cow;
use std::fs::File;

use anyhow::Result;
use serde::Deserialize;

use super::tail::Lines;
use burnish_util::platform::read_exact_at;

/// Positions of a run's samples in its file.
#[derive(Debug, Default)]
pub(crate) struct SamplePositions(Vec<Sample>);

#[derive(Clone, Copy, Debug)]
struct Sample {
    step: u64,
    is_validation: bool,
    at: u64,
    length: usize,
}

#[derive(Deserialize)]
struct Head<'a> {
    step: u64,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
}

impl Lines for SamplePositions {
    fn clear(&mut self) {
        self.0.clear();
    }

    fn line(&mut self, line: &str, at: u64) -> bool {
        let head: Result<Head, _> = serde_json::from_str(line);
        self.0.extend(head.as_ref().ok().map(|head| Sample {
            step: head.step,
            is_validation: head.kind == "val",
            at,
            length: line.len(),
        }));
        head.is_ok()
    }
}

impl SamplePositions {
    /// Returns the number of bytes of all samples.
    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(|sample| sample.length + 1).sum()
    }

    /// Appends `[sample,…]` by step, at most `budget` bytes: all samples, or the samples of evenly spread steps. The last step is
    /// always included, and training and validation keep their proportion. Returns the number of samples left out.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn write(&self, file: Option<&File>, budget: usize, out: &mut String) -> Result<usize> {
        let mut chosen = self.0.clone();
        let total = self.bytes();
        if total > budget {
            let of = |validation| self.0.iter().copied().filter(move |sample| sample.is_validation == validation).collect();
            chosen = [of(false), of(true)]
                .into_iter()
                .flat_map(|samples: Vec<Sample>| {
                    let share = Self(samples.clone()).bytes() as f64 / total as f64;
                    spread(samples, (share * budget as f64) as usize)
                })
                .collect();
        }
        chosen.sort_by_key(|sample| sample.step);
        out.push('[');
        let mut bytes = Vec::new();
        for (i, sample) in chosen.iter().enumerate() {
            bytes.resize(sample.length, 0);
            if let Some(file) = file {
                read_exact_at(file, &mut bytes, sample.at)?;
            }
            out.push_str(if i > 0 { "," } else { "" });
            out.push_str(std::str::from_utf8(&bytes)?);
        }
        out.push(']');
        Ok(self.0.len() - chosen.len())
    }
}

/// Selects samples of as many steps as fit into `budget` bytes; if only the last step fits, as many of its samples as fit.
fn spread(mut samples: Vec<Sample>, budget: usize) -> Vec<Sample> {
    samples.sort_by_key(|sample| sample.step);
    let steps: Vec<&[Sample]> = samples.chunk_by(|a, b| a.step == b.step).collect();
    let sizes: Vec<usize> = steps.iter().map(|step| step.iter().map(|sample| sample.length + 1).sum()).collect();
    let even = |count: usize| (1..=count).map(|i| i * steps.len() / count - 1).collect::<Vec<_>>();
    let fits = |count: &usize| even(*count).iter().map(|i| sizes[*i]).sum::<usize>() <= budget;
    if let Some(count) = (1..=steps.len()).rev().find(fits) {
        return even(count).into_iter().flat_map(|i| steps[i]).copied().collect();
    }
    let mut room = budget;
    let last = steps.last().copied().unwrap_or_default().iter();
    let fitting = last.take_while(|sample| {
        let fits = sample.length < room;
        room = room.saturating_sub(sample.length + 1);
        fits
    });
    fitting.copied().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tail::Tail;
    use super::*;

    fn shown(budget: usize) -> (Vec<(u64, bool)>, usize) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("samples.jsonl");
        let line = |(step, kind): (u64, &str)| json!({"step": step, "kind": kind, "response": "x".repeat(60)}).to_string() + "\n";
        let all = (1..=10)
            .flat_map(|step| [(step, "train"), (step, "train"), (step, "val")])
            .filter(|(step, kind)| *kind == "train" || step % 5 == 0);
        std::fs::write(&path, all.map(line).collect::<String>()).unwrap();
        let (mut tail, mut samples, mut out) = (Tail::new(path), SamplePositions::default(), String::new());
        tail.read(&mut samples).unwrap();
        let omitted = samples.write(tail.file(), budget, &mut out).unwrap();
        assert!(out.len() <= budget + 2, "{} of {budget}", out.len());
        let shown: Vec<Value> = serde_json::from_str(&out).unwrap();
        (shown.iter().map(|x| (x["step"].as_u64().unwrap(), x["kind"] == "val")).collect(), omitted)
    }

    #[test]
    fn where_room_is_short_steps_are_spread_evenly() {
        let (all, omitted) = shown(100_000);
        assert_eq!((all.len(), omitted), (22, 0));
        let (half, omitted) = shown(1200);
        assert_eq!(
            half,
            [2, 4, 6, 8, 10]
                .map(|step| [(step, false); 2])
                .as_flattened()
                .iter()
                .copied()
                .chain([(10, true)])
                .collect::<Vec<_>>()
        );
        assert_eq!(omitted, 11);
        assert_eq!(shown(120), (vec![(10, false)], 21));
        assert_eq!(shown(10), (vec![], 22));
    }
}
