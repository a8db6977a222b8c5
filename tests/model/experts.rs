//! Mixtures of experts: the same experts in generation and training, the losses of routers, files, and adapters.

use std::collections::BTreeMap;
use std::path::PathBuf;

use burnish::model::hf_config::HfConfig;
use burnish::model::kv_cache::BlockTable;
use burnish::model::lora::targets::select;
use burnish::model::ops::Packed;
use burnish::model::{CausalLm, Gradients, Init, LoraSettings, Sequence};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde_json::Value;

use crate::device::{cases, device, has_bfloat16};
use crate::transformers::{goldens, model_folders, module_name, sequences, supervised};

/// The golden models with mixtures.
fn mixtures() -> Vec<(String, PathBuf, CausalLm)> {
    let load = |folder: PathBuf| {
        let name = folder.file_name()?.to_string_lossy().into_owned();
        let is_mixture = HfConfig::read(&folder).ok()?.decoder().is_ok_and(|config| config.mixture.is_some());
        is_mixture.then(|| (name, folder.clone(), CausalLm::load(&folder, Init::Pretrained, &device()).unwrap()))
    };
    let found: Vec<_> = model_folders(&goldens()).into_iter().filter_map(load).collect();
    assert!(!found.is_empty(), "no golden model with mixtures");
    found
}

fn golden(folder: &std::path::Path, file: &str) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join(file)).unwrap()).unwrap()
}

/// Generation token by token, a training pass over the whole text, and one in which texts share their prompt route alike.
#[test]
fn generation_and_training_choose_the_same_experts() {
    for (name, folder, model) in cases(mixtures(), 1) {
        let (model, top_k) = (model.with_routers(1.0), model.config.mixture.as_ref().unwrap().top_k);
        let layers = model.config.mixture.as_ref().unwrap().count();
        for seq in sequences(&golden(&folder, "golden.json")).iter().filter(|seq| seq.len() > 20) {
            let prompt = 7;
            let (mut cache, mut table) = (model.cache(), BlockTable::new());
            cache.extend(&mut table, seq.len());
            let mut packed = Packed::default();
            packed.push(prompt, &[]);
            model.prefill(&seq[..prompt], &packed.into(), &[&table], &mut cache);
            let mut generated = model.routed_experts().unwrap();
            for (position, id) in seq.iter().enumerate().take(seq.len() - 1).skip(prompt) {
                model.decode(&[*id], &[position], &[&table], &mut cache);
                let step = model.routed_experts().unwrap();
                generated.iter_mut().zip(step).for_each(|(all, step)| all.extend(step));
            }
            let whole = Sequence::new(&seq[..prompt], &seq[prompt..]);
            model.token_stats(&[whole], 1.0, None);
            assert_eq!(model.routed_experts().unwrap(), generated, "{name}");

            let other = Sequence::new(&seq[..prompt], &seq[prompt + 3..]);
            model.token_stats(&[whole, other], 1.0, None);
            let shared = model.routed_experts().unwrap();
            assert_eq!(shared.len(), layers, "{name}");
            for (shared, alone) in shared.iter().zip(&generated) {
                let rows = (seq.len() - 1) + (seq.len() - 4 - prompt);
                assert_eq!(shared.len(), rows * top_k, "{name}: the prompt is routed once");
                assert_eq!(shared[..alone.len()], alone[..], "{name}");
            }
        }
    }
}

/// The losses of routers and their gradients against transformers, without and with recomputed blocks, which route alike.
#[test]
fn golden_router_losses() {
    let mut seen = 0;
    let with_losses = mixtures().into_iter().filter(|(_, folder, _)| folder.join("routers.json").exists());
    for (name, folder, _) in cases(with_losses, 1) {
        seen += 1;
        let (expected, seqs) = (golden(&folder, "routers.json"), sequences(&golden(&folder, "golden.json")));
        let changes = expected["config"].as_object().unwrap().clone();
        let load = |changes| {
            let hf = HfConfig::read(&folder).unwrap().overridden(changes);
            CausalLm::load_as(&folder, hf, Init::Pretrained, &device()).unwrap().trainable()
        };
        let mut all = Vec::new();
        for recomputes in [false, true] {
            let model = load(changes.clone()).computing(false, recomputes);
            let model = model.with_routers(1.0);
            let mut gradients = Gradients::default();
            let nll = supervised(&model, &seqs, &mut gradients);
            let stats = model.router_stats().unwrap();
            for (ours, key) in [(nll, "nll"), (stats.aux_loss, "aux_loss"), (stats.z_loss, "z_loss")] {
                let theirs = expected[key].as_f64().unwrap();
                assert!((ours - theirs).abs() <= 3e-6 * theirs, "{name} {key}: {ours}, transformers has {theirs}");
            }
            let mut squares: BTreeMap<String, f64> = BTreeMap::new();
            for (parameter, norm) in gradients.norms() {
                *squares.entry(module_name(&model.config.place(parameter).name)).or_default() += norm * norm;
            }
            let theirs = expected["grad_norms"].as_object().unwrap();
            assert_eq!(squares.len(), theirs.len(), "{name}");
            for (parameter, square) in squares {
                let (norm, expected) = (square.sqrt(), theirs[&parameter].as_f64().unwrap());
                assert!((norm - expected).abs() <= 5e-5 * expected, "{name} {parameter}: {norm}, torch has {expected}");
            }
            all.push(gradients.norms().map(|(name, norm)| (name.to_owned(), norm)).collect::<Vec<_>>());
        }
        // The sums of a whole graph have another order than those of its blocks.
        for ((parameter, kept), (_, recomputed)) in all[0].iter().zip(&all[1]) {
            assert!((kept - recomputed).abs() <= 2e-6 * kept, "{name} {parameter}: {kept}, recomputed {recomputed}");
        }

        // A frozen router has no gradient.
        let frozen = load([("moe_config".to_owned(), serde_json::json!({"freeze_moe_router": true}))].into_iter().collect());
        let mut gradients = Gradients::default();
        supervised(&frozen, &seqs, &mut gradients);
        let of_router = |name: &str| name.contains("mlp.gate.") || name.contains("shared_expert_gate");
        assert!(all[0].iter().any(|(name, _)| of_router(name)), "{name}");
        assert!(!gradients.norms().any(|(name, _)| of_router(name)), "{name}");
    }
    assert!(seen > 0, "no golden losses of routers");
}

