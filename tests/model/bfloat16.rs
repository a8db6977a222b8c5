//! bfloat16 compute with f32 parameters, which is the default on most GPUs, against f32 on the same golden models: training gives
//! nearly the same values, and generation uses the trained policy. Tests run on the CPU, which computes in bfloat16 on every
//! machine.

use std::path::Path;

use burn::tensor::{DType, Device, Tensor};
use burnish::model::lora::peft::PeftAdapter;
use burnish::model::token_stats::TokenGrads;
use burnish::model::{CausalLm, Gradients, Init, Sequence, TokenStats};
use burnish::rollout::{Engine, GenerationRequest, NativeEngine, Sampling};
use burnish::util::rng::Stream;

/// Models with every kind of layer: windows and soft caps, learned positions and biases, a partial rotation, tied heads, norms of
/// heads. The two numbers are the error of bfloat16 on [`texts`] in torch 2.15 under `torch.autocast`, which rounds where we do.
/// First, the mean difference of a log-probability from f32. Second, the difference of the gradient of [`backward`]'s loss, over
/// its norm. The weights of these models are large, so the errors are larger than in a trained model.
const MODELS: [(&str, f64, f64); 6] = [
    ("llama", 0.0641, 0.0948),
    ("gemma2", 0.0462, 0.0537),
    ("gpt2", 0.0426, 0.0575),
    ("gpt_neox", 0.0264, 0.0357),
    ("qwen3", 0.0385, 0.0257),
    ("llama3_rope_tied", 0.0743, 0.1237),
];

fn load(name: &str) -> CausalLm {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/models").join(name);
    CausalLm::load(&folder, Init::Pretrained, &Device::flex()).unwrap()
}

/// Three responses to one prompt, and one response to each of several others.
fn texts() -> Vec<(Vec<u32>, Vec<u32>)> {
    let token = |i: usize| (i * 7919 + 13) as u32 % 256;
    let text = |from: usize, len: usize| (from..from + len).map(token).collect::<Vec<_>>();
    let lengths = [(0, 9, 40), (0, 9, 33), (0, 9, 1), (50, 4, 57), (80, 12, 45), (30, 6, 50), (90, 2, 60)];
    lengths.map(|(at, p, r)| (text(at, p), text(100 + r, r))).to_vec()
}

/// The statistics and gradients of a signed sum of log-probabilities, and the divergence from a reference.
fn backward(model: &CausalLm, reference: &CausalLm) -> (TokenStats, Gradients) {
    let texts = texts();
    let sequences: Vec<Sequence> = texts.iter().map(|(prompt, response)| Sequence::new(prompt, response)).collect();
    let (mut gradients, mut stats) = (Gradients::default(), TokenStats::default());
    model.backward(&sequences, 0.8, Some(reference.into()), &mut gradients, |seen| {
        stats = seen.clone();
        let n = seen.log_prob.len();
        let signs = (0..n).map(|i| if i % 3 == 0 { -1.0 } else { 0.5 }).collect();
        TokenGrads { log_prob: signs, entropy: vec![0.0; n], full_kl: vec![0.2; n] }
    });
    (stats, gradients)
}

fn mean_difference(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| f64::from((a - b).abs())).sum::<f64>() / a.len() as f64
}

/// The norm ‖x‖ of all gradients together.
fn norm<'a>(gradients: impl Iterator<Item = &'a Tensor<1>>) -> f64 {
    gradients.map(|g| f64::from(g.clone().square().sum().into_scalar::<f32>())).sum::<f64>().sqrt()
}

