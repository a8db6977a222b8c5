//! The scales of a matrix's blocks, as float32 or in 8 bits (double quantisation).

use std::sync::LazyLock;

use super::dynamic_map::dynamic_map;

/// Scales that share a second scale.
pub(crate) const GROUP: usize = 256;
/// Steps of the grid on [−1, 1] that a scale is rounded to before its code is looked up, as bitsandbytes does on CPUs.
const GRID: f32 = 65535.0;

static MAP: LazyLock<[f32; 256]> = LazyLock::new(|| dynamic_map(true));

/// One scale for each block.
#[derive(Clone, PartialEq)]
pub(super) enum Scales {
    Float(Vec<f32>),
    /// Scale = map\[code\] · (scale of the group) + offset.
    Nested {
        codes: Vec<u8>,
        groups: Vec<f32>,
        offset: f32,
    },
}

impl Scales {
    /// Puts scales into 8 bits. The offset is their mean. bitsandbytes adds it up in float32, in an order that depends on the
    /// processor, so its mean may differ in the last bits.
    pub(super) fn nested(scales: &[f32]) -> Self {
        let sum: f64 = scales.iter().copied().map(f64::from).sum();
        Self::around(scales, (sum / scales.len().max(1) as f64) as f32)
    }

    /// Does what [`nested`](Self::nested) does, with this offset.
    pub(super) fn around(scales: &[f32], offset: f32) -> Self {
        let (mut codes, mut groups) = (Vec::with_capacity(scales.len()), Vec::new());
        for scales in scales.chunks(GROUP) {
            let largest = scales.iter().fold(0f32, |largest, scale| largest.max((scale - offset).abs()));
            groups.push(largest);
            let factor = 1.0 / largest;
            codes.extend(scales.iter().map(|scale| if largest == 0.0 { 0 } else { code((scale - offset) * factor) }));
        }
        Self::Nested { codes, groups, offset }
    }

    /// Returns the scale of a block.
    pub(super) fn get(&self, block: usize) -> f32 {
        match self {
            Self::Float(scales) => scales[block],
            Self::Nested { codes, groups, offset } => MAP[usize::from(codes[block])] * groups[block / GROUP] + offset,
        }
    }

    /// The bytes of `blocks` scales.
    pub(super) fn bytes(blocks: u128, nested: bool) -> u128 {
        if nested { blocks + 4 * blocks.div_ceil(GROUP as u128) + 4 } else { 4 * blocks }
    }

    /// Calls `see` with all bytes.
    pub(super) fn for_bytes(&self, see: &mut dyn FnMut(&[u8])) {
        let mut floats = |values: &[f32]| values.iter().for_each(|value| see(&value.to_le_bytes()));
        match self {
            Self::Float(scales) => floats(scales),
            Self::Nested { codes, groups, offset } => {
                floats(groups);
                floats(&[*offset]);
                see(codes);
            }
        }
    }
}

/// The code of the value nearest to a point of the grid, which is the point nearest to `value`.
fn code(value: f32) -> u8 {
    let step = ((value.clamp(-1.0, 1.0) + 1.0) * 0.5 * GRID + 0.5) as u16;
    let value = -1.0 + (2.0 * f32::from(step)) / GRID;
    MAP.windows(2).take_while(|pair| 0.5 * (pair[0] + pair[1]) < value).count() as u8
}
