//! `--dry-run`: everything that a run reads and checks, without weights and steps; then what it would do, and the memory it
//! would take.

use std::fmt::{self, Display};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::clock::resident_gib;
use super::inputs::Inputs;
use super::parts::loaded_of;
use super::{algorithms, lora, unused_options};
use super::{check_step, find_checkpoint, open_device};
use crate::algorithm::kl;
use crate::checkpoint;
use crate::checkpoint::{Checkpoints, check_changes, step_of};
use crate::config::schema::{Device, Init, Location, ResumeMode};
use crate::config::{Loaded, MicroBatch, PpoConfig, Tree, UpdatePlan};
use crate::model::DecoderConfig;
use crate::model::hf_config::HfConfig;
use crate::model::lora::peft::PeftAdapter;
use crate::model::memory::{BYTES, Widest};
use crate::model::weights::{WeightFiles, there};
use crate::util::interrupt::Interrupt;

/// What a run of reinforcement learning would do.
///
/// # Errors
/// What a run would refuse before its first step: configuration, data, tokenizer, model, device, checkpoint. Of the weights only
/// the number is compared, not each name, shape and type; whether the run may write its files is not tried.
pub fn dry_run(loaded: Loaded<PpoConfig>) -> Result<String> {
    let config = loaded.config;
    open_device(config.trainer.device)?;
    let inputs = Inputs::read(&config, &Interrupt::default())?;
    unused_options::warn(&loaded.tree, &config, &inputs)?;
    let (trainer, parts) = (&config.trainer, &config.actor_rollout_ref);
    let decoder = inputs.decoder(&config)?;
    check_weights(&parts.model.path, parts.model.init, &decoder).context("actor_rollout_ref.model.path")?;
    let (dir, from) = (trainer.default_local_dir.as_path(), trainer.resume_from_path.as_ref());
    let settings = (&loaded.tree, loaded_of(&config));
    let resumed = resumed_step(dir, trainer.resume_mode, from, inputs.total_steps, settings)?;

    let per_epoch = inputs.steps_per_epoch.max(1);
    let response = config.data.max_response_length;
    let adapter = lora::adapter(&parts.model.lora(), &decoder, parts.model.path.as_path(), trainer.seed)?;
    let Estimate { memory, critic: critic_line } = estimate(&config, &inputs)?;
    let reward_model = inputs.reward_model.as_ref();
    let judge =
        reward_model.map(|model| ("rewards", describe(&model.path, &model.decoder, config.reward_model.model.init, None)));
    let lines: Vec<_> = [
        ("model", describe(&parts.model.path, &decoder, parts.model.init, adapter.as_ref())),
        ("device", trainer.device.to_string()),
        (
            "tokenizer",
            format!("{}: {} tokens", config.data.tokenizer.as_ref().unwrap_or(&parts.model.path), inputs.tokenizer.vocab_size()),
        ),
        ("training", format!("{} prompts from {}", inputs.train.len(), names(&config.data.train_files))),
        ("validation", format!("{} prompts from {}", inputs.val.len(), names(&config.data.val_files))),
        ("longest", format!("{} tokens of prompt, {response} of response", inputs.longest_prompt())),
        ("plan", inputs.plan.to_string().replace('\n', "\n            ")),
        ("steps", steps(inputs.total_steps, per_epoch, resumed)),
    ]
    .into_iter()
    .chain(critic_line)
    .chain(judge)
    .collect();
    Ok(report(&lines, &memory))
}

