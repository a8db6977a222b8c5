//! Rows at places of a matrix: added, as to the gradient of an embedding, or written, as to a cache. On the CPU burn does it, on a GPU
//! a kernel.

use burn::tensor::{IndexingUpdateOp, Int, Tensor};

#[cfg(feature = "gpu")]
use super::cube::{launch, rows::Rows, scatter};
use super::flex::index;

/// Adds rows [k, width] at `places` [k] of `sum` [.., width]; places may repeat. The order of additions is fixed.
pub fn add_rows(sum: Tensor<2>, places: &[usize], rows: Tensor<2>) -> Tensor<2> {
    #[cfg(feature = "gpu")]
    if is_on_gpu(&sum) {
        return launch::of_gpu(scatter::add_rows(on_gpu(sum), places, on_gpu(rows)));
    }
    let places = index(places.iter().copied(), &sum.device());
    sum.select_assign(0, places, rows, IndexingUpdateOp::Add)
}

/// Writes rows [k, width] at distinct `places` [k] of each of the caches [.., width]. Caches have one width and dtype, and so have their
/// rows.
pub fn assign_rows<const N: usize>(caches: [Tensor<2>; N], places: Tensor<1, Int>, rows: [Tensor<2>; N]) -> [Tensor<2>; N] {
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
    Rows::of(t).expect("all on one GPU")
}
