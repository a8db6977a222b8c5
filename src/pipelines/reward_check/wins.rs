//! Texts that earn a right response's score without giving the answer.

use super::bench::OutOfTime;
use super::calls::{Attempt, number};
use super::right::Right;
use super::row::KnownRow;
use super::study::Study;
use burnish_doctor::Finding;

/// Rows in which a text is tried.
const ROWS: usize = 8;

/// Texts for a row. Texts at the same place of the lists of several rows are one way to win.
pub(super) type Tricks = fn(&Study, usize, &KnownRow, &Right) -> Vec<Option<String>>;

/// Judges whether one of the tricks wins in half of the rows. `named` completes "8 of 8 rows: …". `full` demands all of a right
/// response's score; otherwise 0.8 of it is enough.
pub(super) fn judge(study: &Study, named: &str, full: bool, tricks: Tricks) -> Result<Finding, OutOfTime> {
    if study.judges_form_alone() {
        return Ok(Finding::not_applicable("the function does not read the ground truth, so it pays for a form alone"));
    }
    if study.is_constant() {
        return Ok(Finding::not_applicable("all scores are equal"));
    }
    let of_rows = study.quick.iter().filter_map(|row| {
        let right = study.rights[*row].as_ref()?;
        let least = if full { right.lowest - 1e-6 * right.lowest.abs() } else { right.threshold()? };
        right.threshold().map(|_| (*row, right, least))
    });
    let judged: Vec<(usize, &Right, f64)> = of_rows.take(ROWS).collect();
    if judged.is_empty() {
        return Ok(Finding::not_applicable(NO_RIGHT));
    }
    let ways: Vec<Vec<Option<String>>> =
        judged.iter().map(|(row, right, _)| tricks(study, *row, &study.rows[*row], right)).collect();
    let mut best: Option<Way> = None;
    for way in 0..ways.iter().map(Vec::len).max().unwrap_or(0) {
        let mut tried = Way::default();
        for ((row, right, least), texts) in judged.iter().zip(&ways) {
            let Some(Some(text)) = texts.get(way) else { continue };
            let attempt = Attempt { row: *row, text: text.clone() };
            tried.rows += 1;
            let Some(score) = study.bench.one(&attempt, *row)?.outcome.score() else { continue };
            if score >= *least && (score > 0.0 || right.lowest <= 0.0) {
                tried.won += 1;
                tried.example.get_or_insert((attempt, score, right.lowest));
            }
        }
        if tried.rows > 0 && best.as_ref().is_none_or(|best| tried.won * best.rows > best.won * tried.rows) {
            best = Some(tried);
        }
        if best.as_ref().is_some_and(|best| 2 * best.won >= best.rows) {
            break;
        }
    }
    let Some(Way { rows, won, example }) = best else {
        return Ok(Finding::not_applicable("the rows and their answers do not allow this text"));
    };
    let share = won as f64 / rows as f64;
    let sentence = format!("{won} of {rows} rows: {named}");
    Ok(match example {
        Some((attempt, score, lowest)) if 2 * won >= rows => {
            let sentence = format!("{sentence} gets {} where a right response gets {}", number(score), number(lowest));
            Finding::fail(share, sentence).shown_by(&study.rows[attempt.row].place, &attempt.text)
        }
        _ => Finding::pass(share, format!("{sentence} wins")),
    })
}

/// The reason why no trick can be judged.
pub(super) const NO_RIGHT: &str =
    "no right response is known: the rows mark none, and no form of the ground truth scores higher than a wrong answer";

/// One way to win, tried in all rows.
#[derive(Default)]
struct Way {
    rows: usize,
    won: usize,
    example: Option<(Attempt, f64, f64)>,
}
