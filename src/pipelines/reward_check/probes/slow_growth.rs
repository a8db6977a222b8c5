//! The time of a call grows faster than the length of the response: patterns that backtrack.

use super::super::bench::OutOfTime;
use super::super::calls::{Attempt, Outcome};
use super::super::probe::Probe;
use super::super::study::Study;
use burnish_doctor::Finding;

pub(super) const PROBE: Probe = Probe {
    name: "slow_growth",
    meaning: "A model that repeats itself holds up the whole step until reward.timeout.",
    remedy: "Rewrite the pattern without nested repetition, or search only the last few hundred characters.",
    judge,
};

/// Numbers of characters that are tried; the first shows patterns whose time doubles with every character.
const LENGTHS: [usize; 2] = [40, 8_000];
/// Seconds for a response of any of these lengths that are too long.
const TOO_LONG: f64 = 2.0;
/// Pieces that are repeated, and an end on which a pattern fails.
const PIECES: &[&str] = &[
    "a",
    "1",
    " ",
    "a ",
    "\n",
    "(",
    "<think>",
    "<think></think>",
    "<answer></answer>",
    "\\boxed{",
    "{",
    "1+",
    "#### ",
    "\\",
    "A. ",
];

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    let record = study.bench.record();
    if let Some(hung) = record.iter().find(|call| matches!(call.outcome, Outcome::TooSlow)) {
        let sentence = "a call was ended because it took longer than the limit of a call";
        let place = &study.rows[hung.attempt.row].place;
        return Ok(Finding::fail(None, sentence).shown_by(place, &hung.attempt.text));
    }
    let row = study.quick[0];
    let right = study.rights[row].as_ref();
    let mut worst = (0.0, String::new(), 0);
    for length in LENGTHS {
        for piece in PIECES {
            let text = format!("{}!", piece.repeat(length / piece.len()));
            let plain = [
                Some(text.clone()),
                right.and_then(|right| right.with_answer(&text)),
                right.map(|right| format!("{}{text}", right.text)),
            ];
            for text in plain.into_iter().flatten() {
                let attempt = Attempt { row, text };
                study.bench.odd.set(true);
                let answer = study.bench.one(&attempt, row);
                study.bench.odd.set(false);
                let answer = answer?;
                let seconds = answer.took.as_secs_f64();
                let is_killed = matches!(answer.outcome, Outcome::TooSlow);
                if is_killed || seconds > TOO_LONG {
                    let ended = if is_killed { "it was ended after" } else { "it takes" };
                    let sentence =
                        format!("a response of {length} characters, {piece:?} repeated, is slow: {ended} {seconds:.1} s");
                    let shown: String = attempt.text.chars().take(60).collect();
                    return Ok(Finding::fail(seconds, sentence).shown_by(&study.rows[row].place, &shown));
                }
                if seconds > worst.0 {
                    worst = (seconds, (*piece).to_owned(), length);
                }
            }
        }
    }
    let (seconds, piece, length) = worst;
    Ok(Finding::pass(seconds, format!("the slowest long response, {length} characters of {piece:?}, takes {seconds:.3} s")))
}
