//! A test of objectives: ranks and slices do not change the metrics.

use std::path::Path;
use std::thread;

use burn::tensor::Device;

use super::batch::Measured;
use super::objective::Objective;
use super::pipeline::batch;
use burnish_distributed::{Ranks, Slices, threads};
use burnish_model::{CausalLm, Cut, Init};
use burnish_optim::GradientSum;

/// Checks steps and validations of a small language model with 256 tokens. For any number of slices, one to four ranks give the
/// same metrics to the last bit, which agree with the metrics of one slice up to rounding.
pub fn check<O: Objective<Example: Sync> + Sync>(objective: &O, examples: &[O::Example]) {
    for training in [true, false] {
        let one = of_ranks(objective, examples, training, 1, 1).swap_remove(0);
        for slices in 1..=examples.len() + 1 {
            let alone = of_ranks(objective, examples, training, slices, 1).swap_remove(0);
            let numbers =
                |of: &Measured| [of.loss].into_iter().chain(of.metrics.iter().map(|(_, value)| value)).collect::<Vec<_>>();
            let is_near = |(a, b): (f64, f64)| (a - b).abs() <= 1e-5 * (1.0 + b.abs());
            let (own, of_one) = (numbers(&alone), numbers(&one));
            assert!(own.len() == of_one.len() && own.into_iter().zip(of_one).all(is_near), "{slices} slices: {alone:?}, {one:?}");
            for ranks in 2..=4 {
                for measured in of_ranks(objective, examples, training, slices, ranks) {
                    assert_eq!(measured, alone, "{slices} slices, {ranks} ranks");
                }
            }
        }
    }
}

/// Returns the metrics of each of `ranks` ranks.
fn of_ranks<O>(objective: &O, examples: &[O::Example], training: bool, slices: usize, ranks: usize) -> Vec<Measured>
where
    O: Objective<Example: Sync> + Sync,
{
    thread::scope(|scope| {
        let start = |group| {
            scope.spawn(move || {
                let ranks = Ranks::new(group);
                ranks.cut_by(Slices { count: slices, balanced: true });
                measured(objective, examples, training, &ranks)
            })
        };
        let all: Vec<_> = threads(ranks).into_iter().map(start).collect();
        all.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

fn measured<O: Objective>(objective: &O, examples: &[O::Example], training: bool, ranks: &Ranks) -> Measured {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/no-weights");
    let model = CausalLm::load(&folder, Init::Random { seed: 1 }, &Device::flex()).unwrap();
    let model = if training { model.trainable() } else { model };
    let rows = (0..examples.len()).collect();
    let batch = batch::<O>(examples.iter().collect(), rows, training, 1, Cut::Sequences(2), ranks);
    let batch_totals = objective.batch_totals(&batch, &model, ranks);
    let pass = |slice: &[usize], gradients: Option<&mut _>| objective.pass(&batch, &batch_totals, slice, &model, gradients);
    let results = match training {
        true => GradientSum::over(ranks, &batch.slices, |slice, gradients| pass(slice, Some(gradients))).1,
        false => batch.over_slices(ranks, |slice| pass(slice, None)),
    };
    objective.measured(&batch, batch_totals, results)
}
