//! The distance between the distributions of two models over two vocabularies, and its derivative.

/// The lower bound of a probability in a factor or a logarithm, TRL's.
pub const SMALLEST: f64 = 1e-8;

/// A distribution over a vocabulary times a factor, the probability of the other tokens of a group. It sums to the factor.
#[derive(Clone, Copy, Debug)]
pub struct Scaled<'a> {
    pub probs: &'a [f32],
    pub factor: f64,
}

impl Scaled<'_> {
    fn at(&self, id: u32) -> f64 {
        self.factor * f64::from(self.probs[id as usize])
    }

    /// Returns some ids, the most probable first.
    fn sorted(&self, ids: impl Iterator<Item = u32>) -> Vec<u32> {
        // Floats that are not negative have the order of their bits.
        let mut keys: Vec<u64> = ids.map(|id| u64::from(self.probs[id as usize].to_bits()) << 32 | u64::from(!id)).collect();
        keys.sort_unstable_by(|a, b| b.cmp(a));
        keys.into_iter().map(|key| !(key as u32)).collect()
    }
}

/// The distance of two distributions.
#[derive(Clone, Debug, Default)]
pub struct UldDistance {
    hybrid: Option<Hybrid>,
}

/// The hybrid distance: tokens of equal text by the generalised Jensen-Shannon divergence, the others sorted (TRL's
/// `_compute_hybrid_uld_loss`).
#[derive(Clone, Debug)]
pub struct Hybrid {
    /// The ids of the student's and the teacher's tokens of equal text.
    matched: Vec<[u32; 2]>,
    student_rest: Vec<u32>,
    teacher_rest: Vec<u32>,
    matched_weight: f64,
    unmatched_weight: f64,
    beta: f64,
}

impl Hybrid {
    /// Creates the hybrid distance for pairs of ids of equal text; ids beyond the vocabularies of the models, `[student,
    /// teacher]`, are left out. `weights`: of matched and other tokens; `None` for the share of the teacher's vocabulary that is
    /// matched, and the rest.
    pub fn new(pairs: &[[u32; 2]], vocabularies: [usize; 2], weights: Option<[f64; 2]>, beta: f64) -> Self {
        let known = |pair: &&[u32; 2]| pair.iter().zip(vocabularies).all(|(id, size)| (*id as usize) < size);
        let matched: Vec<[u32; 2]> = pairs.iter().filter(known).copied().collect();
        let rest = |model: usize| {
            let mut is_matched = vec![false; vocabularies[model]];
            matched.iter().for_each(|pair| is_matched[pair[model] as usize] = true);
            (0..).zip(is_matched).filter(|(_, matched)| !matched).map(|(id, _)| id).collect()
        };
        let share = matched.len() as f64 / vocabularies[1].max(1) as f64;
        let [matched_weight, unmatched_weight] = weights.unwrap_or([share, 1.0 - share]);
        Self { student_rest: rest(0), teacher_rest: rest(1), matched, matched_weight, unmatched_weight, beta }
    }
}

impl UldDistance {
    /// Creates the distance; without `hybrid` all tokens are sorted.
    pub fn new(hybrid: Option<Hybrid>) -> Self {
        Self { hybrid }
    }

    /// Returns the distance of a group, and writes its derivative by each of the student's scaled probabilities to `slopes`
    /// [student's vocabulary].
    pub fn of(&self, student: Scaled, teacher: Scaled, slopes: &mut [f32]) -> f64 {
        match &self.hybrid {
            None => {
                let all = |probs: &[f32]| 0..probs.len() as u32;
                sorted_l1((student, all(student.probs)), (teacher, all(teacher.probs)), 1.0, slopes)
            }
            Some(hybrid) => hybrid.of(student, teacher, slopes),
        }
    }
}

impl Hybrid {
    fn of(&self, student: Scaled, teacher: Scaled, slopes: &mut [f32]) -> f64 {
        let mut matched = 0.0;
        for &[own, other] in &self.matched {
            let (value, slope) = jsd_term(student.at(own), teacher.at(other), self.beta);
            matched += value;
            slopes[own as usize] = (self.matched_weight * slope) as f32;
        }
        if self.student_rest.is_empty() || self.teacher_rest.is_empty() {
            self.student_rest.iter().for_each(|&id| slopes[id as usize] = 0.0);
            return self.matched_weight * matched;
        }
        let rest = |ids: &Vec<u32>| ids.clone().into_iter();
        let unmatched =
            sorted_l1((student, rest(&self.student_rest)), (teacher, rest(&self.teacher_rest)), self.unmatched_weight, slopes);
        self.matched_weight * matched + self.unmatched_weight * unmatched
    }
}

