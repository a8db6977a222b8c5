//! The initial adapter of a training run.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::peft::{self, Factors, PeftAdapter};
use super::settings::LoraSettings;
use super::targets::{self, LoraTarget};
use crate::config::DecoderConfig;
use crate::memory::{BYTES, ElementCount};
use burnish_util::machine::check_fits;
use burnish_util::rng::Stream;

impl LoraSettings {
    /// Returns the initial adapter; `None` if the settings request no adapter.
    ///
    /// # Errors
    /// If the model lacks a named projection, or the folder `adapter_path` holds no trainable adapter.
    pub fn start(&self, config: &DecoderConfig, base: &Path, seed: u64) -> Result<Option<PeftAdapter>> {
        if let Some(folder) = &self.adapter_path {
            let key = format!("{}.lora_adapter_path", self.group);
            let adapter = PeftAdapter::read(folder).context(key.clone())?;
            let (rank, group) = (adapter.rank, self.group);
            ensure!(
                [0, rank].contains(&self.rank),
                "{key}: this adapter has rank {rank}, {group}.lora_rank is {}; leave it at 0",
                self.rank
            );
            return Ok(Some(PeftAdapter { base: peft::absolute(base), ..adapter }));
        }
        if self.rank == 0 {
            return Ok(None);
        }
        let targets = targets::select(config, self)?;
        let sides =
            targets.iter().map(|target| target.input as ElementCount + target.output as ElementCount).sum::<ElementCount>();
        check_fits(sides * self.rank as ElementCount * BYTES, || {
            format!("{}.lora_rank={}: adapters of this rank on {} matrices", self.group, self.rank, targets.len())
        })?;
        let factors = targets.into_iter().map(|target| (target.path.clone(), fresh(&target, self.rank, seed))).collect();
        let (rank, alpha, base) = (self.rank, self.alpha, peft::absolute(base));
        Ok(Some(PeftAdapter { rank, alpha, base, transposed: config.naming.transposed, factors, saved: BTreeMap::new() }))
    }
}

/// Draws PEFT's initial values from the module's own random stream.
fn fresh(target: &LoraTarget, rank: usize, seed: u64) -> Factors {
    let name = target.path.as_bytes().chunks(8).map(|part| part.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    let mut stream = Stream::new(seed, "lora", &name.collect::<Vec<_>>());
    let bound = 1.0 / (target.input as f64).sqrt();
    let a = (0..rank * target.input).map(|_| ((2.0 * stream.uniform() - 1.0) * bound) as f32).collect();
    Factors { input: target.input, output: target.output, a, b: vec![0.0; target.output * rank] }
}
