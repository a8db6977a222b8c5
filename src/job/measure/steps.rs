//! Makes steps of growing size and takes their times.

use std::time::{Duration, Instant};

use anyhow::Result;
use burn::tensor::Device;

use super::forecast::{StepForecast, StepWork, TimedStep, longest};
use super::measurable::{Measurable, StepPlan, StepSize};
use super::report::{StepTimes, Times};
use crate::job::context::Context;
use crate::job::device_memory::DeviceMemory;
use crate::job::memory_estimate::GIB;
use crate::job::settings::RunSettings;
use crate::job::sharding_plan::slice_count;
use burnish_distributed::{Ranks, Slices};
use burnish_run::{LogFile, Output, Record};
use burnish_tracking::Progress;
use burnish_util::interrupt::Interrupt;
use burnish_util::platform::peak_memory;

/// Time after which no larger step is begun. The smallest step takes as long as it takes.
const BUDGET: Duration = Duration::from_secs(10);
/// Rows and token limit of the smallest step. Some estimators compare rows, so there are two.
const SMALLEST: StepSize = StepSize { rows: 2, tokens: 16 };
/// Largest ratio of two successive sizes.
const GROWTH: f64 = 8.0;

/// Measures the steps and the validation of a run. Nothing is written: not even values that are not finite. Collective.
///
/// # Errors
/// The errors of a step.
pub(crate) fn measure<P: Measurable>(
    mut pipeline: P,
    plan: StepPlan,
    mut settings: RunSettings,
    device: &Device,
    ranks: &Ranks,
) -> Result<Times> {
    let count = slice_count(settings.gradient_slices, || None, ranks);
    ranks.cut_by(Slices { count, balanced: settings.balance_batch });
    settings.resume.dir.clear();
    let output = Output { progress: Progress::hidden(), log: LogFile::default(), records: false };
    let mut at = Context {
        step: plan.step,
        record: Record::silent(settings.watched.clone(), &output),
        ranks: ranks.clone(),
        progress: output.progress.clone(),
        probe: None,
        interrupt: Interrupt::default(),
        validated_after: None,
        improvement: None,
        settings,
    };
    let gpu = DeviceMemory::watch(device);
    let start = Instant::now();
    let smallest =
        StepSize { rows: SMALLEST.rows.max(ranks.size()).min(plan.size.rows), tokens: SMALLEST.tokens.min(plan.size.tokens) };
    let mut steps: Vec<TimedStep> = Vec::new();
    let mut next = Some(smallest);
    let mut took = Duration::ZERO;
    while let Some(size) = next {
        let begun = Instant::now();
        pipeline.resize(size)?;
        let mut row = pipeline.step(&mut at)?;
        // The first step of a size warms up: pages, threads, the kernels of a GPU.
        if ranks.first(|| Ok(begun.elapsed() < BUDGET / 4))? {
            row = pipeline.step(&mut at)?;
        }
        steps.push(pipeline.timed(size, &row));
        took = begun.elapsed();
        next =
            ranks.first(|| Ok(larger(size, plan.size, left(start).as_secs_f64() / took.as_secs_f64()).map(pair)))?.map(size_of);
    }
    let validation = validation(&mut pipeline, &plan, &mut at, &steps, (took, left(start)))?;
    Ok(forecast(&pipeline, plan, &steps, validation, gpu.as_ref()))
}

fn left(start: Instant) -> Duration {
    BUDGET.saturating_sub(start.elapsed())
}

fn pair(StepSize { rows, tokens }: StepSize) -> (usize, usize) {
    (rows, tokens)
}

fn size_of((rows, tokens): (usize, usize)) -> StepSize {
    StepSize { rows, tokens }
}

