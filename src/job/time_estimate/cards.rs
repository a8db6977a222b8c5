//! The cards that a step is estimated for, and the shares of their figures that programs reach.

/// The figures of a card, as its data sheet has them.
pub struct Card {
    pub name: &'static str,
    /// Dense FLOP/s of products in bfloat16 that are summed in f32; `None` where the card has no bfloat16.
    pub bfloat16: Option<f64>,
    /// FLOP/s in f32, without tensor cores.
    pub float32: f64,
    /// Bytes/s between the chip and its memory.
    pub bandwidth: f64,
    /// MiB of memory, as the driver counts them.
    pub memory: u64,
}

/// Every card, the first of which has the page of phases. Figures are those of NVIDIA's data sheets: of the SXM cards, without sparsity.
pub static CARDS: &[Card] = &[
    Card { name: "H200", bfloat16: Some(989e12), float32: 67e12, bandwidth: 4.8e12, memory: 143_771 },
    Card { name: "H100", bfloat16: Some(989e12), float32: 67e12, bandwidth: 3.35e12, memory: 81_559 },
    Card { name: "A100 80 GB", bfloat16: Some(312e12), float32: 19.5e12, bandwidth: 2.039e12, memory: 81_920 },
    Card { name: "RTX 4090", bfloat16: Some(165e12), float32: 82.6e12, bandwidth: 1.008e12, memory: 24_564 },
    Card { name: "T4", bfloat16: None, float32: 8.1e12, bandwidth: 0.32e12, memory: 15_360 },
];

/// Seconds from one launch of a kernel to the next, where the kernels themselves take no time. An estimate, on any card.
pub const LAUNCH: f64 = 5e-6;

/// Seconds from one kernel of a replayed graph to the next, where the kernels themselves take no time. An estimate, on any card.
pub const REPLAYED: f64 = 1.5e-6;

/// The share of the bandwidth that a kernel reaches. Plain copies and reads reach 0.87 to 0.91 of it on V100, A100 and H100; kernels that
/// do more reach less.
pub const BANDWIDTH: f64 = 0.8;

/// The share of the memory that a run can have: the rest is the driver's, and lost between blocks.
pub const MEMORY: f64 = 0.9;

/// What a phase does, which decides what share of the peak its products reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Passes without gradient over long rows of tokens.
    Forward,
    /// Forward and backward passes of an update.
    Training,
    /// One token of every sequence.
    Decode,
    /// No products, but for every parameter a few sums.
    Update,
}

/// The share of the peak FLOP/s that each kind of phase reaches.
pub static PEAK: &[(Kind, f64)] = &[
    // Large products alone reach about so much of a data sheet's peak, which is that of the highest clock.
    (Kind::Forward, 0.7),
    // 0.52 in Narayanan et al. 2021 (arXiv 2104.04473, A100), 0.46 in Chowdhery et al. 2022 (arXiv 2204.02311, TPU v4), both of whole steps.
    (Kind::Training, 0.5),
    // Products with few rows fill tiles in part; they wait for memory in most cases.
    (Kind::Decode, 0.5),
    (Kind::Update, 0.5),
];
