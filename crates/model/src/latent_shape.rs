//! The sizes of attention over latent keys and values (DeepSeek-V2 2024, <https://arxiv.org/abs/2405.04434>).

use anyhow::{Context, Result, ensure};

use super::hf_reader::HfReader;

/// The largest product of heads and of a size of each.
const MAX_WIDTH: usize = 1 << 40;

/// The sizes of attention whose keys and values are linear functions of a latent that all heads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatentShape {
    /// The size of the latent of the queries; `None` if queries are a linear function of the token.
    pub query_rank: Option<usize>,
    /// The size of the latent of keys and values.
    pub rank: usize,
    /// The dimensions of a query and a key that do not rotate, the first of each head.
    pub still: usize,
    /// The dimensions of a query and a key that rotate, the last of each head. The heads of a key share them.
    pub rotating: usize,
    /// The dimensions of a value.
    pub value: usize,
    /// True if neighbouring dimensions rotate together, (0, 1), (2, 3), …; false for the two halves.
    pub in_pairs: bool,
}

impl LatentShape {
    /// Reads the sizes, with transformers' defaults, for a number of heads.
    ///
    /// # Errors
    /// If a size is 0 or too large.
    pub(crate) fn read(config: &HfReader, heads: usize, in_pairs: bool) -> Result<Self> {
        let shape = Self {
            query_rank: config.heads_or_null("q_lora_rank", Some(1536))?,
            rank: config.heads_or("kv_lora_rank", 512)?,
            still: config.heads_or("qk_nope_head_dim", 128)?,
            rotating: config.heads_or("qk_rope_head_dim", 64)?,
            value: config.heads_or("v_head_dim", 128)?,
            in_pairs,
        };
        let fits = |a: usize, b: usize| a.checked_mul(b).filter(|size| *size <= MAX_WIDTH);
        let width = fits(heads, 2 * shape.still + shape.rotating + shape.value);
        width.context("the sizes of a head of `qk_nope_head_dim`, `qk_rope_head_dim` and `v_head_dim` are too large")?;
        let largest = shape.query_rank.unwrap_or(0).max(shape.rank);
        ensure!(largest <= MAX_WIDTH, "`q_lora_rank` and `kv_lora_rank` may be at most {MAX_WIDTH}, not {largest}");
        Ok(shape)
    }

    /// The dimensions of a query and of a key.
    pub(crate) fn key(&self) -> usize {
        self.still + self.rotating
    }

    /// The size of a head in the attention operation and in the cache. Shorter queries, keys or values end in zeros there.
    pub(crate) fn head_dim(&self) -> usize {
        self.key().max(self.value)
    }

    /// The linear layers, as (name, inputs, outputs, whether `attention_bias` gives it a bias), for a hidden size.
    pub(crate) fn linears(&self, h: usize, heads: usize) -> Vec<(&'static str, usize, usize, bool)> {
        let queries = heads * self.key();
        let of_queries = match self.query_rank {
            Some(rank) => vec![("q_a_proj", h, rank, true), ("q_b_proj", rank, queries, false)],
            None => vec![("q_proj", h, queries, false)],
        };
        let others = [
            ("kv_a_proj_with_mqa", h, self.rank + self.rotating, true),
            ("kv_b_proj", self.rank, heads * (self.still + self.value), false),
            ("o_proj", heads * self.value, h, true),
        ];
        of_queries.into_iter().chain(others).collect()
    }

    /// The number of parameters of a layer that are not in matrices: norms and biases.
    pub(crate) fn other_parameters(&self, h: usize, heads: usize, bias: bool) -> usize {
        let biases = self.linears(h, heads).into_iter().filter(|(.., has_bias)| bias && *has_bias);
        self.query_rank.unwrap_or(0) + self.rank + biases.map(|(_, _, outputs, _)| outputs).sum::<usize>()
    }

    /// Elements per row that a layer keeps for its backward pass: latents before and after their norms, the expanded queries,
    /// keys and values, and what the attention operation keeps of them and of its output.
    pub(crate) fn activations(&self, heads: usize) -> usize {
        let latents = 2 * (self.query_rank.unwrap_or(0) + self.rank) + self.rotating;
        latents + heads * (self.key() + self.still + self.value + 4 * self.head_dim() + 1)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(json: serde_json::Value, heads: usize) -> Result<LatentShape> {
        LatentShape::read(&HfReader::new(json.as_object().expect("an object")), heads, true)
    }

    /// The sizes of DeepSeek-V3 and of DeepSeek-V2-Lite, whose queries have no latent.
    #[test]
    fn published_sizes() {
        let v3 = read(json!({}), 128).unwrap();
        let products = v3.linears(7168, 128).into_iter().map(|(_, input, output, _)| input * output).sum::<usize>();
        assert_eq!((v3.head_dim(), products + v3.other_parameters(7168, 128, false)), (192, 187_107_328));
        let lite = read(json!({"q_lora_rank": null}), 16).unwrap();
        assert_eq!((lite.query_rank, lite.linears(2048, 16)[0]), (None, ("q_proj", 2048, 3072, false)));
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        let error = |json: serde_json::Value, heads| read(json, heads).unwrap_err().to_string();
        assert_eq!(error(json!({"v_head_dim": 0}), 4), "`v_head_dim` is 0; it must be at least 1");
        let large = error(json!({"v_head_dim": 1_u64 << 40}), 4);
        assert!(large.contains("`v_head_dim` are too large"), "{large}");
    }
}
