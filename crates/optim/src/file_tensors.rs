//! Tensors of the model's files, for optimizers that update a tensor as a whole. They are the parameters of Hugging Face's model,
//! which the optimizers of other libraries see. GPT-2 and GPT-NeoX store q, k and v as one matrix, and GPT-2 stores its matrices
//! as [in, out]. Adafactor, Muon and the blocks of AdamW8bit depend on that.

use std::collections::BTreeMap;

use burnish_model::DecoderConfig;
use burnish_model::naming::TensorLocation;

/// Tensors that contain a network's parameters as parts. Empty if the files store the parameters like the network.
#[derive(Default)]
pub(crate) struct FileTensors {
    config: Option<DecoderConfig>,
    /// By the name of the parameter.
    parts: BTreeMap<String, ParamPlace>,
}

/// Position of a parameter in a tensor.
struct ParamPlace {
    tensor: String,
    place: TensorLocation,
    shape: Vec<usize>,
}

/// Returns the position of a block's parameter in the files, and the network's own name for the tensor there; `None` for any
/// other parameter.
pub(crate) fn place(parameter: &str, config: &DecoderConfig) -> Option<(String, TensorLocation)> {
    let is_matrix = parameter.ends_with("_proj.weight") || parameter.ends_with("_proj.bias");
    let place = is_matrix.then(|| config.place(parameter)).filter(|place| !place.is_plain())?;
    let tensor = config.naming.fused(parameter).map_or_else(|| parameter.to_owned(), |(_, whole)| whole);
    Some((tensor, place))
}

impl FileTensors {
    /// Finds the tensors of a network with these parameters. `alike` tells if two names have the same update; a tensor whose
    /// parts have different updates is split.
    pub(crate) fn new(
        trained: &BTreeMap<String, Vec<usize>>,
        config: &DecoderConfig,
        alike: impl Fn(&str, &str) -> bool,
    ) -> Self {
        let mut parts = BTreeMap::new();
        let mut apart = Vec::new();
        for (name, shape) in trained {
            let Some((tensor, place)) = place(name, config) else { continue };
            if !alike(name, &tensor) {
                apart.push(tensor.clone());
            }
            parts.insert(name.clone(), ParamPlace { tensor, place, shape: shape.clone() });
        }
        parts.retain(|_, part| !apart.contains(&part.tensor));
        Self { config: Some(config.clone()), parts }
    }

    /// Returns the names and shapes of the tensors of a network with these parameters.
    pub(crate) fn shapes(&self, trained: BTreeMap<String, Vec<usize>>) -> BTreeMap<String, Vec<usize>> {
        let tensor = |(name, shape): (String, Vec<usize>)| match self.parts.get(&name) {
            Some(part) => {
                (part.tensor.clone(), part.place.shape(&shape, self.config.as_ref().expect("parts have the shape of a network")))
            }
            None => (name, shape),
        };
        trained.into_iter().map(tensor).collect()
    }

    /// Returns the name of the tensor that a parameter is a part of; `None` if the parameter is a tensor by itself.
    pub(crate) fn tensor(&self, parameter: &str) -> Option<&str> {
        self.parts.get(parameter).map(|part| part.tensor.as_str())
    }

    /// Writes the values of a parameter to their positions in its tensor.
    ///
    /// # Panics
    /// If the parameter is not a part of a tensor.
    pub(crate) fn put(&self, parameter: &str, values: &[f32], tensor: &mut [f32]) {
        let (part, config) = self.part(parameter);
        part.place.into_file(values, &part.shape, config, tensor);
    }

    /// Returns the values of a parameter from the values of its tensor.
    ///
    /// # Panics
    /// If the parameter is not a part of a tensor.
    pub(crate) fn take(&self, parameter: &str, tensor: &[f32]) -> Vec<f32> {
        let (part, config) = self.part(parameter);
        part.place.from_file(tensor.to_vec(), &part.shape, config)
    }

    fn part(&self, parameter: &str) -> (&ParamPlace, &DecoderConfig) {
        let part = self.parts.get(parameter).expect("a part of a tensor");
        (part, self.config.as_ref().expect("the shape of the network"))
    }
}
