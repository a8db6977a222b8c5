//! Adds rows to a matrix at given positions (gradients of an embedding), or writes them (a cache). The CPU uses burn's operation,
//! a GPU a kernel.

use burn::tensor::{IndexingUpdateOp, Int, Tensor};

#[cfg(feature = "gpu")]
use super::cube::{launch, rows::Rows, scatter};
use super::flex::index;

/// Adds rows [k, width] at `places` `[k]` of `sum` [.., width]; places may repeat. The order of additions is fixed.
pub fn add_rows(sum: Tensor<2>, places: &[usize], rows: Tensor<2>) -> Tensor<2> {
    #[cfg(feature = "gpu")]
    if is_on_gpu(&sum) {
        return launch::of_gpu(scatter::add_rows(on_gpu(sum), places, on_gpu(rows)));
    }
    let places = index(places.iter().copied(), &sum.device());
    sum.select_assign(0, places, rows, IndexingUpdateOp::Add)
}

/// Writes rows [k, width] at distinct `places` `[k]` of each of the caches [.., width]. All caches have the same width and dtype,
/// and so have all rows.
pub(crate) fn assign_rows<const N: usize>(
    caches: [Tensor<2>; N],
    places: Tensor<1, Int>,
    rows: [Tensor<2>; N],
) -> [Tensor<2>; N] {
    #[cfg(feature = "gpu")]
    if caches.iter().all(is_on_gpu) {
        let places = places.try_into_primitive::<burn::backend::Cube>().expect("places on the device of their cache");
        return scatter::assign_rows(caches.map(on_gpu), places, rows.map(on_gpu)).map(launch::of_gpu);
    }
    let mut rows = rows.into_iter();
    caches.map(|cache| {
        let rows = rows.next().expect("rows for each cache");
        cache.select_assign(0, places.clone(), rows, IndexingUpdateOp::Assign)
    })
}

#[cfg(feature = "gpu")]
fn is_on_gpu(t: &Tensor<2>) -> bool {
    t.clone().try_into_primitive::<burn::backend::Cube>().is_ok()
}

#[cfg(feature = "gpu")]
fn on_gpu(t: Tensor<2>) -> Rows {
    Rows::from_tensor(t).expect("all on one GPU")
}

#[cfg(all(test, feature = "wgpu"))]
mod tests {
    use burn::tensor::Device;

    use super::scatter::PIECE;
    use super::*;
    use crate::gpu_backends::any_gpu;
    use crate::ops::{tensor_from_vec, to_host};

    fn matrix(rows: usize, width: usize, seed: usize, device: &Device) -> Tensor<2> {
        let values = (0..rows * width).map(|i| ((i * 7 + seed) as f32 * 0.61).sin()).collect();
        tensor_from_vec(values, [rows, width], device)
    }

    fn bits(t: Tensor<2>) -> Vec<u32> {
        to_host(t).into_iter().map(f32::to_bits).collect()
    }

    /// Places with up to 64 rows get the same bits as on the CPU; places with more are summed in another order.
    #[test]
    fn rows_are_added_as_on_the_cpu() {
        let Some(device) = any_gpu() else { return };
        let places = |count: usize, of: usize| (0..count).map(|i| i * i % 101 % of).collect::<Vec<_>>();
        let padded = (0..5000).map(|i| if i % 3 == 0 { i % 40 } else { 7 }).collect();
        for places in
            [vec![3], vec![0, 1, 2, 9, 8], vec![5; PIECE], vec![5; PIECE + 1], places(257, 10), places(2000, 101), padded]
        {
            let max = (0..101).map(|place| places.iter().filter(|p| **p == place).count()).max().unwrap();
            for width in [1, 5, 64, 257] {
                let add = |device: &Device| {
                    let (sum, rows) = (matrix(101, width, 1, device), matrix(places.len(), width, 2, device));
                    add_rows(sum, &places, rows)
                };
                let (on_cpu, on_gpu) = (add(&Device::flex()), add(&device));
                if max <= PIECE {
                    assert_eq!(bits(on_cpu), bits(on_gpu), "{} rows of {width}", places.len());
                    continue;
                }
                assert_eq!(bits(on_gpu.clone()), bits(add(&device)));
                for (on_cpu, on_gpu) in to_host(on_cpu).into_iter().zip(to_host(on_gpu)) {
                    assert!((on_cpu - on_gpu).abs() < 1e-6 * max as f32, "{} rows of {width}: {on_cpu} {on_gpu}", places.len());
                }
            }
        }
    }

    #[test]
    fn a_clone_of_the_sum_keeps_its_values() {
        let Some(device) = any_gpu() else { return };
        let sum = matrix(9, 5, 1, &device);
        let clone = sum.clone();
        let added = add_rows(sum, &[3, 3], matrix(2, 5, 2, &device));
        assert_eq!(bits(clone), bits(matrix(9, 5, 1, &device)));
        assert_ne!(bits(added), bits(matrix(9, 5, 1, &device)));
    }

    /// Rows are written only to their places in the caches' buffers.
    #[test]
    fn rows_are_written_to_their_places() {
        let Some(device) = any_gpu() else { return };
        for (places, width) in [(vec![4], 1), (vec![0, 99, 17], 5), ((0..90).map(|i| i * 37 % 100).collect(), 257)] {
            let assign = |device: &Device| {
                let caches = [matrix(100, width, 1, device), matrix(100, width, 2, device)];
                let rows = [matrix(places.len(), width, 3, device), matrix(places.len(), width, 4, device)];
                assign_rows(caches, index(places.iter().copied(), device), rows)
            };
            assert_eq!(assign(&Device::flex()).map(bits), assign(&device).map(bits), "{} rows of {width}", places.len());
        }
    }
}
