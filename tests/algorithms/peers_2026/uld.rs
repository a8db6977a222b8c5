//! Distillation between models with other tokens: TRL's `ULDLoss` of GOLD.

use burn::tensor::Tensor;
use burnish::algorithm::uld::{Hybrid, SMALLEST, Scaled, TokenGroup, TokenMerge, UldDistance, by_byte_ends, by_position};
use burnish::model::ops::{Head, head_backward, head_distributions, head_distributions_backward, head_stats, index};
use burnish::model::token_stats::TokenGrads;
use serde_json::{Value, json};

use super::case::{PeerCase, number};
use super::distillation::Logits;
use super::entry::{Entry, Precision, never};

/// `observed` gets the rows that the peer reads, which are one too late (`TokenMerge::parts`): the formulas are compared, and
/// the trainer reads the rows that belong to the tokens.
pub(super) const ENTRIES: &[Entry] =
    &[Entry { algorithm: "gold_uld", precision: Precision::Column, run: uld, left_out: &[], deviates: never }];

/// One model of a case.
struct Side<'a> {
    case: &'a PeerCase<'a>,
    name: &'a str,
    logits: Logits,
}

/// The answer of a row: its first token, the number of its tokens without the last one, and where it begins among the tokens
/// that are compared.
struct Answer {
    first: usize,
    tokens: usize,
    begins: usize,
}

impl<'a> Side<'a> {
    fn new(case: &'a PeerCase, name: &'a str, temperature: f64) -> Self {
        Self { case, name, logits: Logits::new(case, &format!("{name}_logits"), temperature) }
    }

    fn rows(&self, what: &str) -> &'a Vec<Value> {
        self.case.json["in"][format!("{}_{what}", self.name)].as_array().unwrap()
    }

    fn labels(&self, row: usize) -> Vec<f64> {
        self.rows("labels")[row].as_array().unwrap().iter().map(number).collect()
    }

    fn answers(&self) -> Vec<Answer> {
        let mut begins = 0;
        let answer = |row: usize| {
            let labels = self.labels(row);
            let trained = labels.iter().filter(|label| **label >= 0.0).count();
            let first = labels.iter().position(|label| *label >= 0.0).unwrap();
            let answer = Answer { first, tokens: trained - 1, begins };
            begins += answer.tokens;
            answer
        };
        (0..self.rows("labels").len()).map(answer).collect()
    }

    /// Returns the ends of the tokens of an answer.
    fn ends(&self, row: usize, answer: &Answer) -> Vec<Option<usize>> {
        let offsets = self.rows("byte_offsets")[row].as_array().unwrap();
        offsets[answer.first..answer.first + answer.tokens].iter().map(|pair| Some(number(&pair[1]) as usize)).collect()
    }

    /// Returns the targets of some tokens, pairs of row and position, and the places of their predictions, `shift` before.
    fn places(&self, tokens: &[(usize, usize)], shift: usize) -> (Vec<u32>, Vec<usize>) {
        let width = self.labels(0).len();
        let target = |&(row, t): &(usize, usize)| number(&self.rows("ids")[row][t]) as u32;
        (tokens.iter().map(target).collect(), tokens.iter().map(|(row, t)| row * width + t - shift).collect())
    }

    fn hidden(&self, places: &[usize]) -> Tensor<2> {
        self.logits.hidden.clone().select(0, index(places.iter().copied(), &self.logits.hidden.device()))
    }
}

fn answer_tokens(answers: &[Answer]) -> Vec<(usize, usize)> {
    let tokens = |(row, answer): (usize, &Answer)| (answer.first..answer.first + answer.tokens).map(move |t| (row, t)).collect();
    answers.iter().enumerate().flat_map(|(row, answer)| -> Vec<(usize, usize)> { tokens((row, answer)) }).collect()
}

