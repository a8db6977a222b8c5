//! An estimate of the memory that a run takes, from the shapes of its models and the lengths of its sequences.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use anyhow::Result;

use super::clock::resident_gib;
use super::sharding_plan::ShardingPlan;
use burnish_config::schema::Device;
use burnish_model::DecoderConfig;
use burnish_model::lora::peft::PeftAdapter;
use burnish_model::memory::{BYTES, ElementCount, LargestBatch};
use burnish_optim::{Optimizer, Parameter};
use burnish_util::machine::{amount, check_fits, memory};

/// An estimate of the memory of a run: what it holds throughout, and what each phase holds beside that.
pub struct MemoryEstimate {
    decoder: DecoderConfig,
    /// Numbers that are trained.
    trained: ElementCount,
    /// Parameters that are trained: a name such as theirs, a shape, and how many there are.
    shapes: Vec<Shapes>,
    /// The numbers that adapters keep of each row for the backward pass.
    inner: ElementCount,
    on_cpu: bool,
    /// The processes of the run on this machine.
    here: ElementCount,
    /// A teacher that passes over every micro-batch of an update, and whether its head stands beside that of the policy.
    teacher: Option<(DecoderConfig, bool)>,
    /// True if the head keeps logits until their gradient is known.
    keeps_logits: bool,
    held: Vec<Item>,
    phases: Vec<(&'static str, Vec<Item>)>,
}

/// Bytes of a trajectory beside its tokens.
const TRAJECTORY: ElementCount = 400;
/// Bytes of a token, or of a number for it.
const TOKEN: ElementCount = 4;
/// Numbers for each token of a response: itself, log-probabilities, masks, advantages.
const COLUMNS: ElementCount = 8;

/// The most parameters whose division among processes is worked out one by one; of more, which no model has, it is taken to be even.
const MOST_COUNTED: Numbers = 1 << 20;

/// A name such as that of some parameters, their shape, and how many there are.
type Shapes = (&'static str, Vec<usize>, ElementCount);

struct Item {
    name: &'static str,
    bytes: ElementCount,
    note: String,
}

impl MemoryEstimate {
    /// Weights, and what this process holds already.
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
            here: 1,
            teacher: None,
            keeps_logits: false,
            held: vec![],
            phases: vec![],
        };
        if let Some(gib) = resident_gib("VmRSS").filter(|_| on_cpu) {
            memory.held.push(Item {
                name: "process so far",
                bytes: (gib * GIB) as ElementCount,
                note: "program, tokenizer and data".into(),
            });
        }
        memory.hold("weights", memory.decoder.num_parameters() as ElementCount, "");
        if adapter.is_some() {
            memory.hold("adapters", trained, "which alone are trained");
        }
        memory
    }

    fn hold(&mut self, name: &'static str, numbers: ElementCount, note: &str) {
        self.held.push(Item { name, bytes: numbers * BYTES, note: note.to_owned() });
    }

    /// The state of the optimizer, of which each of the processes holds its part, and the sums of the gradients of several slices.
    pub fn trained(&mut self, optimizer: &Optimizer, sharding: &ShardingPlan) {
        self.here = sharding.here as Numbers;
        let ranks = sharding.ranks;
        let seen = |(name, shape, count): &Shapes| Some((*name, optimizer.updated_shape(name, shape, &self.decoder)?, *count));
        let shapes: Vec<Shapes> = self.shapes.iter().filter_map(seen).collect();
        let parameters: ElementCount = shapes.iter().map(|(_, _, count)| count).sum();
        let bytes = if ranks > 1 && parameters <= MOST_COUNTED {
            optimizer.state_bytes_of_a_rank(self.each(&shapes), ranks) as ElementCount
        } else {
            let of = |(name, shape, count): &Shapes| count * optimizer.state_bytes(Parameter { name, shape }) as ElementCount;
            shapes.iter().map(of).sum::<ElementCount>().div_ceil(ranks as ElementCount)
        };
        let part = if ranks > 1 { format!(", the largest of {ranks} parts") } else { String::new() };
        self.held.push(Item { name: "optimizer state", bytes, note: format!("of {}{part}", optimizer.name) });
        if sharding.partial_sums() > 0 {
            self.hold("gradient sums", self.trained * sharding.partial_sums() as Numbers, "of slices that wait for others");
        }
    }

