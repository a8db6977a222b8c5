//! Estimates the memory of a run from the shapes of its models and the lengths of its sequences.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use anyhow::Result;

use super::sharding_plan::ShardingPlan;
use burnish_config::schema::Device;
use burnish_model::DecoderConfig;
use burnish_model::lora::peft::PeftAdapter;
use burnish_model::memory::{BYTES, ElementCount, LargestBatch};
use burnish_optim::{Optimizer, Parameter};
use burnish_util::machine::{amount, check_fits, memory};
use burnish_util::platform::own_memory;

/// Memory of a run: what it holds throughout, and what each phase adds.
pub struct MemoryEstimate {
    decoder: DecoderConfig,
    /// Trained elements.
    trained: ElementCount,
    /// Trained parameters: an example name, a shape, and how many parameters have it.
    shapes: Vec<ParameterShape>,
    /// Elements that adapters keep of each row for the backward pass.
    inner: ElementCount,
    on_cpu: bool,
    /// Ranks on this machine.
    local_ranks: ElementCount,
    /// A teacher that passes over every micro-batch of an update, and whether the loss compares its head with the policy's.
    teacher: Option<(DecoderConfig, bool)>,
    /// Bytes of a checkpoint: trained weights and the whole state of their optimizers.
    saved: ElementCount,
    /// True if the head keeps logits until their gradient is computed.
    keeps_logits: bool,
    held: Vec<MemoryItem>,
    phases: Vec<(&'static str, Vec<MemoryItem>)>,
}

/// Bytes of a trajectory, without its tokens.
const TRAJECTORY: ElementCount = 400;
/// Bytes of a token, or of one value for it.
const TOKEN: ElementCount = 4;
/// Values per response token: id, log-probs, masks, advantages.
const COLUMNS: ElementCount = 8;

/// Maximum number of parameters whose sharding among ranks is computed exactly. More, which no model has, are divided evenly.
const MAX_COUNTED: ElementCount = 1 << 20;

/// An example name of some parameters, their shape, and their number.
type ParameterShape = (&'static str, Vec<usize>, ElementCount);

struct MemoryItem {
    name: &'static str,
    bytes: ElementCount,
    note: String,
}

impl MemoryEstimate {
    /// Starts an estimate with the weights and the memory that this process already uses.
    pub fn new(decoder: DecoderConfig, adapter: Option<&PeftAdapter>, device: Device) -> Self {
        let on_cpu = device == Device::Cpu;
        let trained = adapter.map_or(decoder.num_parameters(), PeftAdapter::num_parameters) as ElementCount;
        let inner = adapter.map_or(0, |adapter| adapter.rank as ElementCount * adapter.factors.len() as ElementCount);
        let shapes = adapter.map_or_else(|| decoder.shapes(), PeftAdapter::shapes);
        let mut memory = Self {
            decoder,
            trained,
            shapes,
            inner,
            on_cpu,
            local_ranks: 1,
            teacher: None,
            saved: 0,
            keeps_logits: false,
            held: vec![],
            phases: vec![],
        };
        if let Some(bytes) = own_memory().filter(|_| on_cpu) {
            memory.held.push(MemoryItem {
                name: "process so far",
                bytes: bytes.into(),
                note: "program, tokenizer and data".into(),
            });
        }
        let note = if memory.decoder.quantization.is_some() { "in 4 bits, except embedding, head and vectors" } else { "" };
        memory.held.push(MemoryItem { name: "weights", bytes: memory.decoder.weight_bytes(), note: note.to_owned() });
        if !on_cpu && memory.decoder.quantization.is_some() {
            memory.hold("dequantised part", memory.decoder.dequantised_part(), "of one matrix at a time, for its product");
        }
        if adapter.is_some() {
            memory.hold("adapters", trained, "the only trained parameters");
        }
        memory
    }

    fn hold(&mut self, name: &'static str, numbers: ElementCount, note: &str) {
        self.held.push(MemoryItem { name, bytes: numbers * BYTES, note: note.to_owned() });
    }

    /// Adds the optimizer state, sharded among the ranks, and the gradient sums of several slices.
    pub fn trained(&mut self, optimizer: &Optimizer, sharding: &ShardingPlan) {
        self.local_ranks = sharding.local_ranks as ElementCount;
        let ranks = sharding.ranks;
        let seen =
            |(name, shape, count): &ParameterShape| Some((*name, optimizer.updated_shape(name, shape, &self.decoder)?, *count));
        let shapes: Vec<ParameterShape> = self.shapes.iter().filter_map(seen).collect();
        let parameters: ElementCount = shapes.iter().map(|(_, _, count)| count).sum();
        let of = |(name, shape, count): &ParameterShape| count * optimizer.state_bytes(Parameter { name, shape }) as ElementCount;
        let all: ElementCount = shapes.iter().map(of).sum();
        self.saved = self.trained * BYTES + all;
        let bytes = if ranks > 1 && parameters <= MAX_COUNTED {
            optimizer.state_bytes_of_a_rank(self.each(&shapes), ranks) as ElementCount
        } else {
            all.div_ceil(ranks as ElementCount)
        };
        let part = if ranks > 1 { format!(", the largest of {ranks} shards") } else { String::new() };
        self.held.push(MemoryItem { name: "optimizer state", bytes, note: format!("of {}{part}", optimizer.name) });
        if sharding.partial_sums() > 0 {
            self.hold("gradient sums", self.trained * sharding.partial_sums() as ElementCount, "of slices that wait for others");
        }
    }

    /// Lists the trained parameters one by one, under distinct names in about their real order: layer by layer.
    fn each(&self, shapes: &[ParameterShape]) -> BTreeMap<String, Vec<usize>> {
        let layers = self.decoder.num_hidden_layers.max(1) as ElementCount;
        let copies = |(index, (name, shape, count)): (usize, &ParameterShape)| {
            let (name, shape) = (*name, shape.clone());
            let copy = move |at: ElementCount| {
                let name = name.replacen(".0.", &format!(".{}.", at % layers), 1);
                (format!("{name}.{index:06}.{}", at / layers), shape.clone())
            };
            (0..*count).map(copy)
        };
        shapes.iter().enumerate().flat_map(copies).collect()
    }

    /// Trained elements.
    pub(crate) fn trained_numbers(&self) -> ElementCount {
        self.trained
    }

    /// Bytes of a checkpoint, without the tokenizer.
    pub(crate) fn checkpoint_bytes(&self) -> u64 {
        u64::try_from(self.saved).unwrap_or(u64::MAX)
    }

    /// Adds a reference: a frozen copy of the initial weights, or another model.
    pub fn reference(&mut self, other: Option<&DecoderConfig>) {
        let note = if other.is_some() { "" } else { "shared with the weights until the first update" };
        self.hold("reference model", other.unwrap_or(&self.decoder).num_parameters() as ElementCount, note);
    }

    /// Makes the head of an update compute its logits once, for a loss that reads each token separately.
    pub fn by_token(&mut self) {
        self.keeps_logits = self.on_cpu;
    }

    /// Adds a teacher that passes over every micro-batch before the policy. `in_head`: the loss compares both heads tile by tile.
    pub fn teacher(&mut self, decoder: DecoderConfig, in_head: bool) {
        self.hold("teacher", decoder.num_parameters() as ElementCount, "");
        self.teacher = Some((decoder, in_head));
    }

    /// Adds a teacher that passes once over every sequence, in forward passes of this size.
    pub(crate) fn teacher_of_samples(&mut self, decoder: &DecoderConfig, widest: LargestBatch) {
        self.hold("teacher", decoder.num_parameters() as ElementCount, "");
        self.pass_of("teacher", Some(decoder), widest);
    }

    /// Adds a teacher that is dropped before the first step.
    pub(crate) fn teacher_before(&mut self, decoder: &DecoderConfig) {
        let note = "which is dropped before the first step".to_owned();
        self.phases.push(("teacher's tokens", vec![part("teacher", decoder.num_parameters() as ElementCount, note)]));
    }

    /// Adds a critic with its weights, optimizer and phases.
    pub fn critic(&mut self, critic: Self) {
        self.saved += critic.saved;
        for MemoryItem { name, bytes, note } in critic.held {
            let name = match name {
                "weights" => "critic",
                "adapters" => "critic's adapters",
                "dequantised part" => "its part",
                "optimizer state" => "its optimizer",
                _ => continue,
            };
            self.held.push(MemoryItem { name, bytes, note });
        }
        let names = critic.phases.into_iter().map(|(name, parts)| (if name == "update" { "critic update" } else { name }, parts));
        self.phases.extend(names);
    }

    /// Adds a reward model and its forward pass.
    pub fn reward_model(&mut self, decoder: &DecoderConfig, widest: LargestBatch) {
        self.hold("reward model", decoder.num_parameters() as ElementCount, "");
        let note = format!("{} tokens", widest.rows);
        self.phases.push(("reward", vec![part("forward pass", decoder.forward(widest, self.on_cpu), note)]));
    }

    /// Adds the responses of a step: their tokens, and the columns of each response token. `(prompt, response)`: token limits.
    pub fn trajectories(&mut self, count: usize, (prompt, response): (usize, usize)) {
        let [count, prompt, response] = [count, prompt, response].map(|size| size as ElementCount);
        let bytes = count * (TRAJECTORY + TOKEN * prompt + COLUMNS * TOKEN * response);
        let note = format!("{count} × {} tokens", prompt + response);
        self.held.push(MemoryItem { name: "trajectories", bytes, note });
    }

    /// Refuses a run that holds more than this machine has. Does not check a GPU, whose memory is unknown here.
    ///
    /// # Errors
    /// If the run does not fit; the message lists the parts.
    pub fn check_fits(&self) -> Result<()> {
        if !self.on_cpu {
            return Ok(());
        }
        let parts = || {
            let parts: Vec<String> = self.held.iter().map(|part| format!("{} {}", part.name, amount(part.bytes))).collect();
            let each = if self.local_ranks > 1 { format!(" in each of {} processes", self.local_ranks) } else { String::new() };
            format!("the run does not fit into memory: it holds {} throughout{each} (--dry-run has all parts)", parts.join(", "))
        };
        check_fits(self.local_ranks * total(&self.held), parts)
    }

    /// Returns what this machine lacks, in words; `None` if the run would fit. Not an error, because a dry run may plan for
    /// another machine. Does not check a GPU, whose memory is unknown here.
    pub fn lack(&self) -> Option<String> {
        let max = memory().filter(|_| self.on_cpu)?;
        let ((peak, phase), held) = (self.peak(), self.local_ranks * total(&self.held));
        let peak = self.local_ranks * peak;
        let this = format!("this machine has {}", amount(max));
        match () {
            () if held > max => Some(format!("{this}: it would refuse this run, which holds {} throughout", amount(held))),
            () if peak > max => Some(format!("{this}: this run would need {}, in: {phase}", amount(peak))),
            () => None,
        }
    }

    /// Adds generation: sequences that decode at once (`slots`), their prompts, and the token limits of prompt and response.
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

    /// Adds a forward pass without gradients.
    pub fn pass(&mut self, name: &'static str, widest: LargestBatch) {
        self.pass_of(name, None, widest);
    }

    /// Adds a forward pass without gradients through another model, if the run has one.
    pub(crate) fn pass_of(&mut self, name: &'static str, other: Option<&DecoderConfig>, widest: LargestBatch) {
        let (note, decoder) = (format!("{} tokens", widest.rows), other.unwrap_or(&self.decoder));
        self.phases.push((name, vec![part("forward pass", decoder.forward(widest, self.on_cpu), note)]));
    }

    /// Adds forward, backward and update. `several`: the gradients of several micro-batches are summed.
    pub fn update(&mut self, widest: LargestBatch, several: bool, checkpointing: bool) {
        let (d, note) = (&self.decoder, format!("{} tokens", widest.rows));
        let chunk = if self.keeps_logits { d.stored_logits(widest) } else { d.vocabulary_chunk(widest, self.on_cpu) };
        let backward = d.backward(widest, self.on_cpu).saturating_sub(chunk);
        let gradients = self.trained * if several { 2 } else { 1 };
        let blocks = if checkpointing { d.num_hidden_layers.max(1) as ElementCount } else { 1 };
        let activations = d.activations(widest, checkpointing) + widest.rows as ElementCount * self.inner / blocks;
        let which = if several { "of a micro-batch, and their sum" } else { "" };
        let mut parts = vec![
            part("gradients", gradients, which.into()),
            part("activations", activations, note.clone()),
            part("vocabulary chunk", chunk, String::new()),
            part("backward pass", backward, String::new()),
        ];
        if let Some((teacher, in_head)) = &self.teacher {
            if *in_head {
                parts.push(part("teacher's chunk", teacher.reference_chunk(widest, self.on_cpu), String::new()));
            }
            self.phases.push(("teacher", vec![part("forward pass", teacher.forward(widest, self.on_cpu), note)]));
        }
        self.phases.push(("update", parts));
    }

    /// Adds the reference's side of the exact divergence to the last phase.
    pub fn full_kl(&mut self, widest: LargestBatch) {
        let chunk = part("reference chunk", self.decoder.reference_chunk(widest, self.on_cpu), String::new());
        if let Some((_, parts)) = self.phases.last_mut() {
            parts.push(chunk);
        }
    }

    /// Returns the peak, and the phase where it occurs.
    pub fn peak(&self) -> (ElementCount, &'static str) {
        let phases = self.phases.iter().map(|(name, parts)| (total(parts), *name));
        let (bytes, name) = phases.max_by_key(|(bytes, _)| *bytes).unwrap_or((0, "start"));
        (total(&self.held) + bytes, name)
    }
}

fn total(parts: &[MemoryItem]) -> ElementCount {
    parts.iter().map(|part| part.bytes).sum()
}

fn part(name: &'static str, numbers: ElementCount, note: String) -> MemoryItem {
    MemoryItem { name, bytes: numbers * BYTES, note }
}

pub(crate) const GIB: f64 = (1u64 << 30) as f64;

impl Display for MemoryEstimate {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let groups = std::iter::once(("throughout", &self.held)).chain(self.phases.iter().map(|(name, parts)| (*name, parts)));
        writeln!(f, "memory      in float32, if every response is as long as allowed")?;
        for (group, parts) in groups {
            for (index, MemoryItem { name, bytes, note }) in parts.iter().enumerate() {
                let group = if index == 0 { group } else { "" };
                let line = format!("  {group:22}{name:17}{:>8.3} GiB  {note}", *bytes as f64 / GIB);
                writeln!(f, "{}", line.trim_end())?;
            }
        }
        let (bytes, phase) = self.peak();
        writeln!(f, "  {:22}{:17}{:>8.3} GiB  in: {phase}", "peak", "", bytes as f64 / GIB)
    }
}
