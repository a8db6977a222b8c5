//! Distillation: the losses of TRL's IW-OPD, SDFT and SDPO, and of prime-rl's opd.

use burn::tensor::{Device, Tensor, TensorData};
use burnish::algorithm::options::Options;
use burnish::algorithm::reprompt::{self, Reprompt, RepromptRules, reprompts};
use burnish::algorithm::teacher_loss::{self, TeacherColumns, importance_weights};
use burnish::data::{RepromptForm, TemplateVariables};
use burnish::model::SparseMeasure;
use burnish::model::ops::{Compared, Divergence, Head, TopK, head_backward, head_log_probs, head_stats, head_top_k};
use burnish::model::token_stats::TokenGrads;
use serde_json::{Value, json};

use super::case::{PeerCase, number};
use super::entry::{Entry, Precision, never};
use crate::cases::built_in;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        algorithm: "iw_opd",
        precision: Precision::Column,
        run: iw_opd,
        left_out: &[("metrics", "the metrics of TRL")],
        deviates: never,
    },
    Entry {
        algorithm: "prime_ref_kl",
        precision: Precision::Column,
        run: ref_kl,
        left_out: &[("metrics_per_sequence", "metrics of prime-rl")],
        deviates: never,
    },
    Entry { algorithm: "sdft_teacher_prompt", precision: Precision::Double, run: teacher_prompt, left_out: &[], deviates: never },
    Entry { algorithm: "sdpo_teacher_prompts", precision: Precision::Double, run: sdpo_prompts, left_out: &[], deviates: never },
    Entry { algorithm: "jsd_top_k", precision: Precision::Column, run: jsd_top_k, left_out: &[], deviates: never },
    Entry {
        algorithm: "self_distillation",
        precision: Precision::Column,
        run: self_distillation,
        left_out: &[("metrics", "a mean over tokens, where the loss is one over responses")],
        deviates: never,
    },
];

fn teacher_prompt(case: &PeerCase) -> Value {
    let input = &case.json["in"];
    match burnish::data::with_context(&input["prompt"], &input["privileged_context"], case.option_word("teacher_prompt_template"))
    {
        Ok(prompt) => json!({"teacher_prompt": prompt}),
        Err(_) => json!({"error": "ValueError"}),
    }
}

fn sdpo_prompts(case: &PeerCase) -> Value {
    let is_on = |name: &str| case.option(name).as_bool().unwrap();
    let rules = RepromptRules {
        success_reward_threshold: case.option_number("success_reward_threshold"),
        dont_reprompt_on_self_success: is_on("dont_reprompt_on_self_success"),
        use_successful_as_teacher: is_on("use_successful_as_teacher"),
        include_environment_feedback: is_on("include_environment_feedback"),
        environment_feedback_only_without_solution: is_on("environment_feedback_only_without_solution"),
    };
    let input = &case.json["in"];
    let (prompts, scores) = (input["prompts"].as_array().unwrap(), case.numbers("rewards"));
    let groups: Vec<usize> = (0..prompts.len()).map(|i| i / number(&input["num_generations"]) as usize).collect();
    let scores: Vec<Option<f64>> = scores.into_iter().map(Some).collect();
    let feedback: Vec<Option<&str>> =
        input["feedback"].as_array().unwrap().iter().map(|text| text.as_str().filter(|text| !text.trim().is_empty())).collect();
    let has_feedback: Vec<bool> = feedback.iter().map(Option::is_some).collect();
    let chosen = reprompts(&rules, &groups, &scores, &has_feedback);
    let template = |name: &str| case.option_word(name).to_owned();
    let form = RepromptForm {
        reprompt_template: template("reprompt_template"),
        solution_template: template("solution_template"),
        feedback_template: template("feedback_template"),
        remove_thinking: is_on("remove_thinking_from_demonstration"),
        max_length: case.option_number("max_reprompt_len") as usize,
        chat_kwargs: TemplateVariables::default(),
    };
    let prompt = |(i, reprompt): (usize, &Reprompt)| {
        let solution = reprompt.solution.map(|j| format!("<think>x</think>d{j}"));
        match reprompt.shows_something() {
            true => form.prompt(&prompts[i], solution.as_deref(), feedback[i].filter(|_| reprompt.feedback)).unwrap(),
            false => prompts[i].clone(),
        }
    };
    let metrics: serde_json::Map<String, Value> = reprompt::metrics(&rules, &groups, &scores, &has_feedback, &chosen)
        .into_iter()
        // TRL counts the last of these in float32.
        .map(|(name, value)| {
            let narrow = name == "self_distillation/reprompt_sample_fraction";
            (name.to_owned(), json!(if narrow { f64::from(value as f32) } else { value }))
        })
        .collect();
    json!({
        "teacher_prompts": chosen.iter().enumerate().map(prompt).collect::<Value>(),
        "self_distillation_mask": chosen.iter().map(|reprompt| json!(f64::from(u8::from(reprompt.shows_something())))).collect::<Value>(),
        "metrics": metrics,
    })
}

