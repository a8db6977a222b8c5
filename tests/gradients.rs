//! Gradients do not depend on how a mini-batch is cut: the whole actor objective, through a real model.

use std::path::Path;

use burn::tensor::Device;
use burnish::algorithm::loss::{LossColumns, PolicyObjective};
use burnish::algorithm::policy_loss::ClipOptions;
use burnish::algorithm::{aggregate, kl, policy_loss};
use burnish::model::token_stats::TokenGrads;
use burnish::model::{CausalLm, Cut, Gradients, Init, Sequence};

const LENGTHS: [(usize, usize); 7] = [(3, 5), (1, 1), (9, 2), (4, 11), (2, 7), (6, 6), (3, 1)];

#[test]
fn gradients_do_not_depend_on_the_size_of_a_micro_batch() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/models/qwen2");
    let model = CausalLm::load(&folder, Init::Pretrained, &Device::flex()).unwrap().trainable();
    let token = |i: usize| (i * 7919 + 13) as u32 % 256;
    let texts: Vec<(Vec<u32>, Vec<u32>)> = LENGTHS
        .iter()
        .enumerate()
        .map(|(s, &(p, r))| ((0..p).map(|i| token(s * 31 + i)).collect(), (0..r).map(|i| token(s * 57 + i + 999)).collect()))
        .collect();
    let sequences: Vec<Sequence> = texts.iter().map(|(prompt, response)| Sequence { prompt, response }).collect();
    let lengths: Vec<usize> = sequences.iter().map(|s| s.len()).collect();
    let mut offsets = vec![0];
    sequences.iter().for_each(|s| offsets.push(offsets[offsets.len() - 1] + s.response.len()));
    let tokens = offsets[LENGTHS.len()];
    let noise = |i: usize, k: f32| (i as f32 * k).sin();
    let base = model.frozen().token_stats(&sequences, 0.9).log_prob;
    let old: Vec<f32> = base.iter().enumerate().map(|(i, x)| x + 0.3 * noise(i, 1.7)).collect();
    let reference: Vec<f32> = base.iter().enumerate().map(|(i, x)| x + 0.2 * noise(i, 0.9)).collect();
    let advantages: Vec<f32> = (0..tokens).map(|i| noise(i, 2.3)).collect();
    let mask: Vec<f32> = (0..tokens).map(|i| if i % 6 == 4 { 0.0 } else { 1.0 }).collect();
    let objective = PolicyObjective {
        policy_loss: policy_loss::find("vanilla").unwrap(),
        clip: ClipOptions { low: 0.2, high: 0.28, c: 3.0 },
        entropy_coeff: 0.01,
        kl_loss: Some((kl::find("low_var_kl").unwrap(), 0.1)),
    };

    for mode in aggregate::names() {
        let weights = aggregate::token_weights(aggregate::find(mode).unwrap(), &offsets, &mask, None, 16);
        let gradients = |cut: Cut| {
            let mut gradients = Gradients::default();
            for micro in cut.micro_batches(&lengths) {
                let pick =
                    |x: &[f32]| -> Vec<f32> { micro.iter().flat_map(|&i| x[offsets[i]..offsets[i + 1]].to_vec()).collect() };
                let mut at = vec![0];
                micro.iter().for_each(|&i| at.push(at[at.len() - 1] + offsets[i + 1] - offsets[i]));
                let batch: Vec<Sequence> = micro.iter().map(|&i| sequences[i]).collect();
                model.backward(&batch, 0.9, &mut gradients, |stats| {
                    let result = objective.evaluate(&LossColumns {
                        offsets: &at,
                        mask: &pick(&mask),
                        log_prob: &stats.log_prob,
                        entropy: &stats.entropy,
                        old_log_prob: Some(&pick(&old)),
                        ref_log_prob: Some(&pick(&reference)),
                        advantages: &pick(&advantages),
                        weights: &pick(&weights),
                        rollout_is_weights: None,
                    });
                    TokenGrads { log_prob: result.d_log_prob, entropy: result.d_entropy }
                });
            }
            gradients.0
        };
        let whole = gradients(Cut::Sequences(LENGTHS.len()));
        for cut in [Cut::Sequences(1), Cut::Sequences(2), Cut::Sequences(3), Cut::Tokens(30)] {
            for (name, g) in gradients(cut) {
                let want = whole[&name].clone();
                let scale: f32 = want.clone().abs().max().into_scalar();
                let error: f32 = (g - want).abs().max().into_scalar();
                assert!(error <= 1e-5 * scale, "{mode}, {cut:?}, {name}: off by {error}, largest {scale}");
            }
        }
    }
}

/// The temperature divides the logits in training as it does in sampling: gradients agree with finite differences.
#[test]
fn gradients_agree_with_finite_differences() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/models/llama");
    let model = CausalLm::load(&folder, Init::Pretrained, &Device::flex()).unwrap().trainable();
    let (prompt, response) = ([5u32, 9, 200], [17u32, 33, 4, 90]);
    let sequence = [Sequence { prompt: &prompt, response: &response }];
    let value = |model: &CausalLm| {
        let stats = model.token_stats(&sequence, 0.7);
        stats.log_prob.iter().zip(&stats.entropy).map(|(l, h)| *l as f64 + 0.5 * *h as f64).sum::<f64>()
    };
    let mut gradients = Gradients::default();
    model.backward(&sequence, 0.7, &mut gradients, |stats| {
        let n = stats.log_prob.len();
        TokenGrads { log_prob: vec![1.0; n], entropy: vec![0.5; n] }
    });
    // Along the gradient itself the directional derivative is its squared norm.
    let norm = gradients.norm();
    let step = 1e-3 / norm;
    let moved = |sign: f64| {
        let sgd = burnish::optim::AdamWConfig { beta1: 0.0, beta2: 0.0, eps: 1e30, weight_decay: 0.0 };
        // w − lr·m/(√v + ε) with ε = 1e30 and lr = −sign·step·1e30 is w + sign·step·g.
        let mut copy = model.clone();
        let same = Gradients(gradients.0.clone());
        copy.net = burnish::optim::AdamW::new(sgd).update(copy.net, same, -sign * step * 1e30, 1.0);
        value(&copy)
    };
    let slope = (moved(1.0) - moved(-1.0)) / (2.0 * step);
    assert!((slope / (norm * norm) - 1.0).abs() < 1e-2, "slope {slope}, squared norm {}", norm * norm);
}
