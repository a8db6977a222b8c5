//! Optimizers that update a tensor as a whole, on models of every family, against torch, transformers and bitsandbytes on Hugging
//! Face's models (`scripts/goldens/golden_family_optimizers.py`). They see the tensors of the files, fused and transposed as in
//! the files.

use std::collections::BTreeMap;

use burnish::distributed::Ranks;
use burnish::model::{CausalLm, FAMILIES, Gradients, Init, weights};
use burnish::optim::{Learner, OptimizerSettings, Schedule, find, schedule};
use serde_json::Value;

use crate::device::{device, for_the_cpu};
use crate::transformers::{goldens, model_folders, sequences, supervised};

/// The tensors of a model's files, by transformers' names of the parameters: GPT-NeoX's head is `embed_out` in files.
fn tensors(model: &CausalLm) -> BTreeMap<String, Vec<f32>> {
    let tensors = weights::file_tensors(&model.net, &model.config);
    tensors.iter().map(|tensor| (tensor.name.replace("embed_out.", "lm_head."), tensor.values())).collect()
}

/// Returns true for a tensor that rounding moves. A bias of keys moves all scores of a query equally, so its gradient is rounding
/// noise. In an embedding, the second moment of most rows is near 0: with 8 bits it may round to 0, and the step then has the
/// maximum size.
fn is_rounding(tensor: &str, optimizer: &str) -> bool {
    let of_keys = ["k_proj.bias", "c_attn.bias", "query_key_value.bias"].iter().any(|end| tensor.ends_with(end));
    of_keys || optimizer == "AdamW8bit" && tensor == "model.embed_tokens.weight"
}

#[test]
fn golden_optimizers_of_families() {
    if !for_the_cpu(
        "kernels for the shapes of nine models take minutes to compile, and the order of a file's tensors is the host's",
    ) {
        return;
    }
    let file: Value = serde_json::from_slice(&std::fs::read(goldens().join("family-optimizers.json")).unwrap()).unwrap();
    let number = |key: &str| file[key].as_f64().unwrap();
    let (lr, updates) = (number("lr"), file["updates"].as_u64().unwrap());
    let folders = model_folders(&goldens());
    let mut seen = Vec::new();
    let mut wrong = Vec::new();
    for case in file["cases"].as_array().unwrap() {
        let [name, optimizer] = ["model", "optimizer"].map(|key| case[key].as_str().unwrap());
        let folder = folders.iter().find(|folder| folder.ends_with(name)).unwrap_or_else(|| panic!("no golden model {name}"));
        let golden: Value = serde_json::from_slice(&std::fs::read(folder.join("golden.json")).unwrap()).unwrap();
        let config: Value = serde_json::from_slice(&std::fs::read(folder.join("config.json")).unwrap()).unwrap();
        seen.push((config["model_type"].as_str().unwrap().to_owned(), optimizer));
        let settings = OptimizerSettings {
            lr,
            betas: [0.9, 0.999],
            eps: 1e-8,
            weight_decay: number("weight_decay"),
            no_decay: Vec::new(),
            options: Default::default(),
        };
        let mut learner = Learner {
            name: "model",
            ranks: Ranks::alone(),
            model: CausalLm::load(folder, Init::Pretrained, &device()).unwrap().trainable(),
            optimizer: find(optimizer).unwrap().build(&settings).unwrap(),
            schedule: Schedule::new(schedule::find("constant").unwrap(), updates as usize),
            lr,
            grad_clip: 1e9,
        };
        let before = tensors(&learner.model);
        for _ in 0..updates {
            let mut gradients = Gradients::default();
            supervised(&learner.model, &sequences(&golden), &mut gradients);
            assert!(learner.update(gradients, lr).expect("whole weights").applied);
        }
        let after = tensors(&learner.model);
        // The moments of AdamW8bit are rounded, and a gradient on the edge of two codes may round to either.
        let tolerance = if optimizer == "AdamW8bit" { 2e-2 } else { 2e-3 };
        for (tensor, theirs) in case["moves"].as_object().unwrap().iter().filter(|(tensor, _)| !is_rounding(tensor, optimizer)) {
            let theirs: Vec<f64> = theirs.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
            let (old, new) = (&before[tensor], &after[tensor]);
            let moves: Vec<f64> = old.iter().zip(new).map(|(old, new)| f64::from(*new) - f64::from(*old)).collect();
            let norm = moves.iter().map(|x| x * x).sum::<f64>().sqrt();
            let last = moves.len() - 1;
            let probes = (0..5).map(|i| moves[(i as f64 / 4.0 * last as f64) as usize]);
            let rms = theirs[0] / (moves.len() as f64).sqrt();
            let of_norm = (norm / theirs[0] - 1.0).abs();
            let of_probes = probes.zip(&theirs[1..]).map(|(a, b)| (a - b).abs() / rms).fold(0.0, f64::max);
            if of_norm > tolerance || of_probes > 10.0 * tolerance {
                wrong.push(format!(
                    "{name} {optimizer} {tensor}: norm off by {of_norm:.1e}, a number by {of_probes:.1e} of its size"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Peers refuse or join the matrices of experts; the unit tests of the optimizers say what happens here.
    let mixtures = [
        "qwen3_moe",
        "qwen2_moe",
        "mixtral",
        "olmoe",
        "gpt_oss",
        "glm4_moe",
        "qwen3_5_moe_text",
        "lfm2_moe",
        "deepseek_v3",
        "deepseek_v2",
    ];
    for family in FAMILIES.iter().filter(|family| !mixtures.contains(&family.model_type)) {
        for optimizer in ["Muon", "Adafactor", "AdamW8bit"] {
            let is_this = |(name, of): &(String, &str)| name == family.model_type && *of == optimizer;
            assert!(
                seen.iter().any(is_this),
                "scripts/goldens/golden_family_optimizers.py has not written {optimizer} on {}",
                family.model_type
            );
        }
    }
}