/// Columns of a tensor of transformers' modules, and the tensors of a file that it consists of.
type Joined = (usize, Vec<(String, Vec<u8>)>);

/// A folder with the tensors of transformers' modules gives the same model as the published layout, which is written.
#[test]
fn both_layouts_of_files_are_the_same_model() {
    for (name, folder, model) in cases(mixtures(), 1) {
        let saved = tempfile::tempdir().unwrap();
        model.save(saved.path()).unwrap();
        let bytes = std::fs::read(saved.path().join("model.safetensors")).unwrap();
        let written = SafeTensors::deserialize(&bytes).unwrap();
        let original = std::fs::read(folder.join("model.safetensors")).unwrap();
        let original = SafeTensors::deserialize(&original).unwrap();
        assert_eq!(written.len(), original.len(), "{name}");
        for (tensor, view) in original.tensors() {
            let ours = written.tensor(&tensor).unwrap_or_else(|_| panic!("{name}: {tensor} is not written"));
            assert!(ours.shape() == view.shape() && ours.data() == view.data(), "{name}: {tensor}");
        }

        let mut fused: BTreeMap<String, Joined> = BTreeMap::new();
        let mut others = Vec::new();
        for (tensor, view) in written.tensors() {
            let module = module_name(&tensor);
            match tensor.contains(".experts.") && module != tensor {
                // The order of names is the order of experts up to 10 experts, and of gate (w1) before up (w3).
                true => {
                    let entry = fused.entry(module).or_insert((view.shape()[1], Vec::new()));
                    entry.1.push((tensor, view.data().to_vec()));
                }
                false => others.push((tensor, view.shape().to_vec(), view.data().to_vec())),
            }
        }
        if fused.is_empty() {
            continue;
        }
        let experts = model.config.mixture.as_ref().unwrap().experts;
        assert!(experts <= 10);
        for (module, (columns, mut parts)) in fused {
            parts.sort();
            let data: Vec<u8> = parts.into_iter().flat_map(|(_, data)| data).collect();
            let rows = data.len() / 4 / experts / columns;
            others.push((module, vec![experts, rows, columns], data));
        }
        let views =
            others.iter().map(|(name, shape, data)| (name.clone(), TensorView::new(Dtype::F32, shape.clone(), data).unwrap()));
        let bytes = safetensors::serialize(views, None).unwrap();
        std::fs::write(saved.path().join("model.safetensors"), bytes).unwrap();
        let again = CausalLm::load(saved.path(), Init::Pretrained, &device()).unwrap();
        assert_eq!(again.fingerprint(), model.fingerprint(), "{name}");
    }
}

/// Adapters are on attention and shared experts; experts are refused by name. All parameters are counted.
#[test]
fn adapters_leave_the_experts_alone() {
    for (name, _, model) in mixtures() {
        let (config, settings) = (&model.config, |modules: &[&str]| LoraSettings {
            rank: 2,
            alpha: 4.0,
            target_modules: modules.iter().map(|module| (*module).to_owned()).collect(),
            group: "model",
            ..LoraSettings::default()
        });
        let chosen = select(config, &settings(&["all-linear"])).unwrap();
        let is_output = |path: &str| path.ends_with("attn.o_proj") || path.ends_with("attn.out_proj");
        assert!(chosen.iter().any(|target| is_output(&target.path)), "{name}");
        assert!(!chosen.iter().any(|target| target.path.contains(".experts.")), "{name}");
        if config.mixture.as_ref().unwrap().layers.iter().all(|is_mixture| *is_mixture)
            && config.mixture.as_ref().unwrap().shared.is_none()
        {
            let error = select(config, &settings(&["down_proj"])).unwrap_err().to_string();
            assert!(error.contains("the experts of a mixture and their router cannot have adapters"), "{name}: {error}");
        }
        assert_eq!(config.num_parameters(), model.num_parameters(), "{name}");
        assert!(config.active_parameters() < config.num_parameters(), "{name}");
    }
}

/// Matmuls in bfloat16 give nearly the loss of float32, and the same parameters get gradients.
#[test]
fn bfloat16_is_near() {
    if !has_bfloat16() {
        return;
    }
    // The random weights of recurrent layers in the goldens amplify rounding; `recurrent.rs` has better ones.
    for (name, folder, model) in mixtures().into_iter().filter(|(.., model)| model.config.recurrent_layers.is_none()) {
        let seqs = sequences(&golden(&folder, "golden.json"));
        let run = |model: CausalLm| {
            let mut gradients = Gradients::default();
            let loss = supervised(&model.trainable(), &seqs, &mut gradients);
            (loss, gradients.norm(), gradients.norms().count())
        };
        let ((loss, norm, count), (exact, exact_norm, all)) = (run(model.clone().computing(true, false)), run(model));
        assert!(
            (loss - exact).abs() < 2e-2 && (norm / exact_norm - 1.0).abs() < 0.1 && count == all,
            "{name}: {loss}, {exact}, {norm}, {exact_norm}"
        );
    }
}
