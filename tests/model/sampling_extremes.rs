//! Extreme values of every sampling parameter, compared with a reference in f64: the token for a uniform random number, and its
//! log-probability.

use burnish::rollout::sampling::{LogitChanges, PenalizedToken, sample};
use burnish::rollout::{Logprobs, Sampling};

const ALL: Sampling = Sampling::PLAIN;

/// Returns the tokens that may be drawn at these settings, with their shares, in the order in which the uniform random number
/// selects them. Also returns log softmax(logits / temperature) before all changes, and the probability of every token after
/// them.
fn reference(logits: &[f32], sampling: &Sampling, changes: LogitChanges) -> (Vec<(usize, f64)>, Vec<f64>, Vec<f64>) {
    let temperature = match f64::from(sampling.temperature) {
        t if t <= 0.0 => 1.0,
        t => t.min(f64::from(f32::MAX)),
    };
    let softmax = |x: &[f64]| {
        let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let z: Vec<f64> = x.iter().map(|x| (x - max) / temperature).collect();
        let sum = z.iter().map(|z| z.exp()).sum::<f64>().ln();
        z.into_iter().map(|z| z - sum).collect::<Vec<f64>>()
    };
    let mut x: Vec<f64> = logits.iter().map(|&x| f64::from(x)).collect();
    let own = softmax(&x);
    changes.forbidden.iter().for_each(|&token| x[token as usize] = f64::NEG_INFINITY);
    changes.biases.iter().for_each(|&(token, bias)| x[token as usize] += f64::from(bias));
    for &PenalizedToken { token, count } in changes.penalized {
        let (logit, repetition) = (&mut x[token as usize], f64::from(sampling.repetition_penalty));
        *logit = if *logit > 0.0 { *logit / repetition } else { *logit * repetition };
        *logit -= f64::from(sampling.frequency_penalty) * f64::from(count);
        *logit -= if count > 0 { f64::from(sampling.presence_penalty) } else { 0.0 };
    }
    let p: Vec<f64> = softmax(&x).into_iter().map(f64::exp).collect();
    let largest = p.iter().copied().fold(0.0, f64::max);
    if sampling.temperature <= 0.0 {
        return (vec![(p.iter().position(|p| *p == largest).unwrap(), 1.0)], own, p);
    }
    let mut kept: Vec<usize> = (0..p.len()).filter(|&i| p[i] > 0.0 && p[i] >= f64::from(sampling.min_p) * largest).collect();
    let sorted = |kept: &mut Vec<usize>| kept.sort_by(|a, b| p[*b].total_cmp(&p[*a]).then(a.cmp(b)));
    if sampling.top_k > 0 && sampling.top_k < kept.len() {
        sorted(&mut kept);
        kept.truncate(sampling.top_k);
        kept.sort_unstable();
    }
    if sampling.top_p < 1.0 {
        sorted(&mut kept);
        let total: f64 = kept.iter().map(|&i| p[i]).sum();
        let mut sum = 0.0;
        let end = kept.iter().position(|&i| {
            sum += p[i];
            sum >= f64::from(sampling.top_p) * total
        });
        kept.truncate(end.unwrap_or(kept.len()) + 1);
    }
    let total: f64 = kept.iter().map(|&i| p[i]).sum();
    (kept.into_iter().map(|i| (i, p[i] / total)).collect(), own, p)
}

/// Pseudorandom values in [0, 1).
fn uniform(i: u64) -> f64 {
    (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9) as f64 / 2f64.powi(64)
}

