//! Names and layout of the shared decoder's parameters in a family's files. The decoder itself uses Llama's names.

/// A family's names of parameters.
#[derive(Debug, PartialEq)]
pub struct Naming {
    /// Parts of the decoder's names and their replacements in files.
    pub replace: &'static [(&'static str, &'static str)],
    /// The order of the rows, if files hold q, k and v as one matrix (`self_attn.qkv_proj`).
    pub fused_qkv: Option<FusedQkv>,
    /// True if files hold the projections of blocks as [in, out] (GPT-2's Conv1D).
    pub transposed: bool,
    /// The name of the head in the family's token classifiers.
    pub classifier: &'static str,
    /// Suffixes of tensors in old files that are not parameters: masks and rotary frequencies.
    pub buffers: &'static [&'static str],
}

/// The order of the rows of a fused matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FusedQkv {
    /// All of q, then k, then v.
    Thirds,
    /// The q, k and v of each head together, head after head.
    PerHead,
}

/// The naming of files that use the decoder's own names.
pub(crate) static HUGGING_FACE: Naming =
    Naming { replace: &[], fused_qkv: None, transposed: false, classifier: "score", buffers: &[".rotary_emb.inv_freq"] };

/// The location of a parameter in files.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorLocation {
    pub name: String,
    /// The part of a fused tensor: 0 for q, 1 for k, 2 for v; `None` if the tensor is not fused.
    pub part: Option<usize>,
    pub transposed: bool,
}

impl Naming {
    /// Returns the location of one of the decoder's parameters.
    pub fn place(&self, parameter: &str) -> TensorLocation {
        let part = self
            .fused_qkv
            .and_then(|_| [".q_proj.", ".k_proj.", ".v_proj."].iter().position(|projection| parameter.contains(projection)));
        let mut name = match part {
            Some(i) => parameter.replace([".q_proj.", ".k_proj.", ".v_proj."][i], ".qkv_proj."),
            None => parameter.to_owned(),
        };
        let transposed = self.transposed && name.contains("_proj.weight");
        for (ours, theirs) in self.replace {
            name = name.replace(ours, theirs);
        }
        TensorLocation { name, part, transposed }
    }

    /// The rows of a fused [3 · heads · d, ..] tensor that belong to one part, in that part's order.
    pub(super) fn rows_of_part(&self, part: usize, heads: usize, head_dim: usize) -> Vec<usize> {
        let all = heads * head_dim;
        match self.fused_qkv {
            Some(FusedQkv::PerHead) => (0..all).map(|i| (i / head_dim * 3 + part) * head_dim + i % head_dim).collect(),
            _ => (part * all..(part + 1) * all).collect(),
        }
    }
}

impl TensorLocation {
    /// The shape of the tensor in files for a parameter of this shape.
    pub fn shape(&self, parameter: &[usize]) -> Vec<usize> {
        let mut shape = parameter.to_vec();
        shape[0] *= if self.part.is_some() { 3 } else { 1 };
        if self.transposed {
            shape.reverse();
        }
        shape
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
        };
        let place = |name: &str, part, transposed| TensorLocation { name: name.to_owned(), part, transposed };
        assert_eq!(naming.place("model.layers.3.self_attn.k_proj.weight"), place("h.3.attn.c_attn.weight", Some(1), true));
        assert_eq!(naming.place("model.layers.3.self_attn.v_proj.bias"), place("h.3.attn.c_attn.bias", Some(2), false));
        assert_eq!(naming.place("lm_head.weight"), place("lm_head.weight", None, false));
        assert_eq!(naming.rows_of_part(1, 2, 2), [2, 3, 8, 9]);
    }
}
