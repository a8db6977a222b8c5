//! Losses, gradients and metrics of every preference loss, compared with the values that TRL and OpenRLHF returned.

use std::collections::BTreeSet;

use burnish::algorithm::options::{OptionValue, Options};
use burnish::algorithm::preference::{
    self, Answer, AnswerGrads, AnsweredPair, LabelledAnswer, PairCounts, PairObjective, PreferenceLoss, RowObjective, kl,
};
use serde_json::Value;

use crate::cases::{golden_file, number};

/// The settings of a loss: TRL's defaults, and the settings of the case.
fn options(loss: &PreferenceLoss, given: &Value) -> Options {
    let defaults = serde_json::json!({
        "beta": 0.1, "label_smoothing": 0.0, "f_divergence_type": "reverse_kl", "f_alpha_divergence_coef": 0.5, "discopop_tau": 0.05,
        "simpo_gamma": 0.5, "cpo_alpha": 1.0, "alpha": 0.0, "desirable_weight": 1.0, "undesirable_weight": 1.0,
    });
    let value = |key: &str| -> Result<OptionValue, String> {
        let name = key.strip_prefix("algorithm.").unwrap();
        let value = given.get(name).unwrap_or(&defaults[name]);
        Ok(value.as_str().map_or_else(|| number(value).into(), OptionValue::from))
    };
    Options::read(loss.reads, value).unwrap()
}

/// A number; values that are not finite are strings.
fn maybe(value: &Value) -> f64 {
    value.as_str().map_or_else(|| number(value), |word| word.parse().unwrap())
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(maybe).collect()
}

fn rows(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(numbers).collect()
}

fn close(label: &str, ours: f64, golden: f64, tolerance: f64) {
    // In float32, a gradient may be the small remainder of terms that cancel. Each term has an error of 2^−24, and discopop
    // multiplies it by β/τ = 2, which gives 1.2e-7.
    let floor = if tolerance > 2e-6 { 2e-2 } else { 1e-6 };
    let same = ours == golden || ours.is_nan() && golden.is_nan() || (ours - golden).abs() <= tolerance * golden.abs().max(floor);
    assert!(same, "{label}: ours {ours}, golden {golden}");
}

fn all_close(label: &str, ours: &[f64], golden: &[f64], tolerance: f64) {
    assert_eq!(ours.len(), golden.len(), "{label}");
    for (i, (ours, golden)) in ours.iter().zip(golden).enumerate() {
        close(&format!("{label} {i}"), *ours, *golden, tolerance);
    }
}

/// The response with these log-probabilities, in f64 like the golden values.
fn answer(log_probs: &[f64], shared: usize, ld_alpha: f64) -> Answer {
    let weigh = |(t, lp): (usize, &f64)| if t < shared { *lp } else { ld_alpha * lp };
    Answer {
        log_prob: log_probs.iter().enumerate().map(weigh).sum(),
        plain: log_probs.iter().sum(),
        tokens: log_probs.len(),
        ..Answer::default()
    }
}

/// The losses of an option `loss_type`.
fn losses(given: &Value) -> Vec<(&'static PreferenceLoss, f64, Options)> {
    let names = given["loss_type"].as_array().cloned().unwrap_or_else(|| vec![given["loss_type"].clone()]);
    let weights = given.get("loss_weights").map_or_else(|| vec![1.0; names.len()], numbers);
    let find = |name: &Value| preference::find(name.as_str().unwrap()).unwrap_or_else(|| panic!("no loss {name}"));
    names.iter().zip(weights).map(|(name, weight)| (find(name), weight, options(find(name), given))).collect()
}

fn check_metrics(label: &str, ours: &[(&str, f64)], golden: &Value) {
    for (name, golden) in golden.as_object().unwrap() {
        if ["entropy", "num_tokens", "mean_token_accuracy"].contains(&name.as_str()) || name.starts_with("logits/") {
            continue;
        }
        let found = ours.iter().find(|(ours, _)| ours == name).unwrap_or_else(|| panic!("{label}: no {name}"));
        close(&format!("{label} {name}"), found.1, maybe(golden), 1e-5);
    }
}