#[test]
fn extreme_values_draw_what_they_stand_for() {
    let temperatures =
        [0.0, f32::from_bits(1), 1e-40, 1e-38, 1e-20, 1e-10, 1e-8, 1e-4, 0.01, 0.7, 1.0, 100.0, 1e6, 1e20, 1e30, f32::MAX];
    let infinite = Sampling { temperature: 1e39f64 as f32, ..ALL };
    let mut all: Vec<Sampling> = temperatures.map(|temperature| Sampling { temperature, ..ALL }).into();
    all.push(infinite);
    let others = [
        Sampling { top_p: f32::from_bits(1), ..ALL },
        Sampling { top_p: 1e-10, ..ALL },
        Sampling { top_p: 1.0 - f32::EPSILON, ..ALL },
        Sampling { top_k: 1, ..ALL },
        Sampling { top_k: usize::MAX, ..ALL },
        Sampling { min_p: f32::from_bits(1), ..ALL },
        Sampling { min_p: 1.0, ..ALL },
        Sampling { repetition_penalty: *Sampling::REPETITION.start() as f32, ..ALL },
        Sampling { repetition_penalty: *Sampling::REPETITION.end() as f32, ..ALL },
        Sampling { presence_penalty: -2.0, frequency_penalty: -2.0, ..ALL },
        Sampling { presence_penalty: 2.0, frequency_penalty: 2.0, ..ALL },
    ];
    for other in others {
        all.extend(temperatures.iter().chain([&infinite.temperature]).map(|&temperature| Sampling { temperature, ..other }));
    }
    // More than a block, and not a multiple of the kernels' block size.
    for (vocab, spread, offset) in [(3, 4.0, 0.0), (1029, 14.0, 0.0), (1029, 14.0, -3e4), (1029, 1e-3, 1.0)] {
        let logits: Vec<f32> = (0..vocab).map(|i| (offset + spread * (uniform(i) - 0.5)) as f32).collect();
        let penalized = [PenalizedToken { token: 0, count: 3 }, PenalizedToken { token: 2, count: 0 }];
        let forbidding = LogitChanges { forbidden: &[1], penalized: &penalized, ..LogitChanges::default() };
        let biased = LogitChanges { biases: &[(1, 1e4), (2, -1e30)], penalized: &penalized, ..LogitChanges::default() };
        for (sampling, changes) in all.iter().flat_map(|s| [LogitChanges::default(), forbidding, biased].map(|c| (s, c))) {
            let (kept, own, p) = reference(&logits, sampling, changes);
            let min = kept.iter().map(|(token, _)| p[*token]).fold(f64::INFINITY, f64::min);
            for draw in 0..8 {
                let (u, logprobs) = (uniform(1000 + draw), [Logprobs::Raw, Logprobs::Processed][draw as usize % 2]);
                let sampling = Sampling { logprobs, ..*sampling };
                let drawn = sample(&mut logits.clone(), &sampling, changes, || u);
                let named = format!(
                    "{vocab} tokens around {offset}, u = {u}: {drawn:?}, {sampling:?}, {:?} {:?}",
                    changes.forbidden, changes.biases
                );
                let place = kept.iter().position(|(token, _)| *token == drawn.token as usize);
                // If f32 rounds several tokens to the same probability, a filter keeps more of them, or the first.
                let filters = sampling.top_p < 1.0 || sampling.top_k > 0 || sampling.min_p > 0.0;
                let Some(place) = place.filter(|_| !filters || sampling.temperature < 1e4) else {
                    assert!(p[drawn.token as usize] >= min * (1.0 - 1e-6), "it may not be drawn: {named}");
                    continue;
                };
                // Top-p keeps the tokens in the order of their probabilities, as far as f32 separates them.
                let own_p = p[drawn.token as usize];
                let shares = |keep: &dyn Fn(f64) -> bool| kept.iter().filter(|(i, _)| keep(p[*i])).map(|(_, share)| share).sum();
                let (before, share): (f64, f64) = if sampling.top_p < 1.0 {
                    let likelier: f64 = shares(&|p| p > own_p * (1.0 + 1e-5));
                    (likelier, shares(&|p| p >= own_p * (1.0 - 1e-5)) - likelier)
                } else {
                    (kept[..place].iter().map(|(_, share)| share).sum(), kept[place].1)
                };
                let greedy = sampling.temperature <= 0.0;
                assert!(greedy || (before - 1e-3..before + share + 1e-3).contains(&u), "its share begins at {before}: {named}");
                // For greedy sampling, log_prob is computed at temperature 1; it is -inf for values outside f32.
                let (got, expected) = (f64::from(drawn.log_prob), own[drawn.token as usize]);
                let is_near = (got - expected).abs() <= 1e-4 * expected.abs().max(1.0);
                assert!(is_near || (got <= -1e30 && expected <= -1e30), "log-probability {expected}: {named}");
            }
        }
    }
}
