//! The common input of all probes: sample responses with their scores, and right responses.

use std::cell::OnceCell;
use std::time::Duration;

use super::bench::{Bench, OutOfTime};
use super::calls::{Answer, Attempt};
use super::right::{Right, best_form, other_answer};
use super::row::KnownRow;
use burnish_reward::{RowPart, function};

/// Responses of a row that are sampled.
const PER_ROW: usize = 16;
/// A row whose calls take this long and five times as long as others is left out of most probes.
const SLOW: Duration = Duration::from_millis(100);
/// Responses without an answer, among the samples if the rows have none.
const NO_ANSWER: &str = "I do not know.";

/// A sample response.
pub(super) struct Sample {
    pub(super) attempt: Attempt,
    /// True if it is right; `None` if that is not known.
    pub(super) is_right: Option<bool>,
    /// True for a response of the row whose rightness is unknown: a model gave it.
    pub(super) is_sampled: bool,
    /// The answer as training gets it, with the time of a call for this response alone.
    pub(super) answer: Answer,
}

/// The samples and their scores.
pub(super) struct Study<'a> {
    pub(super) bench: Bench<'a>,
    pub(super) rows: &'a [KnownRow],
    pub(super) samples: Vec<Sample>,
    /// Right responses by row.
    pub(super) rights: Vec<Option<Right>>,
    /// Rows for most probes: all but slow ones.
    pub(super) quick: Vec<usize>,
    passes: OnceCell<ScorePasses>,
}

/// The answers to the samples of quick rows, asked as in training: in new processes, and again.
pub(super) struct ScorePasses {
    pub(super) attempts: Vec<Attempt>,
    pub(super) first: Vec<Answer>,
    /// In the same process again.
    pub(super) again: Vec<Answer>,
    /// In another process, with other random seeds.
    pub(super) elsewhere: Vec<Answer>,
}

impl ScorePasses {
    /// Returns the first sample for which two passes disagree.
    pub(super) fn difference(&self, a: &[Answer], b: &[Answer]) -> Option<usize> {
        (0..a.len().min(b.len())).find(|i| !a[*i].outcome.agrees(&b[*i].outcome))
    }

    /// Returns the first sample whose score differs by chance: in another process, the same calls give another score.
    pub(super) fn by_chance(&self) -> Option<usize> {
        self.difference(&self.first, &self.elsewhere)
    }
}

impl<'a> Study<'a> {
    /// Scores sample responses of all rows.
    ///
    /// # Errors
    /// If the time is over before a sample of every row has a score.
    pub(super) fn new(bench: Bench<'a>, rows: &'a [KnownRow]) -> Result<Self, OutOfTime> {
        let mut attempts: Vec<(Attempt, Option<bool>)> = Vec::new();
        for (row, known) in rows.iter().enumerate() {
            let own = known.responses.iter().take(PER_ROW);
            attempts.extend(own.map(|(text, is_right)| (Attempt { row, text: text.clone() }, *is_right)));
        }
        if !attempts.iter().any(|(_, is_right)| *is_right == Some(true)) {
            let best = best_form(&bench, rows)?;
            for (row, known) in rows.iter().enumerate() {
                let mut add = |text: Option<String>, is_right| {
                    attempts.extend(text.map(|text| (Attempt { row, text }, is_right)));
                };
                if let Some(best) = best {
                    add(best.response(known), Some(true));
                    add(other_answer(rows, row).and_then(|other| best.response(other)), Some(false));
                } else {
                    add(known.truths.first().cloned(), None);
                }
                add(Some(NO_ANSWER.to_owned()), if known.truths.is_empty() { None } else { Some(false) });
            }
            attempts.sort_by_key(|(attempt, _)| attempt.row);
        }
        let mut samples: Vec<Sample> = Vec::new();
        for (attempt, is_right) in attempts {
            let row = attempt.row;
            let answer = bench.one(&attempt, row)?;
            let is_sampled = is_right.is_none() && rows[row].responses.iter().any(|(text, _)| *text == attempt.text);
            samples.push(Sample { attempt, is_right, is_sampled, answer });
        }
        if bench.rewards().sees_batches() {
            let attempts: Vec<Attempt> = samples.iter().map(|sample| sample.attempt.clone()).collect();
            let together = bench.together(&attempts)?;
            for (sample, answer) in samples.iter_mut().zip(together) {
                sample.answer = Answer { took: sample.answer.took, ..answer };
            }
        }
        let rights = (0..rows.len()).map(|row| right(&rows[row], row, &samples)).collect();
        let quick = quick(rows.len(), &samples);
        Ok(Self { bench, rows, samples, rights, quick, passes: OnceCell::new() })
    }

