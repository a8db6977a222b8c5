//! Keys and values of all tokens so far, in blocks. Sequences allocate blocks as they grow, share the blocks of a common prefix,
//! and release them at their end. Memory follows the tokens of running sequences, not the longest possible length.
//!
//! Recurrent layers have a state in place of keys and values. A sequence owns a slot of the pool of states; a fork copies it.

use std::ops::Deref;

use burn::tensor::{Device, FloatDType, Tensor};
#[cfg(feature = "gpu")]
use burn_cubecl::cubecl::server::Handle;

use super::config::DecoderConfig;
use super::linear_attention::state_pool::StatePool;
use super::ops::{
    AttentionScoring, BLOCK, CacheRows, CacheView, SentTables, SlotRows, cast, copy_rows, decode_attention, write_keys_and_values,
};
#[cfg(feature = "gpu")]
use super::ops::{block_tables::Tables, fused};

/// The blocks of a sequence, in order, and the slot of its recurrent states.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BlockTable {
    blocks: Vec<usize>,
    /// `None` for a model without recurrent layers, and for a sequence without tokens.
    slot: Option<usize>,
}

impl BlockTable {
    /// Creates the table of a sequence without tokens.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Deref for BlockTable {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.blocks
    }
}

/// The row of the cache for a position of a sequence.
pub fn place(table: &[usize], position: usize) -> usize {
    table[position / BLOCK] * BLOCK + position % BLOCK
}

/// The properties of a cache's tensors.
struct Empty {
    /// The width of the keys of each layer that has its own.
    widths: Vec<usize>,
    dtype: FloatDType,
    device: Device,
}

impl Empty {
    fn rows(&self, rows: usize, width: usize) -> Tensor<2> {
        cast(Tensor::zeros([rows, width], &self.device), self.dtype)
    }
}

/// A key/value cache of all sequences that are being generated.
pub struct KvCache {
    /// Keys and values of each layer that has its own, [blocks · BLOCK, kv heads · d]. Empty until the first block, since a GPU has
    /// no empty tensors.
    layers: Vec<(Tensor<2>, Tensor<2>)>,
    /// For each layer of the model, its index in `layers`; unused for layers without their own keys.
    index: Vec<usize>,
    /// The states of recurrent layers, if the model has any.
    states: Option<StatePool>,
    empty: Empty,
    /// The number of sequences that hold each block.
    holders: Vec<u32>,
    free: Vec<usize>,
    /// The block tables that the device holds.
    tables: SentTables,
}

impl KvCache {
    /// Creates an empty cache, which grows automatically.
    pub fn new(config: &DecoderConfig, dtype: FloatDType, device: &Device) -> Self {
        let keeps_keys = |layer: &usize| config.keeps_keys(*layer);
        let index = (0..config.num_hidden_layers).map(|layer| (0..layer).filter(keeps_keys).count()).collect();
        let widths = (0..config.num_hidden_layers).filter(keeps_keys).map(|layer| config.attention(layer).keys()).collect();
        let empty = Empty { widths, dtype, device: device.clone() };
        Self {
            layers: Vec::new(),
            index,
            states: StatePool::new(config, device),
            empty,
            holders: Vec::new(),
            free: Vec::new(),
            tables: SentTables::default(),
        }
    }

    /// Writes a step's new keys and values [rows, kv heads · d] and attends with q [rows, heads, d] -> [rows, heads, d]. `sinks`
    /// `[heads]` has the logits of attention's sinks.
    pub(crate) fn attend(
        &mut self,
        layer: usize,
        q: Tensor<3>,
        new: [Tensor<2>; 2],
        at: &CacheView,
        scoring: AttentionScoring,
        sinks: Option<&Tensor<1>>,
    ) -> Tensor<3> {
        let (keys, values) = &mut self.layers[self.index[layer]];
        decode_attention(q, new, [keys, values], at, &self.tables, scoring, sinks)
    }

    /// Does what [`attend`](Self::attend) does, on a GPU whose kernels look up the blocks in `tables`.
    #[cfg(feature = "gpu")]
    pub(crate) fn attend_by(
        &mut self,
        layer: usize,
        q: Tensor<3>,
        new: [Tensor<2>; 2],
        tables: &Tables,
        scoring: AttentionScoring,
    ) -> Tensor<3> {
        let (keys, values) = &mut self.layers[self.index[layer]];
        fused::paged_attention(q, Some(new), [keys, values], tables, scoring)
    }