#[test]
fn golden_preference_losses_of_trls_dpo() {
    let goldens = golden_file("offline/losses.json");
    let mut checked = BTreeSet::new();
    for (case, golden) in goldens["dpo"].as_array().unwrap().iter().enumerate() {
        let inputs = &golden["inputs"];
        let [logps, refs, squares] =
            ["logps", "ref_logps", "log_sum_sq_probs"].map(|name| ["chosen", "rejected"].map(|side| rows(&inputs[name][side])));
        for result in golden["results"].as_array().unwrap() {
            let given = &result["options"];
            let label = format!("case {case} {given}");
            if given["loss_type"] == "no_such_loss" {
                assert!(preference::find("no_such_loss").is_none() && result.get("error").is_some());
                continue;
            }
            let ld_alpha = given.get("ld_alpha").map_or(1.0, number);
            let shared = |i: usize| logps[0][i].len().min(logps[1][i].len());
            let pair = |i: usize| -> AnsweredPair {
                [0, 1].map(|side| {
                    let (lp, squares) = (&logps[side][i], &squares[side][i]);
                    let typicality = lp.iter().zip(squares).map(|(lp, s)| lp - s).sum::<f64>() / lp.len() as f64;
                    let reference = answer(&refs[side][i], shared(i), ld_alpha).log_prob;
                    Answer { typicality, reference, ..answer(lp, shared(i), ld_alpha) }
                })
            };
            let pairs: Vec<AnsweredPair> = (0..logps[0].len()).map(pair).collect();
            let use_weighting = given.get("use_weighting").is_some();
            let objective = PairObjective { losses: losses(given), use_weighting, nll_loss_coef: 0.0 };
            let ours = objective.evaluate(&pairs, &PairCounts::count(&pairs));
            objective.losses.iter().for_each(|(loss, ..)| _ = checked.insert(loss.name));
            if result.get("error").is_some() {
                // TRL crashes in the backward pass. The loss is the weight times the loss without weights: mean(w)·sft, and Σ
                // w·loss for the other losses.
                let w: Vec<f64> = pairs.iter().map(|pair| (pair[0].typicality + pair[1].typicality).exp()).collect();
                let alone = |name: &str, pair: &[AnsweredPair]| {
                    let given = serde_json::json!({"loss_type": name});
                    PairObjective { losses: losses(&given), use_weighting: false, nll_loss_coef: 0.0 }
                        .evaluate(pair, &PairCounts::count(pair))
                        .loss
                };
                let expected: f64 = objective
                    .losses
                    .iter()
                    .map(|(loss, factor, _)| {
                        let each = |i: usize| {
                            w[i] * if loss.name == "sft" { alone("sft", &pairs) } else { alone(loss.name, &pairs[i..=i]) }
                        };
                        factor * (0..pairs.len()).map(each).sum::<f64>() / pairs.len() as f64
                    })
                    .sum();
                close(&label, ours.loss, expected, 1e-12);
                continue;
            }
            let tolerance = if result["dtype"] == "float32" { 1e-5 } else { 1e-6 };
            close(&format!("{label} loss"), ours.loss, maybe(&result["loss"]), tolerance);
            for (side, name) in ["chosen", "rejected"].into_iter().enumerate() {
                for (i, golden) in rows(&result["grad"][name]).iter().enumerate() {
                    let tokens: Vec<f64> = (0..golden.len()).map(|t| ours.grads[i][side].token(t, shared(i), ld_alpha)).collect();
                    all_close(&format!("{label} gradient of {name} {i}"), &tokens, golden, tolerance);
                }
            }
            check_metrics(&label, &objective.metrics(&pairs), &result["metrics"]);
        }
    }
    assert!(checked.len() >= 15, "{checked:?}");
}

/// ORPO and CPO, whose loss may include the tokens of prompts.
#[test]
fn golden_preference_losses_without_a_reference() {
    let goldens = golden_file("offline/losses.json");
    let mut checked = 0;
    for (trainer, case) in
        ["orpo", "cpo"].into_iter().flat_map(|name| goldens[name].as_array().unwrap().iter().map(move |c| (name, c)))
    {
        let prompts: Vec<usize> = numbers(&case["prompt_len"]).iter().map(|&len| len as usize - 1).collect();
        let logps = ["chosen", "rejected"].map(|side| rows(&case["token_logps"][side]));
        for result in case["results"].as_array().unwrap() {
            let mut given = result["options"].clone();
            let name = match given["loss_type"].as_str() {
                None => "orpo".to_owned(),
                Some("sigmoid") => "cpo".to_owned(),
                Some(name @ ("hinge" | "ipo")) => format!("cpo_{name}"),
                Some(name) => name.to_owned(),
            };
            given["loss_type"] = name.into();
            let label = format!("{trainer} {given}");
            let objective = PairObjective { losses: losses(&given), use_weighting: false, nll_loss_coef: 0.0 };
            let pair = |i: usize| -> AnsweredPair {
                [0, 1].map(|side| {
                    let (prompt, completion) = logps[side][i].split_at(prompts[i]);
                    let of_prompt = answer(prompt, prompt.len(), 1.0);
                    Answer {
                        prompt: of_prompt.plain,
                        prompt_tokens: of_prompt.tokens,
                        ..answer(completion, completion.len(), 1.0)
                    }
                })
            };
            let pairs: Vec<AnsweredPair> = (0..prompts.len()).map(pair).collect();
            let ours = objective.evaluate(&pairs, &PairCounts::count(&pairs));
            close(&format!("{label} loss"), ours.loss, maybe(&result["loss"]), 1e-6);
            for (side, name) in ["chosen", "rejected"].into_iter().enumerate() {
                for (i, golden) in rows(&result["grad_logp"][name]).iter().enumerate() {
                    let grads: &AnswerGrads = &ours.grads[i][side];
                    let token = |t: usize| if t < prompts[i] { grads.prompt } else { grads.token(0, 1, 1.0) };
                    let tokens: Vec<f64> = (0..golden.len()).map(token).collect();
                    all_close(&format!("{label} gradient of {name} {i}"), &tokens, golden, 1e-6);
                }
            }
            check_metrics(&label, &objective.metrics(&pairs), &result["metrics"]);
            checked += 1;
        }
    }
    assert!(checked > 10);
}

