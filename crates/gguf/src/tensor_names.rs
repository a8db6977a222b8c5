//! llama.cpp's names of tensors.

/// The tensors outside the layers: transformers' name, and llama.cpp's.
const OUTSIDE: &[(&str, &str)] = &[("model.embed_tokens", "token_embd"), ("model.norm", "output_norm"), ("lm_head", "output")];

/// The tensors of a layer, after `model.layers.N.` and `blk.N.`.
const OF_LAYER: &[(&str, &str)] = &[
    ("input_layernorm", "attn_norm"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.o_proj", "attn_output"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
];

/// The norms of a layer whose results are normalised too (Gemma 2); they come before [`OF_LAYER`].
const OF_SANDWICH: &[(&str, &str)] = &[
    ("post_attention_layernorm", "post_attention_norm"),
    ("pre_feedforward_layernorm", "ffn_norm"),
    ("post_feedforward_layernorm", "post_ffw_norm"),
];

/// Returns llama.cpp's name of a tensor of transformers. `sandwich`: the model normalises the results of its layers.
pub(crate) fn in_gguf(name: &str, sandwich: bool) -> Option<String> {
    let (stem, ending) = name.rsplit_once('.').filter(|(_, ending)| ["weight", "bias"].contains(ending))?;
    if let Some((_, own)) = OUTSIDE.iter().find(|(theirs, _)| *theirs == stem) {
        return Some(format!("{own}.{ending}"));
    }
    let (layer, part) = stem.strip_prefix("model.layers.")?.split_once('.')?;
    let tables = if sandwich { [OF_SANDWICH, OF_LAYER] } else { [OF_LAYER, &[]] };
    let (_, own) = tables.into_iter().flatten().find(|(theirs, _)| *theirs == part)?;
    Some(format!("blk.{layer}.{own}.{ending}"))
}
