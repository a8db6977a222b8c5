//! Right responses: those that the rows mark, or the ground truth in the form that scores highest.

use super::bench::{Bench, OutOfTime};
use super::calls::{Answer, Attempt};
use super::forms::{FORMS, filled};
use super::row::KnownRow;
use super::texts::last_as_words;

/// Rows with which forms are compared.
const COMPARED: usize = 3;
/// Number of the best forms in which a wrong answer is tried as well.
const TRIED: usize = 6;
/// Share of a right response's score that a text without an answer must reach to win.
const WINS_AT: f64 = 0.8;

/// A right response to a row, with the scores that decide about others.
#[derive(Clone, Debug)]
pub(super) struct Right {
    pub(super) text: String,
    /// The answer within `text`, as (start, end), if it is there word by word.
    pub(super) answer: Option<(usize, usize)>,
    /// Score of the right response that scores lowest.
    pub(super) lowest: f64,
    /// Highest score of a response that is known to be wrong.
    pub(super) wrong: Option<f64>,
}

impl Right {
    /// Chooses among the right responses to a row, with the scores of all that are wrong.
    pub(super) fn among(row: &KnownRow, right: &[(&str, &Answer)], wrong: &[&Answer]) -> Option<Self> {
        let scores: Option<Vec<f64>> = right.iter().map(|(_, answer)| answer.outcome.score()).collect();
        let lowest = scores?.into_iter().reduce(f64::min)?;
        let located = |text: &str| row.truths.iter().find_map(|truth| last_as_words(text, truth));
        let (text, _) = right.iter().find(|(text, _)| located(text).is_some()).or(right.first())?;
        let wrong = wrong.iter().filter_map(|answer| answer.outcome.score()).reduce(f64::max);
        Some(Self { text: (*text).to_owned(), answer: located(text), lowest, wrong })
    }

    /// Returns the score with which a text without an answer wins. `None` if no score can tell: right responses earn nothing, and
    /// wrong ones no less.
    pub(super) fn threshold(&self) -> Option<f64> {
        if self.lowest > 0.0 {
            return Some(WINS_AT * self.lowest);
        }
        let wrong = self.wrong.filter(|wrong| *wrong < self.lowest)?;
        Some(self.lowest - (1.0 - WINS_AT) * (self.lowest - wrong))
    }

    /// Returns the right response with another answer in it.
    pub(super) fn with_answer(&self, answer: &str) -> Option<String> {
        let (start, end) = self.answer?;
        Some(format!("{}{answer}{}", &self.text[..start], &self.text[end..]))
    }
}

/// A form and the reading of the ground truth that fits into it.
#[derive(Clone, Copy, Debug)]
pub(super) struct BestForm {
    form: &'static str,
    reading: usize,
}

impl BestForm {
    /// Returns a response to the row that gives the answer of `of`; `None` if that has no such reading.
    pub(super) fn response(&self, of: &KnownRow) -> Option<String> {
        Some(filled(self.form, of.truths.get(self.reading)?))
    }
}

/// Returns the form whose right answers score higher than wrong ones; `None` if no form does.
///
/// # Errors
/// If the time is over.
pub(super) fn best_form(bench: &Bench, rows: &[KnownRow]) -> Result<Option<BestForm>, OutOfTime> {
    let compared: Vec<usize> = (0..rows.len()).filter(|i| !rows[*i].truths.is_empty()).take(COMPARED).collect();
    let readings = compared.iter().map(|i| rows[*i].truths.len()).max().unwrap_or(0);
    let mut ranked: Vec<(f64, BestForm)> = Vec::new();
    for (form, reading) in FORMS.iter().flat_map(|form| (0..readings).map(move |reading| (*form, reading))) {
        let best = BestForm { form, reading };
        let scores = scored(bench, compared.iter().filter_map(|i| Some((*i, best.response(&rows[*i])?))))?;
        if !scores.is_empty() {
            ranked.push((scores.iter().sum::<f64>() / scores.len() as f64, best));
        }
    }
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (mean, best) in ranked.into_iter().take(TRIED) {
        let wrong = compared.iter().filter_map(|i| Some((*i, best.response(other_answer(rows, *i)?)?)));
        let wrong = scored(bench, wrong)?;
        if !wrong.is_empty() && wrong.iter().sum::<f64>() / (wrong.len() as f64) < mean - 1e-6 {
            return Ok(Some(best));
        }
    }
    Ok(None)
}

/// Returns the next row with another answer.
pub(super) fn other_answer(rows: &[KnownRow], row: usize) -> Option<&KnownRow> {
    others(rows, row).next()
}

/// Returns the rows with other answers, beginning behind this row; each answer once.
pub(super) fn others(rows: &[KnownRow], row: usize) -> impl Iterator<Item = &KnownRow> {
    let mut seen = vec![rows[row].truths.first()];
    let following = (1..rows.len()).map(move |step| &rows[(row + step) % rows.len()]);
    following.filter(move |other| {
        let is_new = !other.truths.is_empty() && !seen.contains(&other.truths.first());
        seen.push(other.truths.first());
        is_new
    })
}

fn scored(bench: &Bench, texts: impl Iterator<Item = (usize, String)>) -> Result<Vec<f64>, OutOfTime> {
    let attempts: Vec<Attempt> = texts.map(|(row, text)| Attempt { row, text }).collect();
    Ok(bench.alone(&attempts)?.iter().filter_map(|answer| answer.outcome.score()).collect())
}
