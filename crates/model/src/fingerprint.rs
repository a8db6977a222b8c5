//! A checksum of a model: equal for models that compute the same values.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{FloatDType, Tensor};
use sha2::{Digest, Sha256};

use super::causal_lm::CausalLm;
use super::device::is_cpu;
use super::ops::to_host;

impl CausalLm {
    /// Returns a SHA-256 of the shape and all parameters, including the parameters of an adapter.
    pub fn fingerprint(&self) -> String {
        struct Visitor(Sha256, Vec<String>);
        impl ModuleVisitor for Visitor {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                self.0.update(self.1.join("."));
                let values: Vec<u8> = to_host(param.val()).into_iter().flat_map(f32::to_le_bytes).collect();
                self.0.update(&values);
            }
            fn enter_module(&mut self, name: &str, _: &str) {
                self.1.push(name.to_owned());
            }
            fn exit_module(&mut self, _: &str, _: &str) {
                self.1.pop();
            }
        }
        let mut visitor = Visitor(Sha256::new(), Vec::new());
        visitor.0.update(format!("{:?}", self.config));
        self.frozen().net.visit(&mut visitor);
        for (name, matrix) in self.net.quantised() {
            visitor.0.update(name);
            matrix.read().for_bytes(&mut |bytes| visitor.0.update(bytes));
        }
        format!("{:x}", visitor.0.finalize())
    }

    /// Describes the kind of device and the dtype of matmuls.
    pub fn computes_in(&self) -> String {
        let device = if is_cpu(&self.device) { "cpu" } else { "gpu" };
        let format = if self.dtype == FloatDType::F32 { "float32" } else { "bfloat16" };
        format!("{device} {format}")
    }
}
