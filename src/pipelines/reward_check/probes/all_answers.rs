//! All answers of the data in one response, the right one neither first nor last.

use super::super::probe::Probe;
use super::super::right::others;
use super::super::wins::judge;

pub(super) const PROBE: Probe = Probe {
    name: "all_answers_win",
    meaning: "The model learns to list answers until one is right.",
    remedy: "Take exactly one answer, the last, and give nothing if there are several.",
    judge: |study| {
        judge(study, "a list of many answers", false, |study, row, known, right| {
            let Some(own) = known.truths.first() else { return Vec::new() };
            let mut answers: Vec<&str> =
                others(study.rows, row).filter_map(|other| Some(other.truths.first()?.as_str())).take(8).collect();
            if answers.len() < 2 {
                return Vec::new();
            }
            answers.insert(answers.len() / 2, own);
            let each: Option<Vec<String>> = answers.iter().map(|answer| right.with_answer(answer)).collect();
            vec![
                each.as_ref().map(|each| each.join("\n")),
                each.map(|each| each.join(" ")),
                right.with_answer(&answers.join(", ")),
                right.with_answer(&answers.join(" or ")),
                Some(answers.join("\n")),
            ]
        })
    },
};
