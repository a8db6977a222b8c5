//! The matrix of a projection: numbers that are trained or frozen, or frozen values in 4 bits.

use std::sync::Arc;

use burn::module::{Content, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};

use super::nf4::Nf4Weight;

/// A matrix [out, in]. One in 4 bits has no parameters: visitors do not see it, and it has no gradient.
#[derive(Clone, Debug)]
pub enum Matrix {
    Float(Param<Tensor<2>>),
    Nf4(Arc<Nf4Weight>),
}

impl Matrix {
    /// [out, in]
    pub fn dims(&self) -> [usize; 2] {
        match self {
            Self::Float(matrix) => matrix.dims(),
            Self::Nf4(matrix) => matrix.shape(),
        }
    }

    /// The parameter; `None` for a matrix in 4 bits.
    pub fn float(&self) -> Option<&Param<Tensor<2>>> {
        match self {
            Self::Float(matrix) => Some(matrix),
            Self::Nf4(_) => None,
        }
    }

    /// The values in 4 bits; `None` for a matrix of numbers.
    pub fn nf4(&self) -> Option<&Arc<Nf4Weight>> {
        match self {
            Self::Float(_) => None,
            Self::Nf4(matrix) => Some(matrix),
        }
    }

    fn on_device(self, device: &Device, map: impl FnOnce(Param<Tensor<2>>) -> Param<Tensor<2>>) -> Self {
        match self {
            Self::Float(matrix) => Self::Float(map(matrix)),
            Self::Nf4(matrix) => Self::Nf4(Nf4Weight::new(matrix.read().into_owned(), device).into()),
        }
    }

    fn map_float(self, map: impl FnOnce(Param<Tensor<2>>) -> Param<Tensor<2>>) -> Self {
        match self {
            Self::Float(matrix) => Self::Float(map(matrix)),
            Self::Nf4(matrix) => Self::Nf4(matrix),
        }
    }
}

impl Module for Matrix {
    fn collect_devices(&self, devices: Vec<Device>) -> Vec<Device> {
        match self {
            Self::Float(matrix) => matrix.collect_devices(devices),
            Self::Nf4(_) => devices,
        }
    }

    fn fork(self, device: &Device) -> Self {
        self.on_device(device, |matrix| matrix.fork(device))
    }

    fn to_device(self, device: &Device) -> Self {
        self.on_device(device, |matrix| matrix.to_device(device))
    }

    fn train(self) -> Self {
        self.map_float(Module::train)
    }

    fn valid(&self) -> Self {
        self.clone().map_float(|matrix| matrix.valid())
    }

    fn materialize(self) -> Self {
        self.map_float(Module::materialize)
    }

    fn visit<Visitor: ModuleVisitor>(&self, visitor: &mut Visitor) {
        self.float().into_iter().for_each(|matrix| matrix.visit(visitor));
    }

    fn map<Mapper: ModuleMapper>(self, mapper: &mut Mapper) -> Self {
        self.map_float(|matrix| Module::map(matrix, mapper))
    }
}

impl ModuleDisplayDefault for Matrix {
    fn content(&self, content: Content) -> Option<Content> {
        content.add_debug_attribute("matrix", self).optional()
    }
}

impl ModuleDisplay for Matrix {}
