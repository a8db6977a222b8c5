//! Rank correlation of several functions.

use super::super::bench::OutOfTime;
use super::super::calls::number;
use super::super::probe::Probe;
use super::super::study::Study;
use burnish_doctor::Finding;

pub(super) const PROBE: Probe = Probe {
    name: "functions_disagree",
    meaning: "Two functions reward opposite responses: their sum has little signal.",
    remedy: "Read the responses on which they differ, and drop or mend one of the functions.",
    judge,
};

/// Rank correlation below which two functions work against each other.
const AGAINST: f64 = -0.3;

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    let names = study.bench.rewards().names();
    let mut pairs: Vec<(f64, String)> = Vec::new();
    for (a, b) in (0..names.len()).flat_map(|a| (a + 1..names.len()).map(move |b| (a, b))) {
        let both =
            study.samples.iter().filter_map(|sample| Some(((*sample.answer.parts.get(a)?)?, (*sample.answer.parts.get(b)?)?)));
        let (x, y): (Vec<f64>, Vec<f64>) = both.filter(|(x, y)| x.is_finite() && y.is_finite()).unzip();
        if let Some(rho) = correlation(&ranks(&x), &ranks(&y)) {
            pairs.push((rho, format!("{} and {}: {}", names[a], names[b], number(rho))));
        }
    }
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some((lowest, _)) = pairs.first() else {
        return Ok(Finding::not_applicable("fewer than two functions have scores that differ"));
    };
    let all = pairs.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("; ");
    let judged = if *lowest < AGAINST { Finding::warn } else { Finding::pass };
    Ok(judged(Some(*lowest), format!("rank correlation of {all}")))
}

/// Returns the ranks of values; equal values share their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal as f64 - 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// Returns the correlation of two series; `None` if one of them does not vary.
fn correlation(x: &[f64], y: &[f64]) -> Option<f64> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mx, my) = (mean(x), mean(y));
    let product = |a: &[f64], ma: f64, b: &[f64], mb: f64| a.iter().zip(b).map(|(a, b)| (a - ma) * (b - mb)).sum::<f64>();
    let spread = (product(x, mx, x, mx) * product(y, my, y, my)).sqrt();
    (spread > 0.0).then(|| product(x, mx, y, my) / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlation_is_that_of_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0]), [1.5, 0.0, 1.5]);
        assert_eq!(correlation(&ranks(&[1.0, 10.0, 100.0]), &ranks(&[3.0, 2.0, 1.0])), Some(-1.0));
        assert_eq!(correlation(&ranks(&[1.0, 1.0]), &ranks(&[0.0, 1.0])), None);
    }
}
