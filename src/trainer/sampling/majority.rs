//! The expected value of a majority vote among sampled answers (`maj@k`).

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use rayon::prelude::*;

/// Probabilities below this are dropped: they change no digit of a sum of probabilities.
const NEGLIGIBLE: f64 = 1e-20;

/// Probability that an answer wins the vote, for each partition of samples by answer that occurs; prompts and variables share
/// partitions.
pub(crate) struct Votes(HashMap<(Vec<usize>, usize), Vec<f64>>);

impl Votes {
    /// Computes the votes of samples with these answers, for each number of draws.
    pub(super) fn new<'a>(answers: impl Iterator<Item = &'a [String]>, draws: &[usize]) -> Self {
        let cases: BTreeSet<(Vec<usize>, usize)> = answers
            .flat_map(|answers| {
                let sizes: Vec<usize> = classes(answers).iter().map(Vec::len).collect();
                draws.iter().map(move |&draws| (sizes.clone(), draws))
            })
            .collect();
        let probabilities = |(sizes, draws): (Vec<usize>, usize)| {
            let won = wins(&sizes, draws);
            ((sizes, draws), won)
        };
        Self(cases.into_par_iter().map(probabilities).collect())
    }

    /// Returns mean and standard deviation of the value of the most frequent answer among `draws` samples drawn with replacement.
    /// Among equally frequent answers the first drawn counts, and among its values the first drawn. `None` for answers or a
    /// number of draws that [`Votes::new`] did not get.
    ///
    /// verl estimates them from 1,000 such draws (`bootstrap_metric`, `calc_maj_val`); here they are exact. By symmetry, each of
    /// the equally frequent answers is equally likely to be drawn first, and so is each sample of that answer. So only the
    /// probability that an answer wins is needed, and the mean and mean square of its values.
    pub(crate) fn majority(&self, answers: &[String], values: &[f64], draws: usize) -> Option<[f64; 2]> {
        let classes = classes(answers);
        let won = self.0.get(&(classes.iter().map(Vec::len).collect(), draws))?;
        let moment = |power: i32| -> f64 {
            let of = |class: &Vec<usize>| class.iter().map(|&i| values[i].powi(power)).sum::<f64>() / class.len() as f64;
            classes.iter().zip(won).map(|(class, won)| won * of(class)).sum()
        };
        let mean = moment(1);
        Some([mean, (moment(2) - mean * mean).max(0.0).sqrt()])
    }
}

/// Groups samples by answer, the most frequent answer first.
fn classes(answers: &[String]) -> Vec<Vec<usize>> {
    let mut place = HashMap::new();
    let mut classes: Vec<Vec<usize>> = Vec::new();
    for (i, answer) in answers.iter().enumerate() {
        let at = *place.entry(answer).or_insert(classes.len());
        classes.resize_with(classes.len().max(at + 1), Vec::new);
        classes[at].push(i);
    }
    classes.sort_by_key(|class| Reverse(class.len()));
    classes
}

/// Returns for each class the probability that most of `draws` samples belong to it; ties are shared equally.
fn wins(sizes: &[usize], draws: usize) -> Vec<f64> {
    let mut known: HashMap<usize, f64> = HashMap::new();
    let mut win = |own: usize| match known.get(&own) {
        Some(probability) => *probability,
        None => {
            let probability = win(own, sizes, draws);
            known.insert(own, probability);
            probability
        }
    };
    sizes.iter().map(|&own| win(own)).collect()
}

/// Returns the probability that a class of `own` samples wins against the other classes of `sizes`, which includes it.
///
/// Counts of classes among the draws are independent Poisson variables conditioned on the sum `draws`. Products of their
/// probabilities, kept by sum and by number of ties, cover every case.
fn win(own: usize, sizes: &[usize], draws: usize) -> f64 {
    let total: usize = sizes.iter().sum();
    let counts = |size: usize| poisson(draws as f64 * size as f64 / total as f64, draws);
    let (mine, rest) = (counts(own), counts(total - own));
    let mut others: Vec<Vec<f64>> = sizes.iter().map(|&size| counts(size)).collect();
    if let Some(me) = sizes.iter().position(|&size| size == own) {
        others.remove(me);
    }
    let of_others = |count: usize| match count > draws / 2 {
        // No other class can have as many.
        true => rest.get(draws - count).copied().unwrap_or(0.0),
        false => at_most(&others, count, draws - count),
    };
    let cases = mine.iter().enumerate().skip(1).filter(|(_, probability)| **probability > NEGLIGIBLE);
    let sum: f64 = cases.map(|(count, probability)| probability * of_others(count)).sum();
    sum / counts(total)[draws]
}

