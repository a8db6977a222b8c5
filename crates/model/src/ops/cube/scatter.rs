//! Writes or adds rows at positions of a matrix. burn's `select_assign` would process all rows one after another in every column.

use burn::tensor::DType;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::ir::ElemType;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::launch::{buffer, cube_dim, dense, elem, empty, grid_of_units};
use super::rows::{Rows, upload};

/// The largest number of rows that a unit sums. A token that occurs thousands of times would otherwise keep few units busy for
/// long.
pub(crate) const PIECE: usize = 64;

/// caches[t][places[row]] = rows[t][row], one unit per element of a matrix of rows.
#[cube(launch)]
fn assign<C: Float, R: Float, I: Int>(
    caches: &mut Sequence<Box<[C]>>,
    rows: &Sequence<Box<[R]>>,
    places: &[I],
    cache_strides: &Sequence<usize>,
    row_strides: &Sequence<usize>,
    width: usize,
    count: usize,
    #[comptime] tensors: usize,
    #[define(C, R, I)] _dtypes: [ElemType; 3],
) {
    let row = ABSOLUTE_POS / width;
    let column = ABSOLUTE_POS % width;
    if row >= count {
        terminate!();
    }
    let place = usize::cast_from(places[row]);
    #[unroll]
    for t in 0..tensors {
        let cache = &mut caches[t];
        cache[place * cache_strides[t] + column] = C::cast_from(rows[t][row * row_strides[t] + column]);
    }
}

/// Sums the rows of each list, in order, and adds the sum to the list's target, a row of `sum`, or writes it there. `table` is
/// the table of [`Lists`]. One unit per list and column.
#[cube(launch)]
fn add_lists<S: Float, R: Float>(
    sum: &mut [S],
    rows: &[R],
    table: &[u32],
    lists: usize,
    width: usize,
    sum_stride: usize,
    row_stride: usize,
    #[comptime] adds: bool,
    #[define(S, R)] _dtypes: [ElemType; 2],
) {
    let list = ABSOLUTE_POS / width;
    let column = ABSOLUTE_POS % width;
    if list >= lists {
        terminate!();
    }
    let place = table[lists + 1 + list] as usize * sum_stride + column;
    let mut total = 0f32;
    if adds {
        total = f32::cast_from(sum[place]);
    }
    for i in table[list]..table[list + 1] {
        total += f32::cast_from(rows[table[i as usize] as usize * row_stride + column]);
    }
    sum[place] = S::cast_from(total);
}

/// Writes rows [k, width] at distinct `places` [k] of caches [.., width], and returns the caches, in the same buffers if these
/// are not shared. Several caches, such as keys and values, take one launch.
///
/// # Panics
/// If the caches or the rows differ in width or dtype.
pub(crate) fn assign_rows<const N: usize>(caches: [Rows; N], places: CubeTensor, rows: [Rows; N]) -> [CubeTensor; N] {
    let (caches, places) = (caches.map(Rows::writable), dense(places));
    let (width, count) = (rows[0].width, rows[0].rows);
    let alike = |all: &[Rows; N]| all.iter().all(|t| t.width == width && t.tensor.dtype == all[0].tensor.dtype);
    assert!(alike(&caches) && alike(&rows) && rows.iter().all(|t| t.rows == count) && places.meta.num_elements() == count);
    if count > 0 {
        assign::launch(
            &caches[0].tensor.client,
            grid_of_units(count * width),
            cube_dim(),
            caches.iter().map(Rows::buffer).collect(),
            rows.iter().map(Rows::buffer).collect(),
            buffer(&places),
            caches.iter().map(|t| t.stride).collect(),
            rows.iter().map(|t| t.stride).collect(),
            width,
            count,
            N,
            [elem(&caches[0].tensor), elem(&rows[0].tensor), elem(&places)],
        );
    }
    caches.map(|cache| cache.tensor)
}

