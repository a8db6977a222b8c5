//! Learning-rate schedules against the factors of verl's own code, and `linear` against transformers'
//! (`scripts/goldens/golden_schedules.py`), over three times their length.

use burnish::optim::Schedule;
use burnish::optim::schedule::{SCHEDULES, find, warmup_steps};

use crate::cases::{golden_file, number};

#[test]
fn golden_schedules() {
    let cases = golden_file("schedules.json");
    let cases = cases.as_array().unwrap();
    let mut seen = Vec::new();
    for case in cases {
        let (name, total_steps) = (case["lr_scheduler_type"].as_str().unwrap(), case["total_training_steps"].as_u64().unwrap());
        seen.push(name);
        let of = |key: &str| number(&case[key]);
        let total_steps = total_steps as usize;
        let schedule = Schedule {
            kind: find(name).unwrap(),
            warmup_steps: warmup_steps(of("lr_warmup_steps") as i64, of("lr_warmup_steps_ratio"), total_steps),
            total_steps,
            min_lr_ratio: of("min_lr_ratio"),
            num_cycles: of("num_cycles"),
        };
        // Up to the end of the schedule the numbers are verl's. Beyond it, which a run of verl never reaches, our rate stays
        // constant, while verl's cosine would rise again.
        let end = total_steps.max(schedule.warmup_steps + 1);
        let factors: Vec<f64> = case["factors"].as_array().unwrap().iter().map(number).collect();
        assert!(factors.len() > 3 * total_steps);
        for (step, theirs) in factors.iter().enumerate() {
            let expected = if step <= end { *theirs } else { schedule.factor(end) };
            let ours = schedule.factor(step);
            assert!((ours - expected).abs() <= 1e-12, "step {step}: {ours}, not {expected}, of {case}");
        }
    }
    for kind in SCHEDULES {
        assert!(seen.contains(&kind.name), "no numbers for `{}`", kind.name);
    }
}