/// Returns the next size: more rows, and then longer responses, up to the whole step. `affordable`: the ratio of the time that is
/// left to the time that the last size took.
fn larger(size: StepSize, whole: StepSize, affordable: f64) -> Option<StepSize> {
    let grown = |part: usize, whole: usize| {
        let factor = (whole as f64 / part as f64).min(GROWTH).min(affordable);
        let grown = ((part as f64 * factor).round() as usize).min(whole);
        (grown > part + part / 4 || grown == whole).then_some(grown)
    };
    match size {
        StepSize { rows, .. } if rows < whole.rows => Some(StepSize { rows: grown(rows, whole.rows)?, ..size }),
        StepSize { tokens, .. } if tokens < whole.tokens => Some(StepSize { tokens: grown(tokens, whole.tokens)?, ..size }),
        _ => None,
    }
}

/// Returns the seconds of a validation whose responses are as long as those of the last step. `(took, left)`: the time of the last
/// size, and the time that is left.
fn validation<P: Measurable>(
    pipeline: &mut P,
    plan: &StepPlan,
    at: &mut Context,
    steps: &[TimedStep],
    (took, left): (Duration, Duration),
) -> Result<f64> {
    let Some(last) = steps.last().filter(|_| plan.validated > 0) else { return Ok(0.0) };
    let rows = at.ranks.first(|| {
        let affordable = last.rows as f64 * (left.as_secs_f64() / took.as_secs_f64()).max(1.0);
        Ok((affordable as usize).clamp(at.ranks.size(), plan.validated.max(at.ranks.size())))
    })?;
    let rows = pipeline.shorten_validation(rows);
    let begun = Instant::now();
    pipeline.validate(at)?;
    Ok(begun.elapsed().as_secs_f64() * plan.validated as f64 / rows as f64)
}

fn forecast<P: Measurable>(
    pipeline: &P,
    plan: StepPlan,
    steps: &[TimedStep],
    validation: f64,
    gpu: Option<&DeviceMemory>,
) -> Times {
    let (larger, earlier) = steps.split_last().expect("the smallest step was made");
    let passes = |phase: &str, rows: usize, longest: f64| pipeline.passes(phase, rows, longest);
    let forecast = StepForecast { smaller: earlier.last(), larger, passes: &passes };
    let StepSize { rows, tokens: limit } = plan.size;
    let of = |length: f64| {
        let sampled = (rows * plan.samples) as f64 * length;
        let generated = (plan.drawn_rows * plan.samples) as f64 * length;
        let work = StepWork { given: rows as f64 * plan.given_per_row, sampled, generated };
        // A validation of a run without sampling has the length of its rows.
        let mean = larger.work.sampled / larger.responses.0.max(1) as f64;
        let longer = if mean > 0.0 { length / mean } else { 1.0 };
        let longest = longest(length, plan.drawn_rows * plan.samples, limit);
        StepTimes { length, phases: forecast.phases(rows, longest, &work), validation: validation * longer }
    };
    let is_sampled = plan.samples > 0;
    let expected = match is_sampled {
        true => larger.mean_length(limit),
        false => Some(0.0),
    };
    let peak = match gpu {
        Some(gpu) => Some(gpu.peaks_gib()[0]),
        None => peak_memory().map(|bytes| bytes as f64 / GIB),
    };
    Times {
        measured: StepSize { rows: larger.rows, tokens: larger.limit },
        expected: expected.map(of),
        most: is_sampled.then(|| of(limit as f64)),
        peak_gib: peak,
        plan,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_grow_to_the_whole_step_while_time_is_left() {
        let whole = StepSize { rows: 100, tokens: 64 };
        let sizes = |affordable: f64| {
            let mut sizes = vec![StepSize { rows: 2, tokens: 16 }];
            while let Some(next) = larger(*sizes.last().unwrap(), whole, affordable) {
                sizes.push(next);
                assert!(sizes.len() < 20);
            }
            sizes.into_iter().map(pair).collect::<Vec<_>>()
        };
        assert_eq!(sizes(1e9), [(2, 16), (16, 16), (100, 16), (100, 64)]);
        assert_eq!(sizes(2.0), [(2, 16), (4, 16), (8, 16), (16, 16), (32, 16), (64, 16), (100, 16), (100, 32), (100, 64)]);
        assert_eq!(sizes(0.5), [(2, 16)]);
        assert_eq!(larger(StepSize { rows: 7, tokens: 0 }, StepSize { rows: 7, tokens: 0 }, 9.0), None);
    }
}
