//! Fused differentiable operations with hand-written backward passes, for operations that are slow in burn's CPU backend.
//!
//! Each file holds one operation: a kernel trait, the dispatch trait, the autodiff step and the function that models call. The
//! kernel trait's default bodies are composed of ordinary tensor operations, which CUDA runs. burn's `flex` CPU backend has a
//! fused, threaded body. [`mod@linear`], [`norm`], [`activation`], [`mod@rope`], [`mod@attention`], `causal_conv`, `delta_rule` and
//! `scan` take part in autodiff; [`decode`] and [`head`] do not need it. Floats are summed in a fixed order, so results do not depend on the number of threads.

pub mod activation;
mod activation_kind;
pub mod attention;
mod attention_blocks;
mod attention_composed;
mod attention_flex;
mod attention_scores;
mod attention_sinks;
mod autodiff;
pub(crate) mod block_tables;
mod causal_conv;
mod chunks;
#[cfg(feature = "gpu")]
pub(crate) mod cube;
pub mod decode;
mod delta_chunk;
mod delta_inputs;
mod delta_rule;
mod delta_rule_composed;
mod delta_rule_flex;
mod flex;
pub mod fused;
mod grouped;
mod grouped_flex;
mod groups;
pub mod head;
mod levels;
pub mod linear;
mod nf4;
pub mod norm;
pub mod packed;
pub mod prepared;
mod recurrent_decode;
#[cfg(test)]
mod recurrent_tests;
pub mod rope;
mod route;
mod rows;
mod scan;
mod scan_composed;
mod scan_decode;
mod scan_flex;
mod scan_head;
mod scan_inputs;
pub mod scatter;
mod simd;
mod simd_divergence;
mod uninit;

pub use activation::{act, glu};
pub use activation_kind::Act;
pub use attention::attention;
pub(crate) use attention_sinks::attention_with_sinks;
pub use block_tables::{BLOCK, SentTables};
pub(crate) use causal_conv::{causal_conv, conv_tails};
pub(crate) use chunks::CHUNK;
#[cfg(feature = "gpu")]
pub use cube::optim::{adamw as adamw_on_gpu, squares as squares_on_gpu};
#[cfg(feature = "gpu")]
pub use cube::sample as sample_on_gpu;
pub use decode::{CacheRows, CacheView, decode_attention, write_rows};
pub(crate) use decode::{copy_rows, write_keys_and_values};
pub use delta_inputs::{DeltaHeads, DeltaLayout, DeltaTensors};
pub(crate) use delta_rule::{delta_rule, delta_rule_with_states};
pub use flex::{add, cast, f32s, flex_f32, index, tensor_from_vec, to_host, whole_buffer};
pub(crate) use grouped::{combine_groups, gather_groups, grouped, grouped_cached, grouped_frozen, grouped_rows};
pub use groups::Groups;
pub use head::{
    Compared, Divergence, Head, LargestLogits, Softcap, SparseMeasure, TopK, head_backward, head_distributions,
    head_distributions_backward, head_fused_backward, head_log_probs, head_stats, head_top_k,
};
pub use linear::linear;
pub(crate) use linear::{linear_cached, linear_frozen};
pub(crate) use nf4::linear_nf4;
pub use norm::{layer_norm, rms_norm};
pub use packed::{AttentionScoring, Packed, Pattern, Segment};
pub(crate) use recurrent_decode::{SlotRows, conv_step, delta_step};
pub use rope::rope;
pub(crate) use rows::linear_rows;
pub(crate) use rows::products_on_host;
pub(crate) use scan::{scan, scan_with_states};
pub(crate) use scan_decode::scan_step;
pub use scan_inputs::{ScanLayout, ScanShape, ScanTensors};
pub use scatter::add_rows;
pub use simd::cpu_kernels;
pub use simd::{AdamwStep, adamw_row, exp_sub_sum, max_row, sum_squares};