#[test]
fn golden_preference_losses_of_answers_with_a_label() {
    let goldens = golden_file("offline/losses.json");
    let mut checked = 0;
    for (case, golden) in goldens["kto"].as_array().unwrap().iter().enumerate() {
        let [logps, refs] = ["logps", "ref_logps"].map(|name| rows(&golden["inputs"][name]));
        let labels = golden["label"].as_array().unwrap().iter().map(|label| label.as_bool().unwrap());
        let answered: Vec<LabelledAnswer> = labels
            .enumerate()
            .map(|(i, desirable)| {
                let reference = refs[i].iter().sum();
                LabelledAnswer { answer: Answer { reference, ..answer(&logps[i], logps[i].len(), 1.0) }, desirable }
            })
            .collect();
        let [policy, reference] = ["kl_logps_sum", "ref_kl_logps_sum"].map(|name| numbers(&golden[name]));
        for result in golden["results"].as_array().unwrap() {
            let given = &result["options"];
            let loss = preference::find(given.get("loss_type").map_or("kto", |name| name.as_str().unwrap())).unwrap();
            let objective = RowObjective { loss, options: options(loss, given) };
            let z = if objective.reads_mismatched() { kl(policy.iter().zip(&reference).map(|(p, r)| p - r)) } else { 0.0 };
            let (ours, what) = (objective.evaluate(&answered, z, answered.len()), format!("kto {case} {given}"));
            close(&format!("{what} loss"), ours.loss, maybe(&result["loss"]), 1e-6);
            for (i, golden) in rows(&result["grad"]).iter().enumerate() {
                all_close(&format!("{what} gradient {i}"), &vec![ours.grads[i]; golden.len()], golden, 1e-6);
            }
            check_metrics(&what, &objective.metrics(&answered, z), &result["metrics"]);
            checked += 1;
        }
    }
    assert!(checked > 10);
}

#[test]
fn golden_preference_losses_of_openrlhf() {
    let goldens = golden_file("offline/losses.json");
    let mut checked = BTreeSet::new();
    for (case, golden) in goldens["openrlhf_preference"].as_array().unwrap().iter().enumerate() {
        let of = |name: &str| numbers(&golden[name]);
        let side = |policy: &str, reference: &str| -> Vec<Answer> {
            let both = of(policy).into_iter().zip(of(reference));
            both.map(|(log_prob, reference)| Answer { log_prob, plain: log_prob, reference, tokens: 1, ..Answer::default() })
                .collect()
        };
        let (chosen, rejected) = (side("policy_chosen", "ref_chosen"), side("policy_rejected", "ref_rejected"));
        for result in golden["results"].as_array().unwrap() {
            let given = &result["options"];
            let what = format!("OpenRLHF {case} {given}");
            let name = match given["loss"].as_str().unwrap() {
                "dpo" if given["ipo"] == true => "ipo_sum",
                "dpo" => "cdpo",
                name => name,
            };
            checked.insert(name);
            let loss = preference::find(name).unwrap();
            let (ours, grads) = if loss.is_of_rows() {
                let label = |answers: &[Answer], desirable| {
                    answers.iter().map(|&answer| LabelledAnswer { answer, desirable }).collect::<Vec<_>>()
                };
                let all = [label(&chosen, true), label(&rejected, false)].concat();
                let objective = RowObjective { loss, options: options(loss, given) };
                let z = kl(of("policy_KL").into_iter().zip(of("ref_KL")).map(|(p, r)| p - r));
                let evaluated = objective.evaluate(&all, z, all.len());
                let (up, down) = evaluated.grads.split_at(chosen.len());
                (evaluated.loss, [up.to_vec(), down.to_vec()])
            } else {
                let pairs: Vec<AnsweredPair> = chosen.iter().zip(&rejected).map(|(c, r)| [*c, *r]).collect();
                let objective =
                    PairObjective { losses: vec![(loss, 1.0, options(loss, given))], use_weighting: false, nll_loss_coef: 0.0 };
                let evaluated = objective.evaluate(&pairs, &PairCounts::count(&pairs));
                (evaluated.loss, [0, 1].map(|side| evaluated.grads.iter().map(|g| g[side].log_prob).collect()))
            };
            close(&format!("{what} loss"), ours, maybe(&result["loss"]), 1e-6);
            all_close(&format!("{what} chosen"), &grads[0], &numbers(&result["grad_chosen"]), 1e-6);
            all_close(&format!("{what} rejected"), &grads[1], &numbers(&result["grad_rejected"]), 1e-6);
        }
    }
    assert_eq!(checked.len(), 4, "{checked:?}");
}
