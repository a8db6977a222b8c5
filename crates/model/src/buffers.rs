//! Tests of buffers in the files of old models: a buffer that equals the computed values is skipped silently, any other is
//! reported.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::TensorView;

use super::config::Positions;
use super::hf_config::HfConfig;
use super::skipped_tensors::{SkippedTensor, skip_tensors};
use super::weight_tensor::WeightTensor;

/// For every buffer of every family: values that equal the computed ones are skipped silently, any other value is reported.
#[test]
fn buffers_are_what_is_computed_or_named() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/models");
    let mut kinds = Vec::new();
    for family in ["gpt2", "gpt_neox", "llama", "llama3_rope_tied", "mistral_sliding", "qwen2", "qwen3", "gemma", "gemma2"] {
        let config = HfConfig::read(&golden.join(family)).unwrap().decoder().unwrap();
        for buffer in config.naming.buffers {
            let name = format!("model.layers.0{buffer}");
            let kind = SkippedTensor::classify(&name, &config).unwrap();
            let (shape, values) = match (kind, &config.positions) {
                (SkippedTensor::Mask, _) => (vec![1, 1, 3, 3], vec![1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0]),
                (SkippedTensor::MaskedScore, _) => (vec![], vec![-1e9]),
                (_, Positions::Rotary(rope)) => {
                    let frequencies = rope.inverse_frequencies(config.head_dim);
                    (vec![frequencies.len()], frequencies)
                }
                (_, Positions::Learned) => continue,
            };
            let named = |values: &[f32]| {
                let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
                let view = WeightTensor::new(TensorView::new(Dtype::F32, shape.clone(), &bytes).unwrap());
                let mut tensors = BTreeMap::from([(name.clone(), view)]);
                let named = skip_tensors(&mut tensors, &config);
                assert!(tensors.is_empty(), "{family}: {name}");
                named
            };
            assert_eq!(named(&values), Vec::new(), "{family}: {name}");
            for at in 0..values.len() {
                let mut others = values.clone();
                others[at] = if others[at] == 0.0 { 1.0 } else { 0.0 };
                let [(_, what)] = &named(&others)[..] else { panic!("{family}: {name}: {others:?} are not named") };
                assert!(what.contains(&name), "{what}");
            }
            kinds.push(kind);
        }
    }
    assert!(
        [SkippedTensor::Mask, SkippedTensor::MaskedScore, SkippedTensor::Frequencies].iter().all(|kind| kinds.contains(kind))
    );
}
