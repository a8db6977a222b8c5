//! A matrix in 4 bits on the device of its model.

use std::borrow::Cow;

use burn::tensor::Device;

use super::matrix::Nf4Matrix;
#[cfg(feature = "gpu")]
use super::on_gpu::GpuNf4;
use crate::device::is_cpu;

/// The values of a matrix that a GPU dequantises at once, 64 MiB in f32. Products with a larger matrix dequantise it part by part.
pub(crate) const LARGEST_PART: usize = 1 << 24;

/// A matrix [rows, columns] of 4-bit codes in the memory of a device.
#[derive(Debug)]
pub struct Nf4Weight(Place);

#[derive(Debug)]
enum Place {
    Host(Nf4Matrix),
    #[cfg(feature = "gpu")]
    Gpu(Box<GpuNf4>),
}

impl Nf4Weight {
    /// Moves a matrix to a device.
    pub(crate) fn new(matrix: Nf4Matrix, device: &Device) -> Self {
        #[cfg(feature = "gpu")]
        if !is_cpu(device) {
            return Self(Place::Gpu(GpuNf4::new(&matrix, device).into()));
        }
        assert!(is_cpu(device), "a build without GPUs has no kernels for them");
        Self(Place::Host(matrix))
    }

    /// [rows, columns]
    pub(crate) fn shape(&self) -> [usize; 2] {
        match &self.0 {
            Place::Host(matrix) => matrix.shape(),
            #[cfg(feature = "gpu")]
            Place::Gpu(matrix) => matrix.shape(),
        }
    }

    /// Returns the matrix, which is read from a GPU.
    pub(crate) fn read(&self) -> Cow<'_, Nf4Matrix> {
        match &self.0 {
            Place::Host(matrix) => Cow::Borrowed(matrix),
            #[cfg(feature = "gpu")]
            Place::Gpu(matrix) => Cow::Owned(matrix.read()),
        }
    }

    /// True if the matrix is in the memory of the host.
    pub(crate) fn is_on_host(&self) -> bool {
        matches!(self.0, Place::Host(_))
    }

    /// The matrix in the memory of the host.
    ///
    /// # Panics
    /// If the matrix is on a GPU.
    pub(crate) fn on_host(&self) -> &Nf4Matrix {
        match &self.0 {
            Place::Host(matrix) => matrix,
            #[cfg(feature = "gpu")]
            Place::Gpu(_) => panic!("a matrix in 4 bits is on a GPU, the rows that it multiplies are not"),
        }
    }

    /// The matrix in the memory of a GPU.
    ///
    /// # Panics
    /// If the matrix is on the host.
    #[cfg(feature = "gpu")]
    pub(crate) fn on_gpu(&self) -> &GpuNf4 {
        match &self.0 {
            Place::Host(_) => panic!("the rows that a matrix in 4 bits multiplies are on a GPU, the matrix is not"),
            Place::Gpu(matrix) => matrix,
        }
    }
}