    /// The parameters that are trained one by one, by names that differ and are in about the order of theirs: layer by layer.
    fn each(&self, shapes: &[Shapes]) -> BTreeMap<String, Vec<usize>> {
        let layers = self.decoder.num_hidden_layers.max(1) as ElementCount;
        let copies = |(index, (name, shape, count)): (usize, &Shapes)| {
            let (name, shape) = (*name, shape.clone());
            let copy = move |at: ElementCount| {
                let name = name.replacen(".0.", &format!(".{}.", at % layers), 1);
                (format!("{name}.{index:06}.{}", at / layers), shape.clone())
            };
            (0..*count).map(copy)
        };
        shapes.iter().enumerate().flat_map(copies).collect()
    }

    /// The numbers that are trained.
    pub fn trained_numbers(&self) -> ElementCount {
        self.trained
    }

    /// A frozen copy of the initial weights, or another model.
    pub fn reference(&mut self, other: Option<&DecoderConfig>) {
        let note = if other.is_some() { "" } else { "shared with the weights until the first update" };
        self.hold("reference model", other.unwrap_or(&self.decoder).num_parameters() as ElementCount, note);
    }

    /// The head of an update computes its logits once, for a loss that reads each token by itself.
    pub fn by_token(&mut self) {
        self.keeps_logits = self.on_cpu;
    }

    /// A teacher that passes over every micro-batch before the policy does. `in_head`: their heads are compared, tile by tile.
    pub fn teacher(&mut self, decoder: DecoderConfig, in_head: bool) {
        self.hold("teacher", decoder.num_parameters() as ElementCount, "");
        self.teacher = Some((decoder, in_head));
    }

    /// A teacher that passes over every sequence once, in forward passes of this width.
    pub fn teacher_of_samples(&mut self, decoder: &DecoderConfig, widest: LargestBatch) {
        self.hold("teacher", decoder.num_parameters() as ElementCount, "");
        self.pass_of("teacher", Some(decoder), widest);
    }

    /// A teacher that is dropped before the first step.
    pub fn teacher_before(&mut self, decoder: &DecoderConfig) {
        let note = "which is dropped before the first step".to_owned();
        self.phases.push(("teacher's tokens", vec![part("teacher", decoder.num_parameters() as ElementCount, note)]));
    }

    /// Beside the policy, a critic with its own weights, optimizer and phases.
    pub fn critic(&mut self, critic: Self) {
        for Item { name, bytes, note } in critic.held {
            let name = match name {
                "weights" => "critic",
                "adapters" => "critic's adapters",
                "optimizer state" => "its optimizer",
                _ => continue,
            };
            self.held.push(Item { name, bytes, note });
        }
        let names = critic.phases.into_iter().map(|(name, parts)| (if name == "update" { "critic update" } else { name }, parts));
        self.phases.extend(names);
    }

    /// A reward model and its forward pass.
    pub fn reward_model(&mut self, decoder: &DecoderConfig, widest: LargestBatch) {
        self.hold("reward model", decoder.num_parameters() as ElementCount, "");
        let note = format!("{} tokens", widest.rows);
        self.phases.push(("reward", vec![part("forward pass", decoder.forward(widest, self.on_cpu), note)]));
    }

    /// The texts of a step, of up to so many tokens of prompt and response: their tokens, and the columns of numbers for each token
    /// of a response.
    pub fn trajectories(&mut self, count: usize, (prompt, response): (usize, usize)) {
        let [count, prompt, response] = [count, prompt, response].map(|size| size as ElementCount);
        let bytes = count * (TRAJECTORY + TOKEN * prompt + COLUMNS * TOKEN * response);
        let note = format!("{count} × {} tokens", prompt + response);
        self.held.push(Item { name: "trajectories", bytes, note });
    }