/// What a run holds at once, and its critic in a few words.
pub(super) struct Estimate {
    pub memory: Memory,
    critic: Option<(&'static str, String)>,
}

/// The memory a run of this configuration takes, from the shapes of its models and the lengths of its prompts.
///
/// # Errors
/// A configuration of a model that does not fit.
pub(super) fn estimate(config: &PpoConfig, inputs: &Inputs) -> Result<Estimate> {
    let (trainer, parts) = (&config.trainer, &config.actor_rollout_ref);
    let decoder = inputs.decoder(config)?;
    let (response, plan) = (config.data.max_response_length, inputs.plan);
    let prompt = longest_trained(inputs, config.algorithm.filter_groups.enable);
    let longest = prompt + response;
    // A prompt goes through the trunk once for its responses in a micro-batch, which shuffling may part.
    let together = if parts.actor.shuffle { 1 } else { plan.samples_per_prompt };
    let widest = |sequences: usize| {
        let sequences = sequences.max(1);
        // A cut that does not end with a prompt's last response meets one prompt more.
        let prompts = (sequences.div_ceil(together) + usize::from(!sequences.is_multiple_of(together))).min(sequences);
        Widest { rows: prompts * prompt + sequences * response, predicted: sequences * response, longest }
    };
    let micro_batch = |update: &UpdatePlan| match update.micro_batch {
        MicroBatch::Trajectories(count) => count.min(update.mini_batch_trajectories),
        MicroBatch::Tokens(budget) => (budget / longest).clamp(1, update.mini_batch_trajectories),
    };
    let micro = micro_batch(&plan.actor);
    let adapter = lora::adapter(&parts.model.lora(), &decoder, parts.model.path.as_path(), trainer.seed)?;
    let mut memory = Memory::new(decoder.clone(), adapter.as_ref(), trainer.device);
    memory.trained();
    let validated = config.data.val_batch_size.unwrap_or(inputs.val.len()).min(inputs.val.len());
    let validated = if trainer.validates() { validated * parts.rollout.val_kwargs.n } else { 0 };
    let sampled = inputs.sampler.batch_size() * plan.samples_per_prompt;
    let slots = parts.rollout.max_num_seqs.min(sampled.max(validated));
    let samples = if sampled >= validated { plan.samples_per_prompt } else { parts.rollout.val_kwargs.n };
    let prompts = slots.min(sampled.max(validated) / samples);
    let bfloat16 = parts.model.dtype.is_bfloat16(trainer.device);
    memory.generation(slots, prompts, (inputs.longest_prompt(), response), parts.rollout.max_num_batched_tokens, bfloat16);
    let sequences = |by_tokens: bool, tokens: usize, count: Option<usize>| match by_tokens {
        true => (tokens / longest).min(plan.trajectories_per_step),
        false => count.unwrap_or(plan.trajectories_per_step).min(plan.trajectories_per_step),
    };
    let (rollout, reference) = (&parts.rollout, &parts.reference);
    let corrections = algorithms::corrections(config)?;
    if algorithms::needs_old_log_probs(config, &plan, &corrections) {
        let (tokens, count) = (rollout.log_prob_max_token_len_per_gpu, rollout.log_prob_micro_batch_size_per_gpu);
        memory.pass("old log-probabilities", widest(sequences(rollout.log_prob_use_dynamic_bsz, tokens, count)));
    }
    if parts.actor.use_kl_loss || config.algorithm.use_kl_in_reward {
        if adapter.is_none() {
            memory.reference();
        }
        let (tokens, count) = (reference.log_prob_max_token_len_per_gpu, reference.log_prob_micro_batch_size_per_gpu);
        memory.pass("reference", widest(sequences(reference.log_prob_use_dynamic_bsz, tokens, count)));
    }
    if let Some(model) = &inputs.reward_model {
        check_weights(&model.path, config.reward_model.model.init, &model.decoder).context("reward_model.model.path")?;
        memory.reward_model(&model.decoder, model.widest(config, sampled.max(validated)));
    }
    memory.update(widest(micro), micro < plan.actor.mini_batch_trajectories, parts.model.enable_gradient_checkpointing);
    if parts.actor.use_kl_loss && kl::find(&parts.actor.kl_loss_type).is_some_and(|penalty| penalty.is_full()) {
        memory.full_kl(widest(micro));
    }

    let mut critic_line = None;
    if let Some(update) = plan.critic {
        let (settings, hf) = (&config.critic, HfConfig::read(config.critic.model.path.as_path())?);
        let decoder = hf.scalar_decoder(true).context("critic.model.path")?;
        inputs.check_model(&decoder, config).context("critic.model.path")?;
        // Of a language model, the head is not read.
        let in_files = if hf.classifier().is_some() { decoder.clone() } else { hf.decoder()? };
        check_weights(&settings.model.path, settings.model.init, &in_files).context("critic.model.path")?;
        let adapter = lora::adapter(&settings.model.lora(), &decoder, settings.model.path.as_path(), trainer.seed)?;
        critic_line = Some(("critic", describe(&settings.model.path, &decoder, settings.model.init, adapter.as_ref())));
        let mut critic = Memory::new(decoder, adapter.as_ref(), trainer.device);
        critic.trained();
        let (tokens, count) = (settings.forward_max_token_len_per_gpu, settings.forward_micro_batch_size_per_gpu);
        critic.pass("values", widest(sequences(settings.use_dynamic_bsz, tokens, count)));
        let micro = micro_batch(&update);
        let several = micro < update.mini_batch_trajectories;
        critic.update(widest(micro), several, settings.model.enable_gradient_checkpointing);
        memory.critic(critic);
    }

    Ok(Estimate { memory, critic: critic_line })
}

/// Tokens of the longest prompt that the run will train on: an epoch cut short does not see them all, as long as each step takes one
/// batch of them.
fn longest_trained(inputs: &Inputs, is_filtered: bool) -> usize {
    let length = |i: usize| inputs.train[i].ids.len();
    if is_filtered || inputs.total_steps >= inputs.sampler.batches_per_epoch() {
        return (0..inputs.train.len()).map(length).max().unwrap_or(0);
    }
    let mut sampler = inputs.sampler.clone();
    (0..inputs.total_steps).flat_map(|_| sampler.next_batch()).map(length).max().unwrap_or(0)
}

/// The whole report: lines with their names, and the memory.
pub fn report(lines: &[(&str, String)], memory: &Memory) -> String {
    let lines: String = lines.iter().map(|(name, text)| format!("{name:10}  {text}\n")).collect();
    format!("{lines}{memory}nothing was trained or written (--dry-run)\n")
}

/// The model in a few words.
pub fn describe(path: &Location, decoder: &DecoderConfig, init: Init, adapter: Option<&PeftAdapter>) -> String {
    let d = decoder;
    let weights = match adapter {
        Some(adapter) => {
            let (trained, count) = (adapter.num_parameters(), adapter.factors.len());
            format!("trained: {trained} in LoRA adapters of rank {} on {count} matrices", adapter.rank)
        }
        None if init == Init::Random => match there(path.as_path()) {
            Some(file) => format!("random weights: {file} is there and not read"),
            None => "random weights".to_owned(),
        },
        None => "its own weights".to_owned(),
    };
    format!(
        "{path}: {} parameters, {} layers, hidden size {}, vocabulary {}; {weights}",
        d.num_parameters(),
        d.num_hidden_layers,
        d.hidden_size,
        d.vocab_size
    )
}

/// The number of steps and where they start.
pub fn steps(total: u64, per_epoch: u64, resumed: Option<u64>) -> String {
    let epochs = total as f64 / per_epoch as f64;
    let from = resumed.map_or(String::new(), |step| format!("; {} left after the checkpoint of step {step}", total - step));
    format!("{total}, {per_epoch} per epoch, {:.3} epochs{from}", epochs).replace(".000 epochs", " epochs")
}

/// File names for people.
pub fn names(files: &[Location]) -> String {
    files.iter().map(|file| file.to_string()).collect::<Vec<_>>().join(", ")
}

/// Whether weights are there where they are wanted, as many as the model has; only their headers are read.
pub fn check_weights(model: &Location, init: Init, decoder: &DecoderConfig) -> Result<()> {
    if init != Init::Pretrained {
        return Ok(());
    }
    let files = WeightFiles::open(model.as_path())?;
    let tensors = files.parameters(decoder)?;
    let found: usize = tensors.values().map(|tensor| tensor.shape().iter().product::<usize>()).sum();
    let wanted = decoder.num_parameters();
    if found != wanted {
        bail!("{model} holds {found} weights, its config.json describes a model of {wanted}");
    }
    Ok(())
}

/// The step of the checkpoint that a run would go on from. Unlike a run, this creates and clears nothing.
/// The settings of the run must fit what it would load of it (`checkpoint.load_contents`).
pub fn resumed_step(
    dir: &Path,
    mode: ResumeMode,
    from: Option<&Location>,
    total_steps: u64,
    (tree, parts): (&Tree, Vec<checkpoint::Part>),
) -> Result<Option<u64>> {
    if let Some(there) = dir.ancestors().find(|path| path.exists()).filter(|path| !path.is_dir()) {
        bail!("trainer.default_local_dir: cannot create {}: {} is not a folder", dir.display(), there.display());
    }
    if mode != ResumeMode::ResumePath && !dir.is_dir() {
        return Ok(None);
    }
    let Some(folder) = find_checkpoint(&mut Checkpoints::look(dir), mode, from)? else { return Ok(None) };
    let resume = || -> Result<Option<u64>> {
        let step = step_of(&folder)?;
        check_step(step, total_steps)?;
        check_changes(&folder, tree, &parts)?;
        Ok(Some(step))
    };
    resume().with_context(|| format!("cannot resume from {}", folder.display()))
}

/// An estimate of the memory of a run: what it holds throughout, and what each phase holds beside that.
pub struct Memory {
    decoder: DecoderConfig,
    /// Numbers that are trained.
    trained: usize,
    /// What adapters keep of each row for the backward pass.
    inner: usize,
    on_cpu: bool,
    held: Vec<Part>,
    phases: Vec<(&'static str, Vec<Part>)>,
}

struct Part {
    name: &'static str,
    bytes: usize,
    note: String,
}

impl Memory {
    /// Weights, and what this process holds already.
    pub fn new(decoder: DecoderConfig, adapter: Option<&PeftAdapter>, device: Device) -> Self {
        let on_cpu = device == Device::Cpu;
        let trained = adapter.map_or(decoder.num_parameters(), PeftAdapter::num_parameters);
        let inner = adapter.map_or(0, |adapter| adapter.rank * adapter.factors.len());
        let mut memory = Self { decoder, trained, inner, on_cpu, held: vec![], phases: vec![] };
        if let Some(gib) = resident_gib("VmRSS").filter(|_| on_cpu) {
            memory.held.push(Part {
                name: "process so far",
                bytes: (gib * GIB) as usize,
                note: "program, tokenizer and data".into(),
            });
        }
        memory.hold("weights", memory.decoder.num_parameters(), "");
        if adapter.is_some() {
            memory.hold("adapters", trained, "which alone are trained");
        }
        memory
    }

