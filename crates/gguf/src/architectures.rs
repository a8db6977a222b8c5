//! The families that llama.cpp has and that are written here.

use burnish_model::ops::Act;

/// A family in llama.cpp's terms.
pub(crate) struct Architecture {
    /// The `model_type` of config.json.
    pub model_type: &'static str,
    /// The name in llama.cpp.
    pub name: &'static str,
    /// True if llama.cpp rotates neighbouring dimensions of a head: the rows of q and k are then interleaved.
    pub interleaved: bool,
    /// The activation of the MLP, which llama.cpp knows by the architecture.
    pub activation: Act,
    /// Added to the weights of norms: Gemma's files hold w − 1, llama.cpp's hold w.
    pub norm_offset: f32,
}

const fn plain(model_type: &'static str, name: &'static str) -> Architecture {
    Architecture { model_type, name, interleaved: false, activation: Act::Silu, norm_offset: 0.0 }
}

/// All architectures. To add one, add a row, and its tensors to `tensor_names.rs` if they have other names.
static ARCHITECTURES: &[Architecture] = &[
    Architecture { interleaved: true, ..plain("llama", "llama") },
    Architecture { interleaved: true, ..plain("mistral", "llama") },
    plain("qwen2", "qwen2"),
    plain("qwen3", "qwen3"),
    Architecture { norm_offset: 1.0, activation: Act::GeluTanh, ..plain("gemma", "gemma") },
    Architecture { norm_offset: 1.0, activation: Act::GeluTanh, ..plain("gemma2", "gemma2") },
];

/// Returns the architecture of a `model_type`.
pub(crate) fn find(model_type: &str) -> Option<&'static Architecture> {
    ARCHITECTURES.iter().find(|architecture| architecture.model_type == model_type)
}

/// Returns all model types, for messages.
pub(crate) fn names() -> String {
    ARCHITECTURES.iter().map(|architecture| architecture.model_type).collect::<Vec<_>>().join(", ")
}
