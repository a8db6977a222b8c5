//! A model being trained: its parameters, optimizer and schedule, updated together and saved together.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::adamw::ADAMW;
use super::optimizer::Optimizer;
use super::schedule::Schedule;
use crate::model::decoder::Decoder;
use crate::model::lora::peft::PeftAdapter;
use crate::model::tensor_files::write_safetensors;
use crate::model::weights::read_safetensors;
use crate::model::{CausalLm, Gradients};
use crate::util::copy::copy_into;
use crate::util::fs::{read_json, write_json};

pub struct Learner {
    /// The trainable model; see [`CausalLm::trainable`].
    pub model: CausalLm,
    pub optimizer: Optimizer,
    pub schedule: Schedule,
    pub lr: f64,
    /// The largest global norm of a gradient; larger ones are scaled down to it.
    pub grad_clip: f64,
}

/// The result of one optimizer update.
#[derive(Clone, Debug)]
pub struct Update {
    /// Global 2-norm of the gradient before clipping.
    pub grad_norm: f64,
    /// False where the gradient was not finite: nothing was changed, as in verl.
    pub applied: bool,
    /// The first parameter whose gradient is not finite, if there is one.
    pub nonfinite: Option<String>,
}

impl Update {
    /// The result of an update that was not made because something before it, such as the loss, was not finite.
    pub fn skipped() -> Self {
        Self { grad_norm: f64::NAN, applied: false, nonfinite: None }
    }
}

/// The part of the state that is not tensors.
#[derive(Serialize, Deserialize)]
struct State {
    /// The name of the optimizer; checkpoints without one are of AdamW.
    #[serde(default = "adamw")]
    optimizer: String,
    optimizer_step: u64,
}

fn adamw() -> String {
    ADAMW.name.into()
}

/// The parts of a learner that go into a checkpoint.
#[derive(Clone, Copy, Debug)]
pub struct SavedParts {
    /// True to save the parameters; with an adapter, only the adapter's.
    pub model: bool,
    /// True to save, beside an adapter, all parameters with the adapter merged in. Without an adapter, the same as `model`.
    pub merged: bool,
    pub optimizer: bool,
}

/// The folder of a checkpoint that transformers loads; beside an adapter it holds weights only where `SavedParts::merged` is set.
pub const HUGGINGFACE: &str = "huggingface";
/// The folder of a checkpoint that PEFT loads.
pub const ADAPTER: &str = "lora_adapter";
/// The file of a checkpoint with the optimizer's state.
pub const OPTIMIZER: &str = "optim.safetensors";
const STATE: &str = "extra_state.json";

impl Learner {
    /// The learning rate of a training step, counted from 0.
    pub fn lr_at(&self, step: usize) -> f64 {
        self.lr * self.schedule.factor(step)
    }

    /// Makes one update on gradients clipped to the global norm (torch's `clip_grad_norm_`).
    pub fn update(&mut self, gradients: Gradients, lr: f64) -> Update {
        let grad_norm = gradients.norm();
        if !grad_norm.is_finite() {
            let name = gradients.norms().find(|(_, norm)| !norm.is_finite()).map(|(name, _)| name.to_owned());
            return Update { grad_norm, applied: false, nonfinite: Some(name.unwrap_or_default()) };
        }
        let scale = (self.grad_clip / (grad_norm + 1e-6)).min(1.0);
        // The network is moved through the optimizer: a clone left behind would force a copy of every parameter.
        let net = std::mem::replace(&mut self.model.net, Decoder::empty(&self.model.device));
        self.model.net = self.optimizer.update(net, gradients, lr, scale);
        Update { grad_norm, applied: true, nonfinite: None }
    }

    /// Writes the parameters, in folders of Hugging Face's layout with the tokenizer's files, and the optimizer.
    pub fn save(&self, folder: &Path, parts: SavedParts, tokenizer_files: &[PathBuf]) -> Result<()> {
        if parts.model || parts.merged {
            let hf = folder.join(HUGGINGFACE);
            match self.model.adapter() {
                Some(adapter) => {
                    adapter.write(&folder.join(ADAPTER))?;
                    if parts.merged { self.model.save(&hf).map(|_| ())? } else { self.model.save_config(&hf).map(|_| ())? }
                }
                None => _ = self.model.save(&hf)?,
            }
            for file in tokenizer_files {
                copy_into(file, &hf)?;
            }
        }
        if parts.optimizer {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
            write_safetensors(&folder.join(OPTIMIZER), &self.optimizer.tensors())?;
            let state = State { optimizer: self.optimizer.name.into(), optimizer_step: self.optimizer.step };
            write_json(&folder.join(STATE), &state)?;
        }
        Ok(())
    }

    /// Restores what [`save`](Learner::save) wrote.
    ///
    /// # Errors
    /// If files are damaged, or belong to another model or adapter.
    pub fn load(&mut self, folder: &Path, model: bool, optimizer: bool) -> Result<()> {
        if model {
            self.model = self.load_model(folder)?.trainable();
        }
        if optimizer {
            let state: State = read_json(&folder.join(STATE))?;
            let (theirs, ours) = (&state.optimizer, self.optimizer.name);
            if theirs != ours {
                bail!(
                    "{}: the state is of the optimizer {theirs}, and this run's is {ours}; set its optim.optimizer={theirs}, or leave \
                     `optimizer` out of its checkpoint.load_contents to start the state of {ours} afresh",
                    folder.display()
                );
            }
            let tensors = read_safetensors(&folder.join(OPTIMIZER))?;
            self.optimizer.restore(state.optimizer_step, tensors, &self.model.net, &self.model.device)?;
        }
        Ok(())
    }

    fn load_model(&self, folder: &Path) -> Result<CausalLm> {
        let saved = folder.join(ADAPTER);
        match (self.model.adapter(), saved.is_dir()) {
            (None, false) => self.model.reload(&folder.join(HUGGINGFACE)),
            (Some(own), true) => {
                let adapter = PeftAdapter::read(&saved)?;
                own.check_same_kind(&adapter).with_context(|| format!("{} and this run", saved.display()))?;
                self.model.frozen().adapted(&PeftAdapter { base: own.base, ..adapter })
            }
            (None, true) => bail!("{} is of a run with LoRA; set its model's lora_rank", saved.display()),
            (Some(_), false) => bail!("{} holds no LoRA adapter; set the model's lora_rank to 0", folder.display()),
        }
    }
}