    fn hold(&mut self, name: &'static str, numbers: usize, note: &str) {
        self.held.push(Part { name, bytes: numbers * BYTES, note: note.to_owned() });
    }

    /// The state of AdamW.
    pub fn trained(&mut self) {
        self.hold("optimizer state", 2 * self.trained, "two moments of each trained number");
    }

    /// A frozen copy of the initial weights.
    pub fn reference(&mut self) {
        self.hold("reference model", self.decoder.num_parameters(), "shared with the weights until the first update");
    }

    /// Beside the policy, a critic with its own weights, optimizer and phases.
    pub fn critic(&mut self, critic: Self) {
        for Part { name, bytes, note } in critic.held {
            let name = match name {
                "weights" => "critic",
                "adapters" => "critic's adapters",
                "optimizer state" => "its optimizer",
                _ => continue,
            };
            self.held.push(Part { name, bytes, note });
        }
        let names = critic.phases.into_iter().map(|(name, parts)| (if name == "update" { "critic update" } else { name }, parts));
        self.phases.extend(names);
    }

    /// A reward model and its forward pass.
    pub fn reward_model(&mut self, decoder: &DecoderConfig, widest: Widest) {
        self.hold("reward model", decoder.num_parameters(), "");
        let note = format!("{} tokens", widest.rows);
        self.phases.push(("reward", vec![part("forward pass", decoder.forward(widest, self.on_cpu), note)]));
    }

