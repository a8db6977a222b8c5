//! KL estimators and the adaptive controller.

use burnish::algorithm::kl::{self, KlController};
use burnish::algorithm::loss::PolicyObjective;
use burnish::algorithm::policy_loss;

use crate::cases::{Case, assert_close, assert_number, goldens, loss_options, number};

/// With advantage 0 and the mask as weights, the loss is the masked sum of the KL estimate.
#[test]
fn golden_kl_estimators() {
    let goldens = goldens();
    let mut seen = 0;
    for case in Case::all(&goldens) {
        for (key, result) in case.results("kl_penalty") {
            let Some(penalty) = kl::find(key) else { continue };
            let label = format!("{} {key}", case.name);
            let values = penalty.values(&case.input("log_probs"), &case.input("ref_log_probs"), None);
            let golden = case.column(&result["value"]);
            assert_close(&format!("{label} value"), &values, &golden);

            let policy_loss = policy_loss::find("vanilla").unwrap();
            let objective = PolicyObjective {
                policy_loss,
                options: loss_options(policy_loss),
                entropy_coeff: 0.0,
                top_entropy_quantile: 1.0,
                off_policy_mask: None,
                kl_loss: Some((penalty, 1.0)),
            };
            let ours = case.loss(&objective, &vec![0.0; case.mask.len()], &case.mask, None);
            assert_close(&format!("{label} gradient"), &ours.gradient, &case.column(&result["grad"]));
            let sum = golden.iter().zip(&case.mask).map(|(&v, &m)| f64::from(v) * f64::from(m)).sum();
            assert_number(&format!("{label} sum"), ours.loss, sum);
            seen += 1;
        }
    }
    assert!(seen > 0);
}

#[test]
fn golden_adaptive_kl_controller() {
    let goldens = goldens();
    let golden = &goldens["adaptive_kl"];
    let [coef, target, horizon] = ["init_kl_coef", "target_kl", "horizon"].map(|key| number(&golden[key]));
    let mut controller = KlController::Adaptive { coef, target, horizon };
    let updates = golden["updates"].as_array().unwrap();
    assert!(!updates.is_empty());
    for update in updates {
        controller.update(number(&update["current_kl"]), number(&update["n_steps"]) as usize);
        assert_number("adaptive KL coefficient", controller.coef(), number(&update["value"]));
    }
}

/// A policy equal to its reference has a KL of 0. Only k1 has a gradient in this case, whose expectation is 0.
#[test]
fn no_estimator_makes_a_signal_of_rounding() {
    let (policy, reference) = ([-1.0f32, -0.3, -7.0], [-1.000_004f32, -0.299_996, -7.000_03]);
    for estimator in kl::KL_ESTIMATORS.iter().filter(|estimator| estimator.name != "full") {
        let (values, slopes) = kl::find(estimator.name).unwrap().with_slopes(&policy, &reference);
        assert_eq!(values, [0.0; 3], "{}", estimator.name);
        assert_eq!(slopes, [f32::from(u8::from(estimator.name == "k1")); 3], "{}", estimator.name);
    }
}
