//! The page of a sweep: the table of combinations, and their curves as bands over the seeds.

use serde_json::{Value, json};

use super::super::headline::headline;
use super::super::page::{STYLE, fill, html, in_script};
use super::group::{Combination, Spread};
use super::jobs::Sweep;
use burnish_util::json_number;
use burnish_util::shell::command_line;

const INDEX: &str = include_str!("../page/sweep.html");
const SCRIPTS: &[&str] = &[include_str!("../page/dom.js"), include_str!("../page/sweep.js")];

/// Builds the page, which makes no requests.
pub fn page(sweep: &Sweep) -> String {
    let title = format!("Sweep {}", sweep.dir.display());
    let json = in_script(&data(sweep).to_string());
    fill(INDEX, &[("TITLE", &*html(&title)), ("STYLE", STYLE), ("SCRIPT", &*SCRIPTS.concat()), ("DATA", &*json)])
}

fn data(sweep: &Sweep) -> Value {
    let series: Vec<_> = sweep.jobs.iter().map(|job| &job.series).collect();
    let mut metrics = headline(&series);
    if let Some((metric, _)) = &sweep.metric {
        metrics.retain(|name| name != metric);
        metrics.insert(0, metric.clone());
    }
    let one = |one: &Combination| {
        let jobs = one.jobs.iter().map(|job| {
            let read = &sweep.jobs[*job];
            json!({"name": read.job.name, "state": read.state(), "value": json_number::to_value(sweep.result(*job)),
                "error": read.run.as_ref().and_then(|run| run.info.as_ref()?.error.clone())})
        });
        let curves: serde_json::Map<String, Value> =
            metrics.iter().map(|metric| (metric.clone(), curve(sweep, one, metric))).collect();
        let (jobs, spread) = (jobs.collect::<Vec<_>>(), one.spread.map(|spread| statistics(&spread)));
        json!({"label": one.label, "jobs": jobs, "spread": spread, "curves": curves})
    };
    json!({
        "dir": sweep.dir.display().to_string(),
        "command": command_line(&sweep.record.command),
        "metric": sweep.metric.as_ref().map(|(name, _)| name),
        "metrics": metrics,
        "combinations": sweep.combinations().iter().map(one).collect::<Vec<_>>(),
    })
}

fn statistics(spread: &Spread) -> Value {
    let number = |value: f64| json_number::to_value(value);
    json!([
        spread.count,
        number(spread.mean),
        json_number::to_value(spread.deviation),
        number(spread.least),
        number(spread.greatest)
    ])
}

/// Returns the statistics of a metric at every step that a job of the combination has.
fn curve(sweep: &Sweep, one: &Combination, metric: &str) -> Value {
    let mut steps: Vec<u64> = one.jobs.iter().flat_map(|job| sweep.jobs[*job].series.steps()).collect();
    steps.sort_unstable();
    steps.dedup();
    let point = |step: u64| {
        let values: Vec<f64> = one.jobs.iter().filter_map(|job| sweep.jobs[*job].series.value(metric, step)).collect();
        Spread::of(&values).map(|spread| json!([step, statistics(&spread)]))
    };
    steps.into_iter().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_requested_and_hostile_texts_stay_texts() {
        assert!(SCRIPTS.iter().all(|script| !script.contains("</script") && !script.contains("<!--")));
        for remote in ["src=\"http", "href=\"http", "@import"] {
            assert!(!INDEX.contains(remote) && SCRIPTS.iter().all(|script| !script.contains(remote)), "{remote}");
        }
    }
}