/// Returns loss and gradient of a loss of sampled tokens, a mean over `count` tokens.
fn of_samples(case: &PeerCase, name: &str, options: &Options, teacher: &str, count: f64) -> Value {
    let log_prob = case.column("log_probs");
    let rollout = match case.json["in"]["rollout_log_probs"].is_array() {
        true => case.column("rollout_log_probs"),
        false => log_prob.clone(),
    };
    let teacher = case.column(teacher);
    let loss = teacher_loss::find(name).unwrap();
    let columns = TeacherColumns {
        offsets: &case.offsets,
        mask: &case.mask,
        log_prob: &log_prob,
        rollout_log_prob: &rollout,
        teacher_log_prob: &teacher,
    };
    let result = (loss.run)(&columns, options);
    let slopes: Vec<f32> = result.slopes.iter().map(|slope| (f64::from(*slope) / count) as f32).collect();
    let sum: f64 = result.values.iter().map(|&value| f64::from(value)).sum();
    json!({"loss": sum / count, "grad": case.ragged(&slopes)})
}

fn trained(case: &PeerCase) -> f64 {
    case.mask.iter().filter(|m| **m != 0.0).count() as f64
}

fn iw_opd(case: &PeerCase) -> Value {
    let loss = teacher_loss::find("iw_opd").unwrap();
    let options = built_in(loss.reads)
        .with("iw_opd_gamma", case.option_number("iw_opd_gamma"))
        .with("iw_opd_epsilon", case.option_number("iw_opd_epsilon"));
    let count = case.option("num_items_in_batch").as_f64().unwrap_or_else(|| trained(case));
    of_samples(case, "iw_opd", &options, "teacher_log_probs", count)
}

fn ref_kl(case: &PeerCase) -> Value {
    of_samples(case, "ref_kl", &Options::default(), "ref_log_probs", case.option_number("ref_kl_scale"))
}

/// Logits of a case as the hidden states of a head whose matrix is the identity.
pub(super) struct Logits {
    pub hidden: Tensor<2>,
    pub identity: Tensor<2>,
    pub vocabulary: usize,
}

impl Logits {
    pub(super) fn new(case: &PeerCase, name: &str, temperature: f64) -> Self {
        let rows = case.json["in"][name].as_array().unwrap().iter().flat_map(|row| row.as_array().unwrap());
        let rows: Vec<Vec<f32>> =
            rows.map(|row| row.as_array().unwrap().iter().map(|x| (number(x) / temperature) as f32).collect()).collect();
        let (device, vocabulary) = (Device::flex(), rows[0].len());
        let matrix = |values: Vec<f32>, rows: usize| Tensor::from_data(TensorData::new(values, [rows, vocabulary]), &device);
        let ones = (0..vocabulary * vocabulary).map(|i| f32::from(u8::from(i % (vocabulary + 1) == 0))).collect();
        Self { hidden: matrix(rows.concat(), rows.len()), identity: matrix(ones, vocabulary), vocabulary }
    }

    fn head(&self) -> Head<'_> {
        Head { hidden: &self.hidden, w: &self.identity, softcap: None }
    }
}

/// The models whose most probable tokens are compared.
#[derive(Clone, Copy)]
enum Support {
    Whole,
    Teacher(usize),
    Student(usize),
    Both(usize),
}

/// Evaluates a divergence between two models, and passes its values through `slopes`, which returns the gradient by each.
fn compared(
    [student, teacher]: [&Logits; 2],
    targets: &[u32],
    (beta, add_tail): (f64, bool),
    support: Support,
    grads: impl FnOnce(&[f32], &[f32]) -> TokenGrads,
) -> Vec<f32> {
    let known = |entries: &TopK| head_log_probs(teacher.head(), entries);
    let top = |model: &Logits, k: usize| head_top_k(model.head(), k.min(model.vocabulary));
    let entries = match support {
        Support::Whole => None,
        Support::Teacher(k) => Some(top(teacher, k)),
        Support::Student(k) => Some(known(&top(student, k))),
        Support::Both(k) => Some(known(&top(teacher, k).union(&top(student, k)))),
    };
    let comparison = match &entries {
        Some(teacher) => Compared::TopK { teacher, measure: SparseMeasure::Divergence { beta, add_tail } },
        None => Compared::Head(teacher.head(), Divergence::jsd(beta)),
    };
    let stats = head_stats(student.head(), targets, Some(comparison));
    let g = grads(&stats.tokens.log_prob, &stats.tokens.full_kl);
    let d = head_backward(student.head(), targets, &stats, &g, Some(comparison), None);
    d.into_data().try_to_vec().unwrap()
}

