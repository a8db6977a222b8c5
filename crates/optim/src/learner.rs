//! A model in training: its parameters, optimizer and schedule, updated together and saved together.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::adamw::ADAMW;
use super::broken::{BrokenWeights, first_broken};
use super::gradient_sum::GradientSum;
use super::optimizer::Optimizer;
use super::rule::Slot;
use super::schedule::Schedule;
use burnish_distributed::Ranks;
use burnish_model::CausalLm;
use burnish_model::decoder::Decoder;
use burnish_model::lora::peft::PeftAdapter;
use burnish_model::tensor_files::write_safetensors;
use burnish_model::weights::WeightFiles;
use burnish_util::copy::copy_into;
use burnish_util::fs::{read_json, write_json};

pub struct Learner {
    /// Name among the learners of a run: the section of its settings.
    pub name: &'static str,
    /// The trainable model; see [`CausalLm::trainable`].
    pub model: CausalLm,
    /// Ranks that train the model together.
    pub ranks: Ranks,
    pub optimizer: Optimizer,
    pub schedule: Schedule,
    pub lr: f64,
    /// Largest global norm of a gradient; larger gradients are scaled down to it.
    pub grad_clip: f64,
}

/// Result of one optimizer update.
#[derive(Clone, Debug)]
pub struct Update {
    /// Global 2-norm of the gradient before clipping.
    pub grad_norm: f64,
    /// False if the gradient was not finite: the weights and the state are unchanged, as in verl.
    pub applied: bool,
    /// First parameter whose gradient is not finite, if any.
    pub nonfinite: Option<String>,
}

impl Update {
    /// Returns the result of an update that was skipped because an earlier value, such as the loss, was not finite.
    pub fn skipped() -> Self {
        Self { grad_norm: f64::NAN, applied: false, nonfinite: None }
    }

    /// Returns the result of an update with gradients of these names and Σ g². The update is to be applied if all are finite.
    pub(super) fn from_squares<'a>(squares: impl Iterator<Item = (&'a str, f64)>) -> Self {
        let squares: Vec<_> = squares.collect();
        let grad_norm = squares.iter().map(|(_, squares)| squares).sum::<f64>().sqrt();
        let applied = grad_norm.is_finite();
        let nonfinite = || squares.iter().find(|(_, squares)| !squares.is_finite()).map_or("", |(name, _)| name).to_owned();
        Self { grad_norm, applied, nonfinite: (!applied).then(nonfinite) }
    }
}

/// Part of the state other than tensors.
#[derive(Serialize, Deserialize)]
struct LearnerState {
    /// Name of the optimizer; checkpoints without it belong to AdamW.
    #[serde(default = "adamw")]
    optimizer: String,
    optimizer_step: u64,
}

fn adamw() -> String {
    ADAMW.name.into()
}

/// Parts of a learner that go into a checkpoint.
#[derive(Clone, Copy, Debug)]
pub struct SavedParts {
    /// True to save the parameters; with an adapter, only the adapter's.
    pub model: bool,
    /// True to save all parameters with the adapter merged in, in addition to the adapter. Without an adapter, the same as
    /// `model`.
    pub merged: bool,
    pub optimizer: bool,
}

/// Folder of a checkpoint that transformers loads. With an adapter, it holds weights only if `SavedParts::merged` is set.
pub const HUGGINGFACE: &str = "huggingface";
/// Folder of a checkpoint that PEFT loads.
pub const ADAPTER: &str = "lora_adapter";
/// File of a checkpoint with the optimizer's state.
pub const OPTIMIZER: &str = "optim.safetensors";
const STATE: &str = "extra_state.json";

impl Learner {
    /// Returns the learning rate of a training step, counted from 0.
    pub fn lr_at(&self, step: usize) -> f64 {
        self.lr * self.schedule.factor(step)
    }

    /// Makes one update on gradients clipped to the global norm (torch's `clip_grad_norm_`). With several ranks, each updates its
    /// own share of the parameters and receives the others'. Collective.
    ///
    /// # Errors
    /// [`BrokenWeights`] if a weight is unusable afterwards. All ranks return the same error, and all have such weights then.
    pub fn update(&mut self, gradients: impl Into<GradientSum>, lr: f64) -> Result<Update> {
        let update = self.updated(gradients.into(), lr);
        match update.applied.then(|| first_broken(&self.model.net)).flatten() {
            Some(parameter) => Err(BrokenWeights { learner: self.name, parameter, lr }.into()),
            None => Ok(update),
        }
    }

