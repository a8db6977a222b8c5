//! Edits of tensor files.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

/// Dtype, shape and bytes of a tensor.
pub(crate) type Tensor = (Dtype, Vec<usize>, Vec<u8>);

/// Tensors by name, and the metadata of their file.
pub(crate) struct TensorFile {
    pub tensors: BTreeMap<String, Tensor>,
    pub metadata: HashMap<String, String>,
}

impl TensorFile {
    pub(crate) fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let tensor = |(name, view): (String, TensorView)| (name, (view.dtype(), view.shape().to_vec(), view.data().to_vec()));
        let tensors = SafeTensors::deserialize(&bytes).unwrap().tensors().into_iter().map(tensor).collect();
        Self { tensors, metadata: header.metadata().clone().unwrap_or_default() }
    }

    pub(crate) fn write(&self, path: &Path) {
        let views: Vec<(String, TensorView)> = self
            .tensors
            .iter()
            .map(|(name, (dtype, shape, bytes))| (name.clone(), TensorView::new(*dtype, shape.clone(), bytes).unwrap()))
            .collect();
        std::fs::write(path, safetensors::serialize(views, Some(self.metadata.clone())).unwrap()).unwrap();
    }

    /// Sets an element of a float32 tensor.
    pub(crate) fn set(&mut self, name: &str, at: usize, number: f32) {
        self.tensors.get_mut(name).unwrap().2[4 * at..4 * at + 4].copy_from_slice(&number.to_le_bytes());
    }

    /// The bytes of a tensor.
    pub(crate) fn bytes(&self, name: &str) -> &[u8] {
        &self.tensors[name].2
    }
}
