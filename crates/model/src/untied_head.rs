//! Finds heads that config.json ties to the embedding although the files hold both. If both are equal, they are tied; otherwise
//! they are not, as in transformers 5 (`PreTrainedModel.tie_weights`).

use safetensors::tensor::TensorView;

use super::naming::Naming;
use super::tensor_values::{count, numbers};
use super::weight_tensor::Tensors;

const EMBEDDING: &str = "model.embed_tokens.weight";
const HEAD: &str = "lm_head.weight";

/// The possible names of a language model's head in files.
pub(super) fn head_names(naming: &Naming) -> [String; 2] {
    [naming.place(HEAD).name, HEAD.to_owned()]
}

/// The possible names of the embedding in files, as in [`name_in_files`](super::tensor_values::name_in_files).
pub(super) fn embedding_names(naming: &Naming) -> Vec<String> {
    let name = naming.place(EMBEDDING).name;
    let bare = name.split_once('.').map(|(_, rest)| rest.to_owned());
    [Some(name.clone()), bare, Some(EMBEDDING.to_owned())].into_iter().flatten().collect()
}

/// True if a model's files hold both an embedding and a head, and these differ.
pub(super) fn has_untied_head(tensors: &Tensors, naming: &Naming) -> bool {
    let of = |names: &[String]| names.iter().find_map(|name| tensors.get(name));
    let both = of(&embedding_names(naming)).zip(of(&head_names(naming)));
    both.is_some_and(|(embedding, head)| !are_equal(embedding, head))
}

/// True if two tensors have the same shape and, as float32, the same values.
pub(super) fn are_equal(a: &TensorView, b: &TensorView) -> bool {
    const RUN: usize = 1 << 20;
    if a.shape() != b.shape() {
        return false;
    }
    if a.dtype() == b.dtype() && a.data() == b.data() {
        return true;
    }
    let size = count(a);
    let runs = (0..size).step_by(RUN).map(|start| start..size.min(start + RUN));
    runs.into_iter().all(|run| match (numbers(a, run.clone()), numbers(b, run)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    })
}
