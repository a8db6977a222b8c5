//! A right response earns more behind many words that say nothing.

use super::super::bench::OutOfTime;
use super::super::calls::Attempt;
use super::super::calls::number;
use super::super::probe::Probe;
use super::super::study::Study;
use super::super::wins::NO_RIGHT;
use burnish_doctor::Finding;
use burnish_util::filler::filler;

pub(super) const PROBE: Probe = Probe {
    name: "length_bonus",
    meaning: "Longer responses earn more than shorter ones that are as right: the length grows without end.",
    remedy: "Take the length out of the score, or only subtract for it.",
    judge,
};

/// Growth of the score that counts, as a share of the score.
const COUNTS: f64 = 0.1;

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    let right = study.quick.iter().find_map(|row| Some((*row, study.rights[*row].as_ref()?)));
    let Some((row, right)) = right.filter(|_| !study.judges_form_alone()) else { return Ok(Finding::not_applicable(NO_RIGHT)) };
    if !study.is_steady()? {
        return Ok(Finding::not_applicable("scores differ between equal calls, so nothing can be said about the length"));
    }
    let mut scores = Vec::new();
    for words in [0, 100, 1_000] {
        for text in [format!("{}\n{}", filler(words), right.text), format!("{}\n{}", right.text, filler(words))] {
            let attempt = Attempt { row, text: if words == 0 { right.text.clone() } else { text } };
            scores.push((study.bench.one(&attempt, row)?.outcome.score(), words));
        }
    }
    let plain = scores[0].0.unwrap_or(right.lowest);
    let longer = scores.iter().skip(2).filter_map(|(score, words)| Some(((*score)?, *words)));
    let Some((most, words)) = longer.max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return Ok(Finding::not_applicable("long responses get no score"));
    };
    if most <= plain + COUNTS * plain.abs().max(1e-3) {
        return Ok(Finding::pass(
            most - plain,
            format!("a right response gets {} alone and {} with {words} words more", number(plain), number(most)),
        ));
    }
    let sentence =
        format!("a right response gets {}, and {} with {words} words more that say nothing", number(plain), number(most));
    Ok(Finding::fail(most - plain, sentence).shown_by(&study.rows[row].place, &right.text))
}