    /// Generation of so many sequences side by side, of so many prompts, of up to so many tokens of prompt and response.
    pub fn generation(
        &mut self,
        slots: usize,
        prompts: usize,
        (prompt, response): (usize, usize),
        budget: usize,
        bfloat16: bool,
    ) {
        let note = format!("{slots} sequences × {response} tokens, {prompts} prompts × {prompt} tokens");
        let cache = part("KV cache", self.decoder.kv_cache(slots, prompts, prompt, response), note);
        let prefill = budget.max(prompt).min(prompts * prompt);
        let rest = part("logits, prefill", self.decoder.decoding(slots, (prefill, prompt), self.on_cpu, bfloat16), String::new());
        self.phases.push(("generation", vec![cache, rest]));
    }

    /// A forward pass without gradients.
    pub fn pass(&mut self, name: &'static str, widest: Widest) {
        let note = format!("{} tokens", widest.rows);
        self.phases.push((name, vec![part("forward pass", self.decoder.forward(widest, self.on_cpu), note)]));
    }

    /// Forward, backward and update; with `several` micro-batches, gradients are added to those of the ones before.
    pub fn update(&mut self, widest: Widest, several: bool, checkpointing: bool) {
        let (d, note) = (&self.decoder, format!("{} tokens", widest.rows));
        let chunk = d.vocabulary_chunk(widest, self.on_cpu);
        let backward = d.backward(widest, self.on_cpu).saturating_sub(chunk);
        let gradients = self.trained * if several { 2 } else { 1 };
        let blocks = if checkpointing { d.num_hidden_layers } else { 1 };
        let activations = d.activations(widest, checkpointing) + widest.rows * self.inner / blocks;
        let which = if several { "of a micro-batch, and their sum" } else { "" };
        self.phases.push((
            "update",
            vec![
                part("gradients", gradients, which.into()),
                part("activations", activations, note),
                part("vocabulary chunk", chunk, String::new()),
                part("backward pass", backward, String::new()),
            ],
        ));
    }