    /// Returns the samples of a row.
    pub(super) fn of_row(&self, row: usize) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| sample.attempt.row == row)
    }

    /// Returns the answers of repeated passes, asked once for all probes.
    ///
    /// # Errors
    /// If the time is over.
    pub(super) fn passes(&self) -> Result<&ScorePasses, OutOfTime> {
        if let Some(passes) = self.passes.get() {
            return Ok(passes);
        }
        let attempts = self.quick_attempts();
        self.bench.renew(0)?;
        let (first, again) = (self.bench.together(&attempts)?, self.bench.together(&attempts)?);
        self.bench.renew(1)?;
        let elsewhere = self.bench.together(&attempts)?;
        self.bench.renew(0)?;
        Ok(self.passes.get_or_init(|| ScorePasses { attempts, first, again, elsewhere }))
    }

    /// Returns true if the same response gets the same score whenever it is scored.
    ///
    /// # Errors
    /// If the time is over.
    pub(super) fn is_steady(&self) -> Result<bool, OutOfTime> {
        let passes = self.passes()?;
        Ok(passes.by_chance().is_none() && passes.difference(&passes.first, &passes.again).is_none())
    }

    /// Returns the samples of quick rows.
    pub(super) fn quick_attempts(&self) -> Vec<Attempt> {
        let quick = self.samples.iter().filter(|sample| self.quick.contains(&sample.attempt.row));
        quick.map(|sample| sample.attempt.clone()).collect()
    }

    /// Returns true if every sample gets the same finite score.
    pub(super) fn is_constant(&self) -> bool {
        let scores: Option<Vec<f64>> = self.samples.iter().map(|sample| sample.answer.outcome.score()).collect();
        scores.is_some_and(|scores| scores.iter().all(|score| super::calls::same(*score, scores[0])))
    }

    /// Returns true if all functions are built in and none of them reads the ground truth: they pay for a form alone.
    pub(super) fn judges_form_alone(&self) -> bool {
        self.bench.printed_lines().is_none()
            && self.bench.rewards().names().iter().all(|name| {
                let reads = |part| function(name).is_some_and(|known| known.reads.contains(&part));
                function(name).is_some() && !reads(RowPart::GroundTruth) && !reads(RowPart::Solution)
            })
    }
}

fn right(known: &KnownRow, row: usize, samples: &[Sample]) -> Option<Right> {
    let own = || samples.iter().filter(move |sample| sample.attempt.row == row);
    let marked = |mark: bool| own().filter(move |sample| sample.is_right == Some(mark));
    let right: Vec<(&str, &Answer)> = marked(true).map(|sample| (sample.attempt.text.as_str(), &sample.answer)).collect();
    let wrong: Vec<&Answer> = marked(false).map(|sample| &sample.answer).collect();
    Right::among(known, &right, &wrong)
}

/// Returns the rows whose calls are not much slower than those of other rows.
fn quick(rows: usize, samples: &[Sample]) -> Vec<usize> {
    let mut times: Vec<Duration> = samples.iter().map(|sample| sample.answer.took).collect();
    times.sort_unstable();
    let usual = times.get(times.len() / 4).copied().unwrap_or_default();
    let slow = |row: usize| {
        samples.iter().any(|sample| sample.attempt.row == row && sample.answer.took > SLOW && sample.answer.took > 5 * usual)
    };
    let quick: Vec<usize> = (0..rows).filter(|row| !slow(*row)).collect();
    if quick.len() < 2 { (0..rows).collect() } else { quick }
}
