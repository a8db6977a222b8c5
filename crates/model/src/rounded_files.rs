//! Matrices of files, rounded to 4 bits as the network rounds them. A merged adapter is then added to the weights that it was trained
//! with.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::config::DecoderConfig;
use super::lora::targets::matrices;
use super::nf4::Nf4Matrix;
use super::tensor_values::name_in_files;
use super::weights::WeightFiles;

/// The tensors that a model holds in 4 bits; none if it holds all in float32.
pub struct RoundedFiles {
    config: DecoderConfig,
    /// The parameters in each tensor, with their shapes [out, in].
    tensors: BTreeMap<String, Vec<(String, [usize; 2])>>,
}

impl RoundedFiles {
    /// Finds the tensors in the files of a model with this config.
    ///
    /// # Errors
    /// If a file cannot be read, or a matrix is missing.
    pub fn new(config: &DecoderConfig, files: &WeightFiles) -> Result<Self> {
        let (views, mut tensors) = (files.tensors()?, BTreeMap::<String, Vec<_>>::new());
        let held = if config.quantization.is_some() { matrices(config) } else { Vec::new() };
        for (parameter, shape) in held {
            let place = config.place(&parameter).name;
            let name = name_in_files(&views, &place, &parameter).with_context(|| format!("tensor `{place}` is missing"))?;
            tensors.entry(name.clone()).or_default().push((parameter, shape));
        }
        Ok(Self { config: config.clone(), tensors })
    }

    /// Rounds the values of a tensor, if the model holds it in 4 bits.
    pub fn round(&self, tensor: &str, values: &mut [f32]) {
        let (Some(parameters), Some(form)) = (self.tensors.get(tensor), self.config.quantization) else { return };
        for (parameter, shape) in parameters {
            let place = self.config.place(parameter);
            let matrix = place.from_file(values.to_vec(), shape, &self.config);
            let matrix = Nf4Matrix::new(&matrix, *shape, form.double_quant).values();
            place.into_file(&matrix, shape, &self.config, values);
        }
    }
}