/// Cuts a gradient of logits like the file.
fn ragged_logits(case: &PeerCase, gradient: &[f32], vocabulary: usize) -> Value {
    let token = |t: usize| gradient[t * vocabulary..(t + 1) * vocabulary].iter().map(|d| f64::from(*d)).collect::<Vec<f64>>();
    case.offsets.windows(2).map(|pair| (pair[0]..pair[1]).map(|t| json!(token(t))).collect::<Value>()).collect()
}

fn jsd_top_k(case: &PeerCase) -> Value {
    let temperature = case.option_number("temperature");
    let models = ["student_logits", "teacher_logits"].map(|name| Logits::new(case, name, temperature));
    let (beta, k) = (case.option_number("beta"), case.option_number("top_k") as usize);
    let add_tail = case.option("add_tail").as_bool().unwrap();
    let support = match k {
        0 => Support::Whole,
        k if beta == 0.0 => Support::Teacher(k),
        k if beta == 1.0 => Support::Student(k),
        k => Support::Both(k),
    };
    let (tokens, count, mut loss) = (case.mask.len(), trained(case), 0.0);
    let gradient = compared([&models[0], &models[1]], &vec![0; tokens], (beta, add_tail), support, |_, values| {
        loss = values.iter().zip(&case.mask).map(|(value, m)| f64::from(value * m)).sum::<f64>() / count;
        let full_kl = case.mask.iter().map(|m| (f64::from(*m) / count / temperature) as f32).collect();
        TokenGrads { log_prob: vec![0.0; tokens], entropy: vec![0.0; tokens], full_kl }
    });
    json!({"loss": loss, "grad_student_logits": ragged_logits(case, &gradient, models[0].vocabulary)})
}

fn self_distillation(case: &PeerCase) -> Value {
    let models = ["student_logits", "teacher_logits"].map(|name| Logits::new(case, name, 1.0));
    let targets: Vec<u32> = case.column("tokens").iter().map(|&id| id as u32).collect();
    let skipped = case.option_number("num_loss_tokens_to_skip") as usize;
    // The mean over a response's tokens, then over all responses.
    let weights: Vec<f64> = case
        .offsets
        .windows(2)
        .flat_map(|pair| {
            let mask: Vec<f64> =
                (pair[0]..pair[1]).map(|t| if t - pair[0] < skipped { 0.0 } else { f64::from(case.mask[t]) }).collect();
            let share = 1.0 / mask.iter().sum::<f64>().max(1.0) / case.responses() as f64;
            mask.into_iter().map(move |m| m * share)
        })
        .collect();
    let old = case.json["in"]["old_log_probs"].is_array().then(|| case.column("old_log_probs"));
    let ratios = |log_prob: &[f32]| match (case.option("distillation_is_clip").as_f64(), &old) {
        (Some(max), Some(old)) => importance_weights(log_prob, old, max),
        _ => vec![1.0; log_prob.len()],
    };
    let alpha = case.option_number("distillation_alpha");
    let mode = case.option_word("distillation_mode");
    let (support, add_tail) = match mode {
        "topk_logits" => (
            Support::Student(case.option_number("distillation_topk") as usize),
            case.option("distillation_add_tail").as_bool().unwrap(),
        ),
        _ => (Support::Whole, false),
    };
    let of_teacher = head_stats(models[1].head(), &targets, None).tokens.log_prob;
    let (tokens, mut loss) = (targets.len(), 0.0);
    let gradient = compared([&models[0], &models[1]], &targets, (alpha, add_tail), support, |log_prob, values| {
        let ratios = ratios(log_prob);
        let own = (teacher_loss::find("sampled_token").unwrap().run)(
            &TeacherColumns {
                offsets: &case.offsets,
                mask: &case.mask,
                log_prob,
                rollout_log_prob: log_prob,
                teacher_log_prob: &of_teacher,
            },
            &Options::default(),
        );
        let is_sampled = mode == "sampled_token";
        let values = if is_sampled { &own.values } else { values };
        let weighted = |column: &[f32]| -> Vec<f64> {
            let each = column.iter().zip(&weights).zip(&ratios);
            each.map(|((x, weight), ratio)| f64::from(*x) * weight * f64::from(*ratio)).collect()
        };
        loss = weighted(values).iter().sum();
        let narrow = |column: Vec<f64>| column.into_iter().map(|x| x as f32).collect::<Vec<f32>>();
        let nothing = vec![0.0; tokens];
        let (of_token, of_divergence) = match is_sampled {
            true => (narrow(weighted(&own.slopes)), nothing.clone()),
            false => (nothing.clone(), narrow(weighted(&vec![1.0; tokens]))),
        };
        TokenGrads { log_prob: of_token, entropy: nothing, full_kl: of_divergence }
    });
    json!({"loss": loss, "grad_student_logits": ragged_logits(case, &gradient, models[0].vocabulary)})
}