    /// The GPU memory of the cache.
    #[cfg(feature = "gpu")]
    pub fn memory(&self) -> impl Iterator<Item = Handle> {
        self.layers.iter().flat_map(|(keys, values)| [keys, values]).map(fused::memory)
    }

    /// The number of blocks that are available without growing.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// The number of allocated blocks.
    pub fn blocks(&self) -> usize {
        self.holders.len()
    }

    /// The number of blocks in use by at least one sequence.
    pub fn used(&self) -> usize {
        self.blocks() - self.free.len()
    }

    /// The number of sequences that have recurrent states.
    pub fn used_states(&self) -> usize {
        self.states.as_ref().map_or(0, StatePool::used)
    }

    /// Allocates the blocks that a sequence needs for `len` positions.
    pub fn extend(&mut self, table: &mut BlockTable, len: usize) {
        while table.len() * BLOCK < len {
            let block = self.take();
            table.blocks.push(block);
        }
        if let (Some(states), None) = (&mut self.states, table.slot) {
            table.slot = Some(states.take());
        }
    }

    /// The number of tokens of a sequence's first `len` that can be kept: all of them, or none if recurrent layers have moved
    /// past them.
    pub fn reusable(&self, table: &BlockTable, len: usize) -> usize {
        match (&self.states, table.slot) {
            (Some(states), Some(slot)) if states.seen(slot) != len => 0,
            _ => len,
        }
    }

    /// The states of recurrent layers.
    ///
    /// # Panics
    /// If the model has none.
    pub(crate) fn states(&mut self) -> &mut StatePool {
        self.states.as_mut().expect("a model with recurrent layers")
    }

    /// The slots of sequences; empty for a model without recurrent layers.
    pub(crate) fn slots(&self, tables: &[&BlockTable]) -> Vec<usize> {
        tables.iter().filter_map(|table| table.slot).collect()
    }

    /// Records that recurrent layers have moved past the tokens of a pass.
    pub(crate) fn moved(&mut self, by: &SlotRows) {
        if let Some(states) = &mut self.states {
            states.moved(by.each());
        }
    }

    /// Makes room for this many more blocks at once.
    pub fn reserve(&mut self, blocks: usize) {
        if blocks > self.free.len() {
            self.grow(blocks - self.free.len());
        }
    }

    /// Returns the tables of `count` new sequences that begin with the first `len` positions of another sequence. Full blocks are
    /// shared; the remaining positions and recurrent states are copied.
    ///
    /// # Panics
    /// If `len` is not 0 and the sequence's recurrent states are not those after `len` tokens (see
    /// [`reusable`](Self::reusable)).
    pub fn fork(&mut self, table: &BlockTable, len: usize, count: usize) -> Vec<BlockTable> {
        self.fork_all([(table, len, count)]).remove(0)
    }