/// Returns the probability that the others have at most `count` each and `rest` together, divided by the number of classes that
/// share the first place: one more than have `count`.
fn at_most(others: &[Vec<f64>], count: usize, rest: usize) -> f64 {
    let max = others.len().min(rest / count);
    let mut ways = vec![vec![0.0; rest + 1]; max + 1];
    ways[0][0] = 1.0;
    for other in others {
        // In descending order, so that reads get the values from before this class.
        for ties in (0..=max).rev() {
            for sum in (0..=rest).rev() {
                let below = other.iter().take(count.min(sum + 1)).enumerate();
                let mut probability: f64 = below.map(|(mine, p)| p * ways[ties][sum - mine]).sum();
                if let (Some(p), true, true) = (other.get(count), ties > 0, sum >= count) {
                    probability += p * ways[ties - 1][sum - count];
                }
                ways[ties][sum] = probability;
            }
        }
    }
    ways.iter().enumerate().map(|(ties, sums)| sums[rest] / (ties + 1) as f64).sum()
}

/// Returns the Poisson probabilities of 0, 1, … up to `max`, without negligible ones at the end.
fn poisson(mean: f64, max: usize) -> Vec<f64> {
    let mut log = -mean;
    let mut probabilities: Vec<f64> = (0..=max)
        .map(|count| {
            if count > 0 {
                log += mean.ln() - (count as f64).ln();
            }
            log.exp()
        })
        .collect();
    while probabilities.len() > 1 && probabilities.last().is_some_and(|p| *p < NEGLIGIBLE) {
        probabilities.pop();
    }
    probabilities
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enumerates every sequence of draws.
    fn enumerated(answers: &[String], values: &[f64], draws: usize) -> [f64; 2] {
        let n = answers.len();
        let sequences = n.pow(draws as u32);
        let value = |sequence: usize| {
            let drawn: Vec<usize> = (0..draws).map(|i| sequence / n.pow(i as u32) % n).collect();
            let votes = |i: &usize| drawn.iter().filter(|j| answers[**j] == answers[*i]).count();
            let max = drawn.iter().map(votes).max().unwrap();
            values[*drawn.iter().find(|i| votes(i) == max).unwrap()]
        };
        let moment = |power| (0..sequences).map(|s| value(s).powi(power)).sum::<f64>() / sequences as f64;
        [moment(1), (moment(2) - moment(1) * moment(1)).max(0.0).sqrt()]
    }

    #[test]
    fn the_expectation_is_that_over_every_sequence_of_draws() {
        let values = [1.0, 0.0, 0.5, -1.0, 2.0, 0.25];
        for answers in [["a"; 6], ["a", "b", "c", "d", "e", "f"], ["a", "b", "a", "c", "b", "a"], ["a", "b", "b", "a", "c", "c"]]
        {
            let answers = answers.map(str::to_owned);
            for n in [1, 2, 5, 6] {
                for draws in 1..=5 {
                    let (answers, values) = (&answers[..n], &values[..n]);
                    let got = Votes::new([answers].into_iter(), &[draws]).majority(answers, values, draws).unwrap();
                    let expected = enumerated(answers, values, draws);
                    let error = (got[0] - expected[0]).abs().max((got[1] - expected[1]).abs());
                    assert!(error < 1e-7, "{answers:?}, {draws} draws: {got:?} and not {expected:?}");
                }
            }
        }
    }

    #[test]
    fn somebody_wins_however_many_are_drawn() {
        for sizes in [vec![1; 64], vec![30, 20, 10, 3, 1], vec![128, 128], vec![300]] {
            let draws = sizes.iter().sum();
            let sum: f64 = wins(&sizes, draws).iter().sum();
            assert!((sum - 1.0).abs() < 1e-9, "{sizes:?}: {sum}");
        }
    }
}
