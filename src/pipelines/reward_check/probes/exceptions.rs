//! A response raises an error: a sample, a trick of another probe, or an odd text.

use super::super::bench::OutOfTime;
use super::super::calls::{Attempt, Outcome};
use super::super::probe::Probe;
use super::super::study::Study;
use burnish_doctor::Finding;
use burnish_util::filler::filler;

pub(super) const PROBE: Probe = Probe {
    name: "exception",
    meaning: "The error ends the run, unless reward.on_error says otherwise.",
    remedy: "Catch what the text of a model can cause, and return the lowest score.",
    judge,
};

/// Texts that break parsers. A model writes each of them sooner or later.
#[rustfmt::skip]
const ODD: &[&str] = &[
    "<think>", "<answer>", "\\boxed{", "\\boxed{\\frac{1}{0}}", "####", "#### -", "#### .", "Answer:", "{", "[]", "null",
    "\"text\"", "{}", "nan", "inf", "1e999", "1/0", "<answer></answer>", "\u{0}", "\u{1f600}\u{200d}\u{301}", "١٢٣", "½",
    "-", ".", "```python\nprint(",
];

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    study.bench.odd.set(true);
    let in_place = |answer: &str| study.rights[study.quick[0]].as_ref().and_then(|right| right.with_answer(answer));
    let odd = ODD.iter().flat_map(|text| [Some((*text).to_owned()), in_place(text)]).flatten();
    let odd: Vec<Attempt> = odd.chain([filler(200)]).map(|text| Attempt { row: study.quick[0], text }).collect();
    let asked = study.bench.alone(&odd);
    study.bench.odd.set(false);
    asked?;
    let record = study.bench.record();
    let is_blank = |text: &str| text.trim().is_empty();
    let raised: Vec<_> =
        record.iter().filter(|call| matches!(call.outcome, Outcome::Raised(_)) && !is_blank(&call.attempt.text)).collect();
    let Some(first) = raised.iter().find(|call| !call.is_odd).or(raised.first()) else {
        return Ok(Finding::pass(0.0, format!("no error in {} calls", record.len())));
    };
    let sentence = format!(
        "{} of {} calls raise an error: {}",
        raised.len(),
        record.len(),
        first.outcome.shown().trim_start_matches("the error ")
    );
    let judged = if first.is_odd { Finding::warn } else { Finding::fail };
    Ok(judged(Some(raised.len() as f64), sentence).shown_by(&study.rows[first.attempt.row].place, &first.attempt.text))
}