    /// The reference's side of the exact divergence, in the phase before.
    pub fn full_kl(&mut self, widest: Widest) {
        let chunk = part("reference chunk", self.decoder.reference_chunk(widest, self.on_cpu), String::new());
        if let Some((_, parts)) = self.phases.last_mut() {
            parts.push(chunk);
        }
    }

    /// The most that is held at once, and the phase that holds it.
    pub fn peak(&self) -> (usize, &'static str) {
        let total = |parts: &[Part]| parts.iter().map(|part| part.bytes).sum::<usize>();
        let phases = self.phases.iter().map(|(name, parts)| (total(parts), *name));
        let (bytes, name) = phases.max_by_key(|(bytes, _)| *bytes).unwrap_or((0, "start"));
        (total(&self.held) + bytes, name)
    }
}

fn part(name: &'static str, numbers: usize, note: String) -> Part {
    Part { name, bytes: numbers * BYTES, note }
}

pub(super) const GIB: f64 = (1u64 << 30) as f64;

impl Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let groups = std::iter::once(("throughout", &self.held)).chain(self.phases.iter().map(|(name, parts)| (*name, parts)));
        writeln!(f, "memory      of float32 numbers, for responses as long as they may be")?;
        for (group, parts) in groups {
            for (index, Part { name, bytes, note }) in parts.iter().enumerate() {
                let group = if index == 0 { group } else { "" };
                let line = format!("  {group:22}{name:17}{:>8.3} GiB  {note}", *bytes as f64 / GIB);
                writeln!(f, "{}", line.trim_end())?;
            }
        }
        let (bytes, phase) = self.peak();
        writeln!(f, "  {:22}{:17}{:>8.3} GiB  in: {phase}", "peak", "", bytes as f64 / GIB)
    }
}