/// Returns Σ |P − Q| of the probabilities of some ids of each, both in descending order; the shorter is followed by zeros.
/// Writes the derivative by P, times `weight`, to the places of these ids.
fn sorted_l1<I: Iterator<Item = u32>>(student: (Scaled, I), teacher: (Scaled, I), weight: f64, slopes: &mut [f32]) -> f64 {
    let (own, other) = (student.0.sorted(student.1), teacher.0.sorted(teacher.1));
    let mut sum = 0.0;
    for (rank, &id) in own.iter().enumerate() {
        let apart = student.0.at(id) - other.get(rank).map_or(0.0, |&id| teacher.0.at(id));
        sum += apart.abs();
        let sign = if apart == 0.0 { 0.0 } else { apart.signum() };
        slopes[id as usize] = (weight * sign) as f32;
    }
    sum + other.iter().skip(own.len()).map(|&id| teacher.0.at(id)).sum::<f64>()
}

/// Returns the term of a token in the generalised Jensen-Shannon divergence of scaled probabilities, each at least
/// [`SMALLEST`], and its derivative by the student's (TRL's `generalized_jsd_loss` with `logits_are_probs`).
fn jsd_term(student: f64, teacher: f64, beta: f64) -> (f64, f64) {
    let (p, q) = (student.max(SMALLEST), teacher.max(SMALLEST));
    let (value, slope) = if beta == 0.0 {
        (q * (q.ln() - p.ln()), -q / p)
    } else if beta == 1.0 {
        (p * (p.ln() - q.ln()), p.ln() - q.ln() + 1.0)
    } else {
        let m = ((1.0 - beta) * p + beta * q).ln();
        (beta * q * (q.ln() - m) + (1.0 - beta) * p * (p.ln() - m), (1.0 - beta) * (p.ln() - m))
    };
    (value, if student < SMALLEST { 0.0 } else { slope })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUDENT: [f32; 4] = [0.1, 0.55, 0.05, 0.3];
    const TEACHER: [f32; 6] = [0.02, 0.4, 0.3, 0.08, 0.16, 0.04];

    fn distance(of: &UldDistance, student: &[f32]) -> (f64, Vec<f32>) {
        let mut slopes = vec![f32::NAN; student.len()];
        let teacher = Scaled { probs: &TEACHER, factor: 0.8 };
        let value = of.of(Scaled { probs: student, factor: 0.6 }, teacher, &mut slopes);
        (value, slopes)
    }

    /// Descending, the student has 0.33, 0.18, 0.06, 0.03 and the teacher 0.32, 0.24, 0.128, 0.064, 0.032, 0.016.
    #[test]
    fn both_are_sorted_and_the_shorter_is_padded() {
        let (value, slopes) = distance(&UldDistance::default(), &STUDENT);
        assert!((value - (0.01 + 0.06 + 0.068 + 0.034 + 0.032 + 0.016)).abs() < 1e-7, "{value}");
        assert_eq!(slopes, [-1.0, 1.0, -1.0, -1.0]);
    }

    #[test]
    fn slopes_are_those_of_the_values() {
        let pairs = [[0, 1], [3, 2], [9, 0]];
        let hybrids = [0.0, 0.3, 1.0].map(|beta| Some(Hybrid::new(&pairs, [4, 6], None, beta)));
        for hybrid in hybrids.into_iter().chain([None, Some(Hybrid::new(&pairs, [4, 6], Some([0.7, 2.0]), 0.5))]) {
            let of = UldDistance::new(hybrid);
            let (_, slopes) = distance(&of, &STUDENT);
            for i in 0..STUDENT.len() {
                let at = |step: f32| {
                    let mut moved = STUDENT;
                    moved[i] += step;
                    distance(&of, &moved).0
                };
                let step = 1.0 / 4096.0;
                let expected = (at(step) - at(-step)) / f64::from(2.0 * step) / 0.6;
                assert!((expected - f64::from(slopes[i])).abs() < 1e-4, "{of:?} at {i}: {}, not {expected}", slopes[i]);
            }
        }
    }

    /// Two thirds of the teacher's tokens are matched: the weights follow, and equal distributions have no distance.
    #[test]
    fn weights_follow_the_share_of_the_vocabulary() {
        let pairs = [[0, 0], [1, 1], [2, 2], [3, 3]];
        let hybrid = Hybrid::new(&pairs, [4, 6], None, 0.5);
        assert_eq!((hybrid.matched_weight, hybrid.unmatched_weight), (4.0 / 6.0, 1.0 - 4.0 / 6.0));
        let of = UldDistance::new(Some(Hybrid::new(&pairs, [4, 4], None, 0.5)));
        let same = Scaled { probs: &STUDENT, factor: 0.5 };
        let mut slopes = vec![f32::NAN; 4];
        assert_eq!(of.of(same, same, &mut slopes), 0.0);
        assert_eq!(slopes, [0.0; 4]);
    }
}
