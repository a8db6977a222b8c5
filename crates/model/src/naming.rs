//! Names and layout of the shared decoder's parameters in a family's files. The decoder itself uses Llama's names.

/// A family's names of parameters.
#[derive(Debug, PartialEq)]
pub struct Naming {
    /// Parts of the decoder's names and their replacements in files, applied one after another.
    pub replace: &'static [(&'static str, &'static str)],
    /// The order of the rows, if files hold q, k and v as one matrix (`self_attn.qkv_proj`).
    pub fused_qkv: Option<FusedQkv>,
    /// True if files hold gate and up as one matrix (`mlp.gate_up_proj`): all rows of the gate, then all rows of up.
    pub fused_gate_up: bool,
    /// True if the family rotates neighbouring dimensions of a head, (0, 1), (2, 3), … The decoder rotates the two halves of the
    /// rotated dimensions, so its rows of q and k are in another order: first all even ones of a head, then all odd ones.
    pub rotates_pairs: bool,
    /// True if files hold the projections of blocks as [in, out] (GPT-2's Conv1D).
    pub transposed: bool,
    /// The path of a block's experts in transformers' modules, where one tensor has a matrix of all of them.
    pub experts: &'static str,
    /// The names of the tensors there that hold gate and up, and down, of all experts.
    pub joined_experts: [&'static str; 2],
    /// The name of the head in the family's token classifiers.
    pub classifier: &'static str,
    /// Suffixes of tensors in old files that are not parameters: masks and rotary frequencies.
    pub buffers: &'static [&'static str],
}

/// The order of the rows of a fused matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FusedQkv {
    /// All of q, then all of k, then all of v.
    Blocks,
    /// The q, k and v of each head together, head after head.
    PerHead,
}

/// A part of a matrix that files hold as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FusedPart {
    Query,
    Key,
    Value,
    Gate,
    Up,
}

/// Every part of a fused matrix in the decoder's names: the part's projection, and the projection of the whole.
const PARTS: [(FusedPart, &str, &str); 5] = [
    (FusedPart::Query, ".q_proj", ".qkv_proj"),
    (FusedPart::Key, ".k_proj", ".qkv_proj"),
    (FusedPart::Value, ".v_proj", ".qkv_proj"),
    (FusedPart::Gate, ".gate_proj", ".gate_up_proj"),
    (FusedPart::Up, ".up_proj", ".gate_up_proj"),
];

impl FusedPart {
    /// True for the part that comes first in its matrix.
    pub fn is_first(self) -> bool {
        matches!(self, Self::Query | Self::Gate)
    }

    /// The part that a parameter or a module of the decoder can be, and the name of the whole.
    fn of(name: &str) -> Option<(Self, String)> {
        let is_in = |projection: &str| name.ends_with(projection) || name.contains(&format!("{projection}."));
        let (part, projection, whole) = PARTS.into_iter().find(|(_, projection, _)| is_in(projection))?;
        Some((part, name.replacen(projection, whole, 1)))
    }
}

/// The naming of files that use the decoder's own names. Families change the fields that differ.
pub(crate) const PLAIN: Naming = Naming {
    replace: &[],
    fused_qkv: None,
    fused_gate_up: false,
    rotates_pairs: false,
    transposed: false,
    experts: ".mlp.experts",
    joined_experts: ["gate_up_proj", "down_proj"],
    classifier: "score",
    buffers: &[".rotary_emb.inv_freq"],
};

/// [`PLAIN`] as the naming of a configuration.
pub(crate) static HUGGING_FACE: Naming = PLAIN;

/// The location of a parameter in files.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorLocation {
    pub name: String,
    /// The part of a fused tensor; `None` if the tensor is not fused.
    pub part: Option<FusedPart>,
    /// True if the rows of each head are in the order of [`Naming::rotates_pairs`].
    pub in_pairs: bool,
    pub transposed: bool,
}

impl Naming {
    /// Returns the part of a fused matrix that a parameter or a module of the decoder is, and the decoder's name of the whole;
    /// `None` if the files do not fuse it.
    pub fn fused(&self, name: &str) -> Option<(FusedPart, String)> {
        FusedPart::of(name).filter(|(part, _)| match part {
            FusedPart::Gate | FusedPart::Up => self.fused_gate_up,
            _ => self.fused_qkv.is_some(),
        })
    }

    /// Returns the location of one of the decoder's parameters.
    pub fn place(&self, parameter: &str) -> TensorLocation {
        let (part, mut name) = match self.fused(parameter) {
            Some((part, whole)) => (Some(part), whole),
            None => (None, parameter.to_owned()),
        };
        let transposed = self.transposed && name.contains("_proj.weight");
        let in_pairs = self.rotates_pairs && [".q_proj.", ".k_proj."].iter().any(|rotated| parameter.contains(rotated));
        for (ours, theirs) in self.replace {
            name = name.replace(ours, theirs);
        }
        TensorLocation { name, part, in_pairs, transposed }
    }

    /// True if files hold some parameters of blocks in another form than the network does.
    pub fn differs(&self) -> bool {
        self.fused_qkv.is_some() || self.fused_gate_up || self.rotates_pairs || self.transposed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_a_fused_and_transposed_family() {
        let naming = Naming {
            replace: &[("model.layers.", "h."), (".self_attn.qkv_proj.", ".attn.c_attn.")],
            fused_qkv: Some(FusedQkv::PerHead),
            transposed: true,
            classifier: "classifier",
            buffers: &[],
            ..PLAIN
        };
        let place = |name: &str, part, transposed| TensorLocation { name: name.to_owned(), part, in_pairs: false, transposed };
        let key = naming.place("model.layers.3.self_attn.k_proj.weight");
        assert_eq!(key, place("h.3.attn.c_attn.weight", Some(FusedPart::Key), true));
        let value = naming.place("model.layers.3.self_attn.v_proj.bias");
        assert_eq!(value, place("h.3.attn.c_attn.bias", Some(FusedPart::Value), false));
        assert_eq!(naming.place("lm_head.weight"), place("lm_head.weight", None, false));
        let fused = Naming { fused_gate_up: true, rotates_pairs: true, ..PLAIN };
        let up = fused.place("model.layers.3.mlp.up_proj.weight");
        assert_eq!(up, place("model.layers.3.mlp.gate_up_proj.weight", Some(FusedPart::Up), false));
        assert!(fused.place("model.layers.3.self_attn.q_proj.bias").in_pairs);
        assert!(!fused.place("model.layers.3.self_attn.v_proj.bias").in_pairs);
    }
}
