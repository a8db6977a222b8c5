//! A trained language model in a copy of the model of images and text that it was read from. All other tensors and files stay
//! unchanged.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use safetensors::Dtype;

use super::merged_weights::{Source, WeightForm, copy, is_weights};
use burnish_model::DecoderConfig;
use burnish_model::hf_config::{HfConfig, whole_with_dtype};
use burnish_model::tensor_files::{DeferredTensor, write_model};
use burnish_model::weights::{WeightFiles, of_language_model};
use burnish_optim::learner::{ADAPTER, HUGGINGFACE};

/// Writes a copy of the model in `whole` with the language model of a part of a checkpoint.
///
/// # Errors
/// If `whole` is another kind of model or has another language model, or if a file cannot be read or written.
pub(crate) fn write_whole(part: &Path, whole: &Path, to: &Path, form: &WeightForm) -> Result<()> {
    let (huggingface, text) = (part.join(HUGGINGFACE), whole_with_dtype(whole, form.name)?);
    let (trained, theirs) = (HfConfig::read(&huggingface)?, HfConfig::read(whole)?.decoder()?);
    ensure!(
        trained.classifier().is_none(),
        "--into: {} is a classifier, and the text part of {} is a language model",
        huggingface.display(),
        whole.display()
    );
    let source = Source::find(&huggingface, &part.join(ADAPTER), form.base, &trained)?;
    // A run may have extended the model to longer sequences, and put its weights into 4 bits.
    let ours = trained.decoder()?;
    let DecoderConfig { max_position_embeddings, quantization, .. } = ours;
    let same = DecoderConfig { max_position_embeddings, quantization, ..theirs.clone() } == ours;
    ensure!(same, "the text part of {} is another model than the trained one", whole.display());

    let files = WeightFiles::open(whole)?;
    let parameters = files.parameters(&theirs)?;
    if let Some((name, tensor)) =
        parameters.iter().find(|(_, tensor)| !matches!(tensor.dtype(), Dtype::F32 | Dtype::F16 | Dtype::BF16))
    {
        bail!("{}: tensor `{name}` has dtype {:?}; give a folder in bfloat16 or float32", whole.display(), tensor.dtype());
    }
    let of_text = source.tensors(form.dtype)?.into_iter().map(|tensor| (tensor.name.clone(), tensor));
    let mut of_text = TextTensors(of_text.collect());
    let (mut tensors, mut replaced) = (Vec::new(), 0);
    for (name, view) in files.originals()? {
        let inner = of_language_model(name.clone());
        if parameters.contains_key(&inner) {
            let tensor =
                of_text.take(&inner, &theirs).with_context(|| format!("tensor `{name}` is not among the trained weights"))?;
            ensure!(tensor.shape == view.shape(), "tensor `{name}` is {:?}, the trained one {:?}", view.shape(), tensor.shape);
            tensors.push(tensor.with_dtype(form.dtype).renamed(name));
            replaced += 1;
        } else if !theirs.is_tied_head(&inner) {
            tensors.push(DeferredTensor::copied(name, &view));
        }
    }
    ensure!(replaced == parameters.len(), "{} lacks tensors of the text part, or holds some twice", whole.display());
    write_model(to, &tensors, form.shard)?;
    let path = to.join("config.json");
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    copy(whole, to, |name| name != "config.json" && !is_weights(name))
}

/// The trained tensors, by name.
struct TextTensors<'a>(BTreeMap<String, DeferredTensor<'a>>);

impl<'a> TextTensors<'a> {
    /// Takes a tensor out, or joins the tensors of all experts.
    fn take(&mut self, name: &str, config: &DecoderConfig) -> Option<DeferredTensor<'a>> {
        if let Some(tensor) = self.0.remove(name) {
            return Some(tensor);
        }
        let names = config.experts_in(name)?;
        let of_experts: Vec<DeferredTensor> = names.iter().map(|name| self.0.remove(name)).collect::<Option<_>>()?;
        let experts = config.mixture.as_ref()?.experts;
        let [rows, columns] = of_experts.first()?.shape[..] else { return None };
        let shape = vec![experts, rows * (names.len() / experts), columns];
        let values = move || of_experts.iter().flat_map(DeferredTensor::values).collect();
        Some(DeferredTensor::new(name.to_owned(), shape, values))
    }
}
