//! Measures on the entries of a sparse teacher, and their derivatives by the policy's log-probabilities of the entries.

/// The measure that compares the log-probabilities of policy and teacher where only some tokens of the vocabulary are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SparseMeasure {
    /// Σ_k q_k·(log q_k − log p_k), verl's `forward_kl_topk`. Log-probabilities of both below `min` are raised to `min`.
    Sum { min: Option<f32> },
    /// The generalised Jensen-Shannon divergence β·KL(Q ‖ M) + (1 − β)·KL(P ‖ M) with M = (1 − β)·P + β·Q; for β = 0 KL(Q ‖ P), for
    /// β = 1 KL(P ‖ Q). P and Q are the distributions over the entries: renormalised, or with one more class for all other tokens
    /// (TRL's `generalized_jsd_loss` of `IWOPDTrainer` and `_compute_self_distillation_loss` of `SDFTTrainer`).
    Divergence { beta: f64, add_tail: bool },
}

/// TRL's bound of the logarithm of the entries' mass, so that the class of other tokens has a logarithm.
const LARGEST_LOG_MASS: f64 = -1e-7;

/// A distribution over the entries, as logarithms; the last class is that of all other tokens, if there is one.
struct Classes {
    logs: Vec<f64>,
    /// d log(class of all other tokens) / d log p_k, divided by p_k; `None` without that class.
    tail_slope: Option<f64>,
}

impl Classes {
    fn new(log_probs: impl Iterator<Item = f64> + Clone, add_tail: bool) -> Self {
        let mass = log_sum(log_probs.clone());
        if !add_tail {
            return Self { logs: log_probs.map(|x| x - mass).collect(), tail_slope: None };
        }
        let bounded = mass.min(LARGEST_LOG_MASS);
        let rest = -bounded.exp_m1();
        let slope = if mass > LARGEST_LOG_MASS { 0.0 } else { -1.0 / rest };
        Self { logs: log_probs.chain([rest.ln()]).collect(), tail_slope: Some(slope) }
    }
}

fn log_sum(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let max = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY { max } else { max + logs.map(|x| (x - max).exp()).sum::<f64>().ln() }
}

/// Returns the divergence of the entries of one token, pairs of log q and log p, and its derivative by log p of each. Entries that
/// the teacher masks are left out by the caller.
pub(super) fn divergence(entries: &[(f64, f64)], beta: f64, add_tail: bool) -> (f64, Vec<f64>) {
    let q = Classes::new(entries.iter().map(|(log_q, _)| *log_q), add_tail);
    let p = Classes::new(entries.iter().map(|(_, log_p)| *log_p), add_tail);
    let mut value = 0.0;
    let slope = |(&log_q, &log_p): (&f64, &f64)| {
        let (of_q, of_p) = (log_q.exp(), log_p.exp());
        if beta == 0.0 {
            value += of_q * (log_q - log_p);
            -of_q
        } else if beta == 1.0 {
            value += of_p * (log_p - log_q);
            of_p * (log_p - log_q + 1.0)
        } else {
            let log_m = log_sum([(1.0 - beta).ln() + log_p, beta.ln() + log_q].into_iter());
            value += beta * of_q * (log_q - log_m) + (1.0 - beta) * of_p * (log_p - log_m);
            (1.0 - beta) * of_p * (log_p - log_m)
        }
    };
    let slopes: Vec<f64> = q.logs.iter().zip(&p.logs).map(slope).collect();
    let of_entries = slopes.iter().zip(entries).map(|(&slope, (_, log_p))| match p.tail_slope {
        Some(tail) => slope + slopes[slopes.len() - 1] * tail * log_p.exp(),
        None => slope,
    });
    let mut gradient: Vec<f64> = of_entries.collect();
    if !add_tail {
        let sum: f64 = slopes.iter().sum();
        gradient.iter_mut().zip(&p.logs).for_each(|(d, log)| *d -= sum * log.exp());
    }
    (value, gradient)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The derivatives are the differences of the values, and the divergence of equal entries is 0.
    #[test]
    fn slopes_are_those_of_the_values() {
        let entries = [(-0.7, -1.1), (-1.9, -1.3), (-3.0, -4.0)];
        for (beta, add_tail) in [0.0, 0.3, 0.5, 1.0].into_iter().flat_map(|beta| [(beta, false), (beta, true)]) {
            let (_, slopes) = divergence(&entries, beta, add_tail);
            for (k, slope) in slopes.iter().enumerate() {
                let at = |step: f64| {
                    let mut moved = entries;
                    moved[k].1 += step;
                    divergence(&moved, beta, add_tail).0
                };
                let expected = (at(1e-6) - at(-1e-6)) / 2e-6;
                assert!((slope - expected).abs() < 1e-8, "β {beta}, tail {add_tail}, entry {k}: {slope}, not {expected}");
            }
            let equal = entries.map(|(q, _)| (q, q));
            assert!(divergence(&equal, beta, add_tail).0.abs() < 1e-15);
        }
    }

    /// A single entry that is all of both distributions leaves nothing to other tokens.
    #[test]
    fn whole_distributions_are_finite() {
        for beta in [0.0, 0.5, 1.0] {
            let (value, slopes) = divergence(&[(0.0, 0.0)], beta, true);
            assert!(value.abs() < 1e-12 && slopes[0].is_finite(), "{value} {slopes:?}");
        }
    }
}