#[test]
fn bfloat16_loses_no_more_than_in_torch() {
    for (name, log_prob_error, gradient_error) in MODELS {
        let exact = load(name).trainable();
        let (stats, gradients) = backward(&exact, &exact);
        for checkpointing in [false, true] {
            let model = exact.clone().computing(true, checkpointing);
            let (narrow, narrow_gradients) = backward(&model, &exact.clone().computing(true, false));
            let error = mean_difference(&narrow.log_prob, &stats.log_prob);
            assert!(error > 0.0, "{name}: nothing was computed in bfloat16");
            assert!(error < 1.25 * log_prob_error, "{name}: log-probabilities are off by {error} on average");
            // The reference computes its matmuls in the same way, to the last bit.
            assert!(checkpointing || narrow.full_kl.iter().all(|&kl| kl == 0.0), "{name}: {:?}", narrow.full_kl);
            let entropy = mean_difference(&narrow.entropy, &stats.entropy);
            assert!(entropy < log_prob_error, "{name}: entropies are off by {entropy} on average");
            let differences = gradients.0.iter().map(|(parameter, g)| {
                let got = narrow_gradients.0[parameter].clone();
                assert_eq!(got.dtype(), DType::F32, "{name} {parameter}");
                got - g.clone()
            });
            let error = norm(differences.collect::<Vec<_>>().iter()) / norm(gradients.0.values());
            assert!(error < 1.25 * gradient_error, "{name}: gradients are off by {error}");
        }
    }
}

/// Matrices that are cast once for several passes give the same results as matrices that each pass casts; adapters too.
#[test]
fn passes_may_share_what_they_cast() {
    let dense = |name: &str| load(name);
    let adapted = |name: &str| {
        let adapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/lora").join(name);
        load(name).adapted(&PeftAdapter::read(&adapter).unwrap()).unwrap()
    };
    for (name, model) in
        [("gpt2", dense("gpt2")), ("llama3_rope_tied", dense("llama3_rope_tied")), ("gpt_neox", adapted("gpt_neox"))]
    {
        for checkpointing in [false, true] {
            let model = model.clone().computing(true, checkpointing).trainable();
            let expected = backward(&model, &model);
            let (passes, reference) = (model.for_passes(), model.inference());
            for _ in 0..2 {
                let got = backward(&passes, &reference);
                assert_eq!(got.0, expected.0, "{name}");
                assert_eq!(got.1.0.len(), expected.1.0.len(), "{name}");
                for (parameter, gradient) in &expected.1.0 {
                    let difference = (got.1.0[parameter].clone() - gradient.clone()).abs().max().into_scalar::<f32>();
                    assert_eq!(difference, 0.0, "{name} {parameter}");
                }
            }
        }
    }
}

/// Decode and prefill, on copies of the matrices, against the training pass over the tokens that they sampled.
#[test]
fn what_generates_in_bfloat16_is_what_is_trained() {
    for (name, log_prob_error, _) in MODELS {
        let model = load(name).computing(true, false).trainable();
        let texts = texts();
        let prompts: Vec<&[u32]> = texts.iter().map(|(prompt, _)| prompt.as_slice()).collect();
        let request = GenerationRequest {
            prompts: &prompts[2..4],
            n: 3,
            sampling: Sampling { max_tokens: 40, temperature: 0.8, ..Sampling::default() },
            eos: &[],
            stops: None,
            rules: None,
            stream: &|prompt, sample| Stream::new(3, "rollout", &[prompt as u64, sample as u64]),
            finished: None,
            progress: None,
        };
        let mut engine = NativeEngine { max_num_seqs: 4, max_num_batched_tokens: 64, max_model_len: None, enforce_eager: false };
        let responses = engine.generate(&model, &request).unwrap();
        let sequences: Vec<Sequence> =
            responses.iter().enumerate().map(|(i, response)| Sequence::new(request.prompts[i / 3], &response.ids)).collect();
        let sampled: Vec<f32> = responses.iter().flat_map(|response| response.log_probs.iter().copied()).collect();
        let trained = model.token_stats(&sequences, 0.8, None).log_prob;
        assert_eq!(sampled.len(), 6 * 40);
        let error = mean_difference(&sampled, &trained);
        assert!(error < log_prob_error, "{name}: log-probabilities differ by {error} on average");
    }
}