    fn updated(&mut self, gradients: GradientSum, lr: f64) -> Update {
        if !self.ranks.is_alone() || self.optimizer.sees_files(&self.model.config) {
            return self.update_together(gradients, lr);
        }
        let is_cut = gradients.slices > 1;
        let gradients = gradients.sum.total().0;
        // With several slices, one rank sums the norm in the same order as several ranks.
        let update =
            if is_cut { Update::from_squares(gradients.squares_on_cpu()) } else { Update::from_squares(gradients.squares()) };
        if update.applied {
            let scale = self.scale(&update);
            // The network is passed through the optimizer: a remaining clone would force a copy of every parameter.
            let net = std::mem::replace(&mut self.model.net, Decoder::empty(&self.model.device));
            self.model.net = self.optimizer.update(net, gradients, lr, scale);
        }
        update
    }

    /// Returns the factor that clips a gradient.
    pub(super) fn scale(&self, update: &Update) -> f64 {
        (self.grad_clip / (update.grad_norm + 1e-6)).min(1.0)
    }

    /// Writes the parameters, in folders of Hugging Face's layout with the tokenizer's files, and the optimizer. Rank 0 writes,
    /// within [`Ranks::lead`]; the other ranks reply by [`state_part`](Self::state_part).
    pub fn save(&self, folder: &Path, parts: SavedParts, tokenizer_files: &[PathBuf]) -> Result<()> {
        if parts.model || parts.merged {
            // The other ranks wait meanwhile; they reply again when the optimizer is written.
            self.ranks.at_work(|| self.save_model(folder, parts.merged, tokenizer_files))?;
        }
        if parts.optimizer {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
            let shards = self.shards();
            let gather = |parameter: &str, slot: &Slot, own| self.all_numbers(&shards, parameter, slot, own);
            write_safetensors(&folder.join(OPTIMIZER), &self.optimizer.tensors_by(&gather))?;
            let state = LearnerState { optimizer: self.optimizer.name.into(), optimizer_step: self.optimizer.step };
            write_json(&folder.join(STATE), &state)?;
        }
        Ok(())
    }

    /// Writes the parameters or, with an adapter, the adapter and, if `merged`, all parameters with it merged in.
    fn save_model(&self, folder: &Path, merged: bool, tokenizer_files: &[PathBuf]) -> Result<()> {
        let hf = folder.join(HUGGINGFACE);
        match self.model.adapter() {
            Some(adapter) => {
                adapter.write(&folder.join(ADAPTER))?;
                if merged { self.model.save(&hf).map(|_| ())? } else { self.model.save_config(&hf).map(|_| ())? }
            }
            None => _ = self.model.save(&hf)?,
        }
        tokenizer_files.iter().try_for_each(|file| copy_into(file, &hf).map(|_| ()))
    }

    /// Restores a checkpoint of [`save`](Learner::save) on any number of ranks; each rank restores its share of the optimizer's
    /// state.
    ///
    /// # Errors
    /// If files are damaged, or belong to another model or adapter.
    pub fn load(&mut self, folder: &Path, model: bool, optimizer: bool) -> Result<()> {
        if model {
            self.model = self.load_model(folder)?.trainable();
        }
        if optimizer {
            let state: LearnerState = read_json(&folder.join(STATE))?;
            let (theirs, ours) = (&state.optimizer, self.optimizer.name);
            if theirs != ours {
                bail!(
                    "{}: the state belongs to the optimizer {theirs}, but this run uses {ours}: set optim.optimizer={theirs}, or remove \
                     `optimizer` from checkpoint.load_contents to start {ours} without a state",
                    folder.display()
                );
            }
            // The file is memory-mapped: this rank reads only its own elements, one tensor at a time.
            let file = WeightFiles::open_file(&folder.join(OPTIMIZER))?;
            let network = (&self.model.net, &self.model.config);
            self.optimizer.restore(state.optimizer_step, file.tensors()?, network, &self.ranks, &self.model.device)?;
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
            (None, true) => bail!("{} belongs to a run with LoRA: set the model's lora_rank", saved.display()),
            (Some(_), false) => bail!("{} has no LoRA adapter: set the model's lora_rank to 0", folder.display()),
        }
    }
}
