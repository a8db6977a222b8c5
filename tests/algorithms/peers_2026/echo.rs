//! prime-rl's echo: which tokens it trains on, and its loss.

use burnish::algorithm::echo::{self, EchoMessage};
use serde_json::{Value, json};

use super::case::PeerCase;
use super::entry::{Entry, Precision, never};
use super::policy_losses::prime_loss;

pub(super) const ENTRIES: &[Entry] = &[
    Entry { algorithm: "echo_weights", precision: Precision::Double, run: weights, left_out: &[], deviates: never },
    Entry {
        algorithm: "prime_echo",
        precision: Precision::Column,
        run: loss,
        left_out: &[("metrics_per_sequence", "metrics of prime-rl")],
        deviates: never,
    },
];

fn weights(case: &PeerCase) -> Value {
    let branch = |branch: &Value| -> Value {
        let nodes = branch.as_array().unwrap();
        let content: Vec<Option<Vec<bool>>> = nodes
            .iter()
            .map(|node| Some(node["is_content"].as_array()?.iter().map(|flag| flag.as_bool().unwrap()).collect()))
            .collect();
        let message = |(node, content): (&'_ Value, &'_ Option<Vec<bool>>)| (node["tokens"].as_u64().unwrap(), content.clone());
        let sizes: Vec<_> = nodes.iter().zip(&content).map(message).collect();
        let messages: Vec<EchoMessage> = nodes
            .iter()
            .zip(&sizes)
            .map(|(node, (tokens, content))| EchoMessage {
                role: node["role"].as_str().unwrap(),
                sampled: node["sampled"].as_bool().unwrap(),
                tokens: *tokens as usize,
                content: content.as_deref(),
            })
            .collect();
        json!(echo::weights(&messages, |role| case.option("alpha")[role].as_f64().unwrap_or(0.0)))
    };
    json!({"ce_weights": case.json["in"]["branches"].as_array().unwrap().iter().map(branch).collect::<Value>()})
}

/// The sum of prime-rl's policy loss and the term of what the environment wrote.
fn loss(case: &PeerCase) -> Value {
    let options = [("clip_ratio_low", "dppo_mask_low"), ("clip_ratio_high", "dppo_mask_high")];
    let result = prime_loss(case, "dppo_rollout", &options);
    let term = echo::term(&case.column("log_probs"), &case.column("ce_weights"), case.option_number("ce_scale") as usize);
    let sum: Vec<f32> = result.d_log_prob.iter().zip(&term.d_log_prob).map(|(a, b)| a + b).collect();
    json!({"loss": result.loss + term.loss, "grad": case.whole(&sum)})
}