    /// Refuses to start what cannot fit into this machine: what a run holds throughout. On a GPU its memory is not known here.
    ///
    /// # Errors
    /// If it does not fit; the message has the parts.
    pub fn check_fits(&self) -> Result<()> {
        if !self.on_cpu {
            return Ok(());
        }
        let parts = || {
            let parts: Vec<String> = self.held.iter().map(|part| format!("{} {}", part.name, amount(part.bytes))).collect();
            let each = if self.here > 1 { format!(" in each of {} processes", self.here) } else { String::new() };
            format!("the run does not fit into memory: it holds {} throughout{each} (--dry-run has all parts)", parts.join(", "))
        };
        check_fits(self.here * total(&self.held), parts)
    }

    /// Returns what a run lacks on this machine, in words; `None` if it would fit. A dry run may be that of another machine, so it
    /// is no error there. On a GPU its memory is not known here.
    pub fn lack(&self) -> Option<String> {
        let most = memory().filter(|_| self.on_cpu)?;
        let ((peak, phase), held) = (self.peak(), self.here * total(&self.held));
        let peak = self.here * peak;
        let this = format!("this machine has {}", amount(most));
        match () {
            () if held > most => Some(format!("{this}: it would refuse this run, which holds {} throughout", amount(held))),
            () if peak > most => Some(format!("{this}: this run would need {}, in: {phase}", amount(peak))),
            () => None,
        }
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
    pub fn pass(&mut self, name: &'static str, widest: LargestBatch) {
        self.pass_of(name, None, widest);
    }

    /// A forward pass without gradients through another model, if there is one.
    pub fn pass_of(&mut self, name: &'static str, other: Option<&DecoderConfig>, widest: LargestBatch) {
        let (note, decoder) = (format!("{} tokens", widest.rows), other.unwrap_or(&self.decoder));
        self.phases.push((name, vec![part("forward pass", decoder.forward(widest, self.on_cpu), note)]));
    }

    /// Forward, backward and update; with `several` micro-batches, gradients are added to those of the ones before.
    pub fn update(&mut self, widest: LargestBatch, several: bool, checkpointing: bool) {
        let (d, note) = (&self.decoder, format!("{} tokens", widest.rows));
        let chunk = if self.keeps_logits { d.kept_logits(widest) } else { d.vocabulary_chunk(widest, self.on_cpu) };
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

    /// The reference's side of the exact divergence, in the phase before.
    pub fn full_kl(&mut self, widest: LargestBatch) {
        let chunk = part("reference chunk", self.decoder.reference_chunk(widest, self.on_cpu), String::new());
        if let Some((_, parts)) = self.phases.last_mut() {
            parts.push(chunk);
        }
    }

    /// The most that is held at once, and the phase that holds it.
    pub fn peak(&self) -> (ElementCount, &'static str) {
        let phases = self.phases.iter().map(|(name, parts)| (total(parts), *name));
        let (bytes, name) = phases.max_by_key(|(bytes, _)| *bytes).unwrap_or((0, "start"));
        (total(&self.held) + bytes, name)
    }
}

fn total(parts: &[Item]) -> ElementCount {
    parts.iter().map(|part| part.bytes).sum()
}

fn part(name: &'static str, numbers: ElementCount, note: String) -> Item {
    Item { name, bytes: numbers * BYTES, note }
}

pub const GIB: f64 = (1u64 << 30) as f64;

impl Display for MemoryEstimate {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let groups = std::iter::once(("throughout", &self.held)).chain(self.phases.iter().map(|(name, parts)| (*name, parts)));
        writeln!(f, "memory      of float32 numbers, for responses as long as they may be")?;
        for (group, parts) in groups {
            for (index, Item { name, bytes, note }) in parts.iter().enumerate() {
                let group = if index == 0 { group } else { "" };
                let line = format!("  {group:22}{name:17}{:>8.3} GiB  {note}", *bytes as f64 / GIB);
                writeln!(f, "{}", line.trim_end())?;
            }
        }
        let (bytes, phase) = self.peak();
        writeln!(f, "  {:22}{:17}{:>8.3} GiB  in: {phase}", "peak", "", bytes as f64 / GIB)
    }
}
