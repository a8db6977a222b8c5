//! The block tables of a decode step on the device. They are sent only when they change: when a sequence allocates a block,
//! begins or ends.

use std::sync::{Mutex, PoisonError};

use burn::tensor::{Device, Int, Tensor};

use super::flex::index;

/// The number of positions in a block of the cache.
pub const BLOCK: usize = 16;

/// The block tables of a step, on the device.
pub struct Tables {
    /// The blocks of each row's sequence [rows · width], in order; 0 after the last.
    pub blocks: Tensor<1, Int>,
    /// The number of positions of each row's sequence, `[rows]`.
    pub lens: Tensor<1, Int>,
}

/// The tables that were sent last.
#[derive(Default)]
pub struct SentTables(Mutex<Option<(Vec<usize>, Tensor<1, Int>)>>);

impl SentTables {
    /// Returns the tables of a step on the device; sends them only if they changed.
    pub fn tables(&self, tables: &[&[usize]], lens: &[usize], device: &Device) -> Tables {
        let width = tables.iter().map(|table| table.len()).max().unwrap_or(0);
        let all: Vec<usize> =
            tables.iter().flat_map(|table| (0..width).map(|block| table.get(block).copied().unwrap_or(0))).collect();
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = cached.as_ref().filter(|(blocks, sent)| *blocks == all && sent.device() == *device);
        let blocks = match same {
            Some((_, sent)) => sent.clone(),
            None => {
                let sent = index(all.iter().copied(), device);
                *cached = Some((all, sent.clone()));
                sent
            }
        };
        Tables { blocks, lens: index(lens.iter().copied(), device) }
    }
}
