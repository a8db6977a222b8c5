//! The names of experts' parameters, in the network and in files.

use crate::naming::Naming;

/// The path of experts in a block of the network.
const PATH: &str = ".mlp.experts";

/// A parameter of experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileExperts<'a> {
    /// The path of the experts in the network.
    path: &'a str,
    /// `gate_proj`, `up_proj` or `down_proj`.
    projection: &'a str,
    pub(super) is_bias: bool,
}

impl<'a> FileExperts<'a> {
    /// Parses a parameter's name; `None` for a parameter that does not belong to experts.
    pub(crate) fn of(parameter: &'a str) -> Option<Self> {
        let (path, name) = parameter.rsplit_once('.').filter(|(path, _)| path.ends_with(PATH))?;
        let (projection, is_bias) = name.strip_suffix("_bias").map_or((name, false), |projection| (projection, true));
        Some(Self { path, projection, is_bias })
    }

    /// The path of the tensor of one expert in files that have one for each.
    pub(crate) fn of_expert(&self, expert: usize, naming: &Naming) -> String {
        let kind = if self.is_bias { "bias" } else { "weight" };
        naming.place(&format!("{}.{expert}.{}.{kind}", self.path, self.projection)).name
    }

    /// The path of the tensor with all experts in files that have such, and the part of its rows: gate, up or all.
    pub(crate) fn of_all(&self, naming: &Naming) -> (String, Option<usize>) {
        let [into, out] = naming.joined_experts;
        let (name, part) = match self.projection {
            "gate_proj" => (into, Some(0)),
            "up_proj" => (into, Some(1)),
            _ => (out, None),
        };
        let path = self.path.replace(PATH, naming.experts);
        (format!("{path}.{name}{}", if self.is_bias { "_bias" } else { "" }), part)
    }

    /// The tensors of single experts, in order, that a tensor of all experts joins: `….experts.gate_up_proj` [experts, 2 ·
    /// intermediate, h] or `….experts.down_proj` [experts, h, intermediate]. `None` for another tensor.
    pub(super) fn joined_in(tensor: &str, experts: usize, naming: &Naming) -> Option<Vec<String>> {
        let (path, name) = tensor.rsplit_once('.')?;
        let path = path.strip_suffix(naming.experts)?.to_owned() + PATH;
        let projections: &[&str] = match name {
            "gate_up_proj" => &["gate_proj", "up_proj"],
            "down_proj" => &["down_proj"],
            _ => return None,
        };
        let of = |expert, projection| FileExperts { path: &path, projection, is_bias: false }.of_expert(expert, naming);
        Some((0..experts).flat_map(|expert| projections.iter().map(move |name| of(expert, name))).collect())
    }
}
