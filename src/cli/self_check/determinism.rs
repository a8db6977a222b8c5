//! Two equal training steps, on all threads and on one thread, which must give the same bits.

use std::path::Path;

use anyhow::{Context, Result};
use burn::tensor::Device;
use rayon::ThreadPoolBuilder;
use serde_json::json;

use super::finding::Finding;
use burnish_distributed::Ranks;
use burnish_model::hf_config::HfConfig;
use burnish_model::token_stats::TokenGrads;
use burnish_model::weights::visit;
use burnish_model::{CausalLm, Gradients, Init, Sequence};
use burnish_optim::{AdamWConfig, Learner, Optimizer, Schedule, schedule};

/// Compares the weights after equal steps. `step`: makes the step and returns the weights.
pub(super) fn check(step: impl Fn() -> Result<Vec<u32>> + Send + Sync) -> Finding {
    let compared = || -> Result<(Vec<u32>, Vec<u32>, Vec<u32>)> {
        let alone = ThreadPoolBuilder::new().num_threads(1).build().context("a pool of one thread")?;
        Ok((step()?, step()?, alone.install(&step)?))
    };
    let advice = "a run cannot be repeated or resumed exactly on this machine: report this with the processor's name";
    match compared() {
        Err(error) => Finding::problem(format!("a small step fails: {error:#}"), advice),
        Ok((first, second, _)) if first != second => {
            Finding::problem("the same small step gives other bits the second time", advice)
        }
        Ok((first, _, alone)) if first != alone => Finding::problem("a small step gives other bits on one thread", advice),
        Ok(_) => Finding::ok("a small step gives the same bits twice, and on one thread"),
    }
}

/// Trains a random model for one step and returns the bits of its weights.
pub(super) fn step() -> Result<Vec<u32>> {
    let config = json!({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 64,
        "initializer_range": 0.1, "intermediate_size": 160, "max_position_embeddings": 64, "num_attention_heads": 4,
        "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "tie_word_embeddings": false, "vocab_size": 301,
    });
    let hf = HfConfig::from_json(config.as_object().cloned().unwrap_or_default());
    let model = CausalLm::load_as(Path::new("self-check"), hf, Init::Random { seed: 1 }, &Device::flex())?;
    let adamw = AdamWConfig { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01 };
    let mut learner = Learner {
        name: "model",
        model: model.trainable(),
        ranks: Ranks::alone(),
        optimizer: Optimizer::adamw(adamw),
        schedule: Schedule::new(schedule::find("constant").context("no constant schedule")?, 1),
        lr: 1e-3,
        grad_clip: 1.0,
    };
    let tokens = |count: usize, from: usize| (0..count).map(|index| ((index * 37 + from * 11) % 301) as u32).collect::<Vec<_>>();
    let (prompt, responses) = (tokens(9, 0), [tokens(24, 1), tokens(17, 2), tokens(31, 3)]);
    let sequences = responses.each_ref().map(|response| Sequence::new(&prompt, response));
    let mut gradients = Gradients::default();
    learner.model.backward(&sequences, 1.0, None, &mut gradients, |stats| TokenGrads {
        log_prob: stats.log_prob.iter().map(|log_prob| log_prob.exp() - 0.1).collect(),
        entropy: vec![-0.01; stats.entropy.len()],
        full_kl: vec![],
    });
    learner.update(gradients, 1e-3)?;
    let mut bits = vec![];
    visit(&learner.model.net, &mut |_, _, _, values| bits.extend(values.all().into_iter().map(f32::to_bits)));
    Ok(bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn a_step_repeats_and_changes_weights_and_other_bits_are_seen() {
        let found = check(step);
        assert!(found.is_ok() && step().unwrap().len() > 100_000, "{found:?}");
        // The bits change at the second step or at the third, or a step fails.
        for changes in [1, 2] {
            let count = AtomicU32::new(0);
            let found = check(|| Ok(vec![u32::from(count.fetch_add(1, Ordering::SeqCst) == changes)]));
            assert!(!found.is_ok(), "{changes}: {found:?}");
        }
        assert!(!check(|| anyhow::bail!("no step")).is_ok());
    }
}
