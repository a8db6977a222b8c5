//! Learning-rate schedules against the factors of verl, transformers and Megatron (`scripts/goldens/golden_schedules.py`), over
//! three times their length.

use burnish::optim::Schedule;
use burnish::optim::schedule::{ABSENT, SCHEDULES, WSD_STYLES, find, find_style, names, warmup_steps};

use crate::cases::{golden_file, number};

#[test]
fn golden_schedules() {
    let cases = golden_file("schedules.json");
    let cases = cases.as_array().unwrap();
    let (mut seen, mut styles) = (Vec::new(), Vec::new());
    for case in cases {
        let text = |key: &str| case[key].as_str().unwrap();
        let of = |key: &str| number(&case[key]);
        let or = |key: &str, default: f64| case.get(key).filter(|value| !value.is_null()).map_or(default, number);
        let steps = |key: &str| case.get(key).and_then(|value| value.as_u64()).map(|steps| steps as usize);
        let total_steps = steps("total_training_steps").unwrap();
        let kind = find(text("lr_scheduler_type")).unwrap();
        let style = find_style(case.get("lr_wsd_decay_style").map_or("cosine", |style| style.as_str().unwrap())).unwrap();
        seen.push((text("lr_scheduler_type"), kind.name));
        styles.push(style.name);
        let schedule = Schedule {
            warmup_steps: warmup_steps(of("lr_warmup_steps") as i64, of("lr_warmup_steps_ratio"), total_steps),
            warmup_init: or("lr_warmup_init", 0.0),
            floor: of("min_lr_ratio").max(or("min_lr", 0.0)),
            num_cycles: of("num_cycles"),
            power: or("power", 1.0),
            timescale: steps("timescale"),
            stable_ratio: or("stable_ratio", 0.9),
            wsd_decay_steps: steps("lr_wsd_decay_steps"),
            wsd_style: style,
            zero_indexed_step: case.get("zero_indexed_step").is_none_or(|value| value.as_bool().unwrap()),
            ..Schedule::new(kind, total_steps)
        };
        // After the end of a schedule, which a run of verl never reaches, our cosine stays constant. The cosines of verl and
        // transformers rise again.
        let end = match kind.name {
            "cosine" => total_steps.max(schedule.warmup_steps + 1) - usize::from(!schedule.zero_indexed_step),
            _ => usize::MAX,
        };
        let factors: Vec<f64> = case["factors"].as_array().unwrap().iter().map(number).collect();
        assert!(factors.len() > 3 * total_steps);
        for (step, theirs) in factors.iter().enumerate() {
            let expected = if step <= end { *theirs } else { schedule.factor(end) };
            let ours = schedule.factor(step);
            assert!((ours - expected).abs() <= 1e-12, "step {step}: {ours}, not {expected}, of {case}");
        }
    }
    for kind in SCHEDULES {
        assert!(seen.iter().any(|(_, name)| *name == kind.name), "no numbers for `{}`", kind.name);
    }
    for style in WSD_STYLES {
        assert!(styles.contains(&style.name), "no numbers for `{}`", style.name);
    }
}

/// The schedule names of transformers (`SchedulerType` of 5.23.0) and verl are accepted, or refused with a reason.
#[test]
fn every_schedule_of_transformers_and_verl_is_known_or_refused_by_name() {
    const OTHERS: &str = "linear cosine cosine_with_restarts polynomial constant constant_with_warmup inverse_sqrt \
                          reduce_lr_on_plateau cosine_with_min_lr warmup_stable_decay greedy wsd inverse_square_root \
                          inverse-square-root WSD";
    for name in OTHERS.split_whitespace() {
        let absent = ABSENT.iter().any(|(known, _)| *known == name);
        assert!(absent != names().contains(&name), "{name}");
    }
}