    /// Does what [`fork`](Self::fork) does for several sequences, with one copy for all of them.
    pub fn fork_all<'a>(&mut self, sequences: impl IntoIterator<Item = (&'a BlockTable, usize, usize)>) -> Vec<Vec<BlockTable>> {
        let (mut from, mut to, mut slots) = (Vec::new(), Vec::new(), Vec::new());
        let forks = sequences.into_iter().map(|(table, len, count)| {
            let (full, left) = (len / BLOCK, len % BLOCK);
            for &block in &table[..full] {
                self.holders[block] += count as u32;
            }
            let slot = table.slot.filter(|_| len > 0);
            if let (Some(states), Some(slot)) = (&self.states, slot) {
                assert_eq!(states.seen(slot), len, "recurrent states are known after all tokens of a sequence only");
                slots.extend(vec![slot; count]);
            }
            let mut forks: Vec<_> = (0..count).map(|_| BlockTable { blocks: table[..full].to_vec(), slot }).collect();
            if left > 0 {
                for fork in &mut forks {
                    fork.blocks.push(self.take());
                    from.extend(table[full] * BLOCK..table[full] * BLOCK + left);
                    to.extend(fork[full] * BLOCK..fork[full] * BLOCK + left);
                }
            }
            forks
        });
        let mut forks: Vec<Vec<BlockTable>> = forks.collect();
        if !from.is_empty() {
            let (from, to) = (CacheRows::from(from), CacheRows::from(to));
            for (k, v) in &mut self.layers {
                copy_rows(k, &from, &to);
                copy_rows(v, &from, &to);
            }
        }
        if let Some(states) = self.states.as_mut().filter(|_| !slots.is_empty()) {
            let mut copies = states.copies(&slots).into_iter();
            let slots = forks.iter_mut().flatten().filter_map(|fork| fork.slot.as_mut());
            slots.for_each(|slot| *slot = copies.next().expect("a copy for each fork"));
        }
        forks
    }

    /// Releases the blocks of a sequence that ended.
    pub fn release(&mut self, table: BlockTable) {
        if let (Some(states), Some(slot)) = (&mut self.states, table.slot) {
            states.release(slot);
        }
        for block in table.blocks {
            self.holders[block] -= 1;
            if self.holders[block] == 0 {
                self.free.push(block);
            }
        }
    }

    /// Writes rows of keys and values [rows, kv heads · d] at `places` (see [`place`]).
    pub fn write(&mut self, layer: usize, places: &CacheRows, k: Tensor<2>, v: Tensor<2>) {
        let (keys, values) = &mut self.layers[self.index[layer]];
        write_keys_and_values([keys, values], places, [k, v]);
    }

    fn take(&mut self) -> usize {
        if self.free.is_empty() {
            self.grow(1);
        }
        let block = self.free.pop().expect("the cache has just grown");
        self.holders[block] = 1;
        block
    }

    /// Adds at least `min` blocks and at least a quarter of the present number, so that growing is rare and wastes little.
    /// Tensors grow one after another, so that only one of them exists twice at a time.
    fn grow(&mut self, min: usize) {
        let more = min.max(self.blocks() / 4).max(64);
        let rows = |width: usize| self.empty.rows(more * BLOCK, width);
        if self.layers.is_empty() {
            self.layers = self.empty.widths.iter().map(|width| (rows(*width), rows(*width))).collect();
        } else {
            for tensor in self.layers.iter_mut().flat_map(|(k, v)| [k, v]) {
                tensor.inplace(|old| {
                    let rows = rows(old.dims()[1]);
                    Tensor::cat(vec![old, rows], 0)
                });
            }
        }
        let first = self.blocks();
        self.holders.resize(first + more, 0);
        self.free.extend((first..first + more).rev());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::to_host;
    use crate::{CausalLm, Init};

    #[test]
    fn blocks_are_shared_copied_and_given_back() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/arithmetic/model");
        let device = crate::device::open(None).unwrap();
        let config = CausalLm::load(&folder, Init::Random { seed: 0 }, &device).unwrap().config;
        let mut cache = KvCache::new(&config, FloatDType::F32, &device);
        let len = 2 * BLOCK + 3;
        let mut table = BlockTable::new();
        cache.extend(&mut table, len);
        let width = config.num_key_value_heads * config.head_dim;
        let rows = |value: f32, n: usize| Tensor::<2>::full([n, width], value, &device);
        let places: Vec<usize> = (0..len).map(|p| place(&table, p)).collect();
        cache.write(0, &places.into(), rows(1.0, len), rows(2.0, len));

        let fork = cache.fork(&table, len, 1).remove(0);
        assert_eq!((fork[..2] == table[..2], fork[2] == table[2]), (true, false));
        // After the shared prefix, writes of one sequence do not affect the other; growth keeps the values.
        cache.write(0, &vec![place(&fork, len - 1)].into(), rows(3.0, 1), rows(4.0, 1));
        cache.reserve(100);
        let at = |table: &BlockTable, p: usize| {
            let (k, v) = &cache.layers[0];
            let row = |x: &Tensor<2>| to_host(x.clone().narrow(0, place(table, p), 1));
            (row(k), row(v))
        };
        let all = |k: f32, v: f32| (vec![k; width], vec![v; width]);
        assert!((0..len).all(|p| at(&table, p) == all(1.0, 2.0)));
        assert!((0..len - 1).all(|p| at(&fork, p) == all(1.0, 2.0)));
        assert_eq!(at(&fork, len - 1), all(3.0, 4.0));

        assert_eq!(cache.used(), 4);
        cache.release(table);
        assert_eq!(cache.used(), 3);
        cache.release(fork);
        assert_eq!(cache.used(), 0);
    }
}
