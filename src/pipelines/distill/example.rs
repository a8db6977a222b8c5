//! A row of distillation: in the student's tokens and, for a teacher with other tokens, in the teacher's.

use std::ops::Range;

use anyhow::Result;

use super::teacher_tokens::tokenizer;
use crate::pipelines::sft;
use crate::pipelines::stage::{RowFiles, StageExample};
use burnish_algorithm::uld::{TokenGroup, by_byte_ends, by_position};
use burnish_config::DistillConfig;
use burnish_data::examples::{AnswerTokens, TwoTexts};
use burnish_data::{Document, SftExample, Tokenizer};
use burnish_model::Sequence;

/// A row: the student's tokens, and the teacher's if they differ.
#[derive(Clone, Debug)]
pub struct DistillExample {
    pub student: SftExample,
    pub(super) teacher: Option<TeacherRow>,
}

/// A row in the tokens of a teacher with another tokenizer.
#[derive(Clone, Debug)]
pub(super) struct TeacherRow {
    pub document: Document,
    /// The groups of tokens that are compared, each among the predicted tokens of both.
    pub groups: Vec<TokenGroup>,
}

/// The rules by which tokens become groups.
#[derive(Clone, Copy, Debug)]
struct GroupRules {
    /// True: by the bytes at which tokens end; false: by their positions.
    by_bytes: bool,
    /// For the student and for the teacher.
    skips_end: [bool; 2],
}

impl StageExample for DistillExample {
    /// The student's sequences.
    fn sequences(&self) -> Vec<Sequence<'_>> {
        self.student.sequences()
    }

    fn targets(&self) -> Vec<f64> {
        self.student.targets()
    }
}

impl TeacherRow {
    /// The teacher's sequence, which ends with the last token that is compared.
    pub(super) fn sequence(&self) -> Sequence<'_> {
        let (prompt, response, _) = self.document.parts();
        let end = self.groups.iter().map(|group| group.teacher.end).max().unwrap_or(0);
        Sequence::new(prompt, &response[..end])
    }
}

/// Reads rows in the tokens of the student, and of a teacher with other tokens.
///
/// # Errors
/// If a file or row cannot be read; the message names it.
pub(super) fn read(config: &DistillConfig, student: &Tokenizer, rows: &RowFiles) -> Result<Vec<DistillExample>> {
    let algorithm = &config.algorithm;
    if !algorithm.is_uld() || algorithm.is_without_teacher() {
        let own = sft::read(&config.data, student, rows)?;
        return Ok(own.into_iter().map(|student| DistillExample { student, teacher: None }).collect());
    }
    let texts = sft::read_for_two(&config.data, student, &tokenizer(config, student)?, rows)?;
    let rules = GroupRules {
        by_bytes: algorithm.use_extended_uld,
        skips_end: [algorithm.uld_skip_student_eos, algorithm.uld_skip_teacher_eos],
    };
    Ok(texts.into_iter().map(|text| example(text, rules)).collect())
}

fn example(text: TwoTexts, rules: GroupRules) -> DistillExample {
    let TwoTexts { student, teacher: document, answers, cut_before } = text;
    // The place of the first predicted token of each, as a position in its whole document.
    let first = [cut_before + student.parts().0.len(), document.parts().0.len()];
    let end = cut_before + student.ids.len();
    let groups = answers.iter().flat_map(|answer| groups(answer, rules));
    let kept =
        groups.filter(|group| group.student.start >= first[0] && group.student.end <= end && group.teacher.start >= first[1]);
    let among = |tokens: Range<usize>, first: usize| tokens.start - first..tokens.end - first;
    let kept = kept.map(|TokenGroup { student, teacher }| TokenGroup {
        student: among(student, first[0]),
        teacher: among(teacher, first[1]),
    });
    let groups = kept.collect();
    DistillExample { student: SftExample::single(student), teacher: Some(TeacherRow { document, groups }) }
}

/// Returns the groups of an answer, as positions in both documents. The ends of both answers are one group more if neither is
/// skipped.
fn groups(answer: &[AnswerTokens; 2], rules: GroupRules) -> Vec<TokenGroup> {
    let ends = [0, 1].map(|model| {
        let AnswerTokens { ends, after, .. } = &answer[model];
        let behind = (!rules.skips_end[model] && *after > 0).then_some(Some(usize::MAX));
        ends.iter().copied().chain(behind).collect::<Vec<_>>()
    });
    let groups = match rules.by_bytes {
        true => by_byte_ends(&ends[0], &ends[1]),
        false => by_position(ends[0].len(), ends[1].len()),
    };
    let from = |tokens: Range<usize>, model: usize| {
        let first = answer[model].tokens.start;
        first + tokens.start..first + tokens.end
    };
    let placed = |TokenGroup { student, teacher }| TokenGroup { student: from(student, 0), teacher: from(teacher, 1) };
    groups.into_iter().map(placed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The student has three tokens before the answer `abcd`, two after the cut: `a`, `bc`, `d` and an end. The teacher: `ab`,
    /// `cd` and an end.
    fn text(max: usize) -> TwoTexts {
        let tokens = |tokens: Range<usize>, ends: &[usize]| AnswerTokens {
            tokens,
            ends: ends.iter().map(|end| Some(*end)).collect(),
            after: 1,
        };
        let document = |before: usize, trained: usize| Document {
            ids: (0..(before + trained) as u32).collect(),
            weights: [vec![0.0; before], vec![1.0; trained]].concat(),
        };
        let mut student = document(3, 4);
        student.ids.drain(..1);
        student.weights.drain(..1);
        student.ids.truncate(max);
        student.weights.truncate(max);
        let answers = vec![[tokens(3..6, &[1, 3, 4]), tokens(1..3, &[2, 4])]];
        TwoTexts { student, teacher: document(1, 3), answers, cut_before: 1 }
    }

    fn row(text: TwoTexts, by_bytes: bool, skips_end: [bool; 2]) -> (Vec<TokenGroup>, usize) {
        let row = example(text, GroupRules { by_bytes, skips_end }).teacher.unwrap();
        let predicted = row.sequence().response.len();
        (row.groups, predicted)
    }

    #[test]
    fn groups_are_places_among_predicted_tokens() {
        let group = |student, teacher| TokenGroup { student, teacher };
        assert_eq!(row(text(9), true, [true, true]), (vec![group(0..3, 0..2)], 2));
        assert_eq!(row(text(9), true, [false, false]), (vec![group(0..3, 0..2), group(3..4, 2..3)], 3));
        assert_eq!(row(text(9), true, [false, true]).0.len(), 1, "the end of one alone is compared with nothing");
        let positions = row(text(9), false, [true, true]);
        assert_eq!(positions, (vec![group(0..1, 0..1), group(1..2, 1..2)], 2));
        // The cut takes the last token of the group, so that nothing is compared.
        assert_eq!(row(text(4), true, [true, true]), (vec![], 0));
    }
}