fn uld(case: &PeerCase) -> Value {
    let is_on = |name: &str| case.option(name).as_bool().unwrap();
    assert!(is_on("uld_skip_student_eos") && is_on("uld_skip_teacher_eos"), "{}: ends are left out here", case.id());
    let temperature = case.option_number("uld_student_temperature");
    let student = Side::new(case, "student", temperature);
    let teacher = Side::new(case, "teacher", case.option_number("uld_teacher_temperature"));
    let (merge, shift) = match case.option_word("uld_token_merge_strategy") {
        "bayesian" => (TokenMerge::Bayesian, 1),
        _ => (TokenMerge::Observed, 0),
    };
    let vocabularies = [student.logits.vocabulary, teacher.logits.vocabulary];
    let hybrid = is_on("uld_use_hybrid_loss").then(|| {
        let [own, other] = ["student", "teacher"].map(|name| case.json["in"][format!("{name}_vocabulary")].as_object().unwrap());
        let id = |value: &Value| number(value) as u32;
        let pairs: Vec<[u32; 2]> = own.iter().filter_map(|(text, own)| Some([id(own), id(other.get(text)?)])).collect();
        let weights = ["uld_hybrid_matched_weight", "uld_hybrid_unmatched_weight"].map(|name| case.option(name).as_f64());
        let weights = weights[0].zip(weights[1]).map(|(matched, other)| [matched, other]);
        Hybrid::new(&pairs, vocabularies, weights, case.option_number("beta"))
    });
    let distance = UldDistance::new(hybrid);
    let [own, other] = [student.answers(), teacher.answers()];
    let mut groups: Vec<(TokenGroup, f64)> = Vec::new();
    for (row, (a, b)) in own.iter().zip(&other).enumerate() {
        let of_row = match is_on("use_extended_uld") {
            true => by_byte_ends(&student.ends(row, a), &teacher.ends(row, b)),
            false => by_position(a.tokens, b.tokens),
        };
        let share = case.option_number("uld_distillation_weight") / (of_row.len() * own.len()) as f64;
        groups.extend(of_row.into_iter().map(|TokenGroup { student, teacher }| {
            let student = a.begins + student.start..a.begins + student.end;
            (TokenGroup { student, teacher: b.begins + teacher.start..b.begins + teacher.end }, share)
        }));
    }
    let (targets, places) = student.places(&answer_tokens(&own), shift);
    let (teacher_targets, teacher_places) = teacher.places(&answer_tokens(&other), shift);
    let [hidden, teacher_hidden] = [student.hidden(&places), teacher.hidden(&teacher_places)];
    let head = Head { hidden: &hidden, w: &student.logits.identity, softcap: None };
    let teacher_head = Head { hidden: &teacher_hidden, w: &teacher.logits.identity, softcap: None };
    let stats = head_stats(head, &targets, None);
    let of_teacher = head_stats(teacher_head, &teacher_targets, None).tokens.log_prob;
    let factor = |log_probs: &[f32], tokens: std::ops::Range<usize>| -> f64 {
        log_probs[tokens].iter().map(|log| f64::from(*log).exp().max(SMALLEST)).product()
    };
    let mut gradient =
        vec![0.0; case.json["in"]["student_logits"].as_array().unwrap().len() * student.labels(0).len() * vocabularies[0]];
    let mut add = |places: &[usize], d: Tensor<2>, scale: f64| {
        let d: Vec<f32> = d.into_data().try_to_vec().unwrap();
        for (place, d) in places.iter().zip(d.chunks(vocabularies[0])) {
            let own = &mut gradient[place * vocabularies[0]..];
            own.iter_mut().zip(d).for_each(|(sum, d)| *sum += f64::from(*d) * scale);
        }
    };
    let (mut loss, mut by_log_prob) = (0.0, vec![0.0; targets.len()]);
    for (TokenGroup { student: own, teacher: other }, share) in groups {
        let [(base, factors), (teacher_base, teacher_factors)] = [own, other].map(|tokens| merge.parts(tokens));
        let (p, q) = (head_distributions(head, &[base]), head_distributions(teacher_head, &[teacher_base]));
        let of_student = Scaled { probs: &p, factor: factor(&stats.tokens.log_prob, factors.clone()) };
        let mut slopes = vec![0.0; vocabularies[0]];
        loss += share * distance.of(of_student, Scaled { probs: &q, factor: factor(&of_teacher, teacher_factors) }, &mut slopes);
        let by_factor: f64 = slopes.iter().zip(&p).map(|(slope, p)| f64::from(slope * p)).sum();
        factors.for_each(|token| by_log_prob[token] += (share * by_factor * of_student.factor) as f32);
        slopes.iter_mut().for_each(|slope| *slope *= (share * of_student.factor) as f32);
        add(&places[base..=base], head_distributions_backward(head, &[base], &p, &slopes, None), 1.0 / temperature);
    }
    let grads = |log_prob: Vec<f32>| TokenGrads { entropy: vec![0.0; log_prob.len()], log_prob, full_kl: Vec::new() };
    add(&places, head_backward(head, &targets, &stats, &grads(by_log_prob), None, None), 1.0 / temperature);
    // The likelihood of all labels, at temperature 1.
    let weight = case.option_number("uld_crossentropy_weight");
    let labelled = |row: usize| {
        student
            .labels(row)
            .into_iter()
            .enumerate()
            .filter(|(_, label)| *label >= 0.0)
            .map(move |(t, _)| (row, t))
            .collect::<Vec<_>>()
    };
    let tokens: Vec<(usize, usize)> = (0..own.len()).flat_map(labelled).collect();
    let (targets, places) = student.places(&tokens, 1);
    let plain = Side::new(case, "student", 1.0);
    let hidden = plain.hidden(&places);
    let head = Head { hidden: &hidden, w: &plain.logits.identity, softcap: None };
    let stats = head_stats(head, &targets, None);
    let share = weight / targets.len() as f64;
    loss -= share * stats.tokens.log_prob.iter().map(|log| f64::from(*log)).sum::<f64>();
    add(&places, head_backward(head, &targets, &stats, &grads(vec![-share as f32; targets.len()]), None, None), 1.0);
    let rows = gradient.chunks(vocabularies[0]).collect::<Vec<_>>();
    let gradient: Vec<&[&[f64]]> = rows.chunks(student.labels(0).len()).collect();
    json!({ "loss": loss, "grad_student_logits": gradient })
}