/// Adds rows [k, width] at `places` [k] of `sum` [.., width], in place if its buffer is not shared. Rows of one place are added
/// in order: one after another, or for more than 64 rows, in sums of 64.
///
/// # Panics
/// If a place is outside `sum`, or the numbers of rows and places differ.
pub(crate) fn add_rows(sum: Rows, places: &[usize], rows: Rows) -> CubeTensor {
    assert!(rows.rows == places.len() && rows.width == sum.width && places.iter().all(|place| *place < sum.rows));
    let sum = sum.writable();
    let Plan { short, pieces, joined } = Plan::new(places);
    add(&sum, &rows, &short, true);
    if !joined.targets.is_empty() {
        let (count, width) = (pieces.targets.len(), sum.width);
        let partial = Rows { tensor: empty(&sum.tensor, [count, width], DType::F32), rows: count, width, stride: width };
        add(&partial, &rows, &pieces, false);
        add(&sum, &partial, &joined, true);
    }
    sum.tensor
}

/// Sums the rows of lists, and adds the sums to `sum` or writes them there.
fn add(sum: &Rows, rows: &Rows, lists: &Lists, adds: bool) {
    let count = lists.targets.len();
    if count == 0 {
        return;
    }
    add_lists::launch(
        &sum.tensor.client,
        grid_of_units(count * sum.width),
        cube_dim(),
        sum.buffer(),
        rows.buffer(),
        buffer(&upload(&sum.tensor, &lists.table(), DType::U32)),
        count,
        sum.width,
        sum.stride,
        rows.stride,
        adds,
        [elem(&sum.tensor), elem(&rows.tensor)],
    );
}

/// Lists of rows, each with the target row that it is added to.
#[derive(Default, Debug, PartialEq, Eq)]
struct Lists {
    /// The rows of all lists.
    numbers: Vec<u32>,
    /// The end of each list.
    ends: Vec<u32>,
    targets: Vec<u32>,
}

impl Lists {
    fn push(&mut self, target: usize, numbers: &[u32]) {
        self.numbers.extend_from_slice(numbers);
        self.ends.push(self.numbers.len() as u32);
        self.targets.push(target as u32);
    }

    /// Returns the start of each list in the table and the end of the last one; then the targets; then the rows.
    fn table(&self) -> Vec<u32> {
        let first = 2 * self.targets.len() as u32 + 1;
        let starts = std::iter::once(first).chain(self.ends.iter().map(|end| first + end));
        starts.chain(self.targets.iter().copied()).chain(self.numbers.iter().copied()).collect()
    }
}

/// For each destination row, the source rows added to it.
#[derive(Default, Debug, PartialEq, Eq)]
struct Plan {
    /// The places with few rows.
    short: Lists,
    /// The rows of the other places, in pieces with one partial sum each.
    pieces: Lists,
    /// The partial sums of those places.
    joined: Lists,
}

impl Plan {
    fn new(places: &[usize]) -> Self {
        let mut order: Vec<u32> = (0..places.len() as u32).collect();
        order.sort_by_key(|row| places[*row as usize]);
        let mut plan = Self::default();
        for list in order.chunk_by(|a, b| places[*a as usize] == places[*b as usize]) {
            let place = places[list[0] as usize];
            if list.len() <= PIECE {
                plan.short.push(place, list);
                continue;
            }
            let first = plan.pieces.targets.len();
            list.chunks(PIECE).enumerate().for_each(|(piece, list)| plan.pieces.push(first + piece, list));
            let partial: Vec<u32> = (first as u32..plan.pieces.targets.len() as u32).collect();
            plan.joined.push(place, &partial);
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut() {
        let places: Vec<usize> = (0..2 * PIECE + 2).map(|i| if i == 1 { 3 } else { 8 }).collect();
        let plan = Plan::new(&places);
        assert_eq!(plan.short.table(), [3, 4, 3, 1]);
        assert_eq!(plan.joined.table(), [3, 6, 8, 0, 1, 2]);
        assert_eq!(plan.pieces.targets, [0, 1, 2]);
        assert_eq!(plan.pieces.ends, [64, 128, 129]);
        assert!(plan.pieces.numbers.iter().copied().eq([0].into_iter().chain(2..130)));
    }
}
