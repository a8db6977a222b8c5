//! The teacher of a distillation: a model, or its stored top-k tokens at every trained token.

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::example::DistillExample;
use super::stored::{self, FileRequirements, StoredTopK};
use super::teacher_tokens::{KEY, tokenizer};
use crate::job::memory_estimate::MemoryEstimate;
use crate::job::models::{check_model, is_bfloat16};
use crate::job::second_model::SecondModel;
use crate::job::teacher::check_tokens;
use crate::pipelines::stage::{StageExample, StageInputs, decoder};
use burnish_config::DistillConfig;
use burnish_config::schema::{LossSupport, StageConfig};
use burnish_distributed::Ranks;
use burnish_model::hf_config::HfConfig;
use burnish_model::{CausalLm, Cut, DecoderConfig, Init, Sequence, TopK};

/// The source of the target distribution.
pub(super) struct Teacher {
    source: Source,
    /// The number of training examples; in a file they precede the validation examples.
    training_examples: usize,
}

enum Source {
    /// `top_k`: only its top-k tokens count.
    Model {
        model: Box<CausalLm>,
        top_k: Option<usize>,
        /// Number of the most probable tokens that a divergence compares, and whose.
        support: Option<(usize, LossSupport)>,
    },
    Stored(StoredTopK),
}

impl Teacher {
    /// Loads the teacher or reads its stored tokens. All `ranks` together first write a missing file.
    ///
    /// # Errors
    /// If the teacher has other tokens than the student, or if weights or a file cannot be read or do not fit.
    pub(super) fn open(
        config: &DistillConfig,
        inputs: &StageInputs<DistillExample>,
        student: &CausalLm,
        ranks: &Ranks,
    ) -> Result<Self> {
        ranks.agree(check(config, inputs))?;
        let own = &config.teacher;
        let source = match &own.logits_file {
            Some(file) => {
                // Rank 0 looks for the file before any rank writes one.
                if !ranks.first(|| Ok(own.is_stored()))? {
                    let stored = written(&ranks.agree(load(config, student))?, config, inputs, student.config.vocab_size, ranks);
                    ranks.first(|| {
                        let required = file_requirements(config, inputs, student)?;
                        stored.write(file.as_path(), &required, own.logits_dtype).context("teacher.logits_file")
                    })?;
                }
                // A new file is read back, so that this run learns from the same values as later runs.
                let read = || {
                    StoredTopK::read(file.as_path(), &file_requirements(config, inputs, student)?).context("teacher.logits_file")
                };
                Source::Stored(ranks.agree(read())?)
            }
            None => {
                let support = config.algorithm.support().map(|(_, of)| (config.algorithm.loss_top_k, of));
                Source::Model { model: Box::new(ranks.agree(load(config, student))?), top_k: own.top_k, support }
            }
        };
        Ok(Self { source, training_examples: inputs.train.len() })
    }

    pub(crate) fn training_examples(&self) -> usize {
        self.training_examples
    }

    /// Returns the model if the whole distribution counts.
    pub(super) fn model(&self) -> Option<&CausalLm> {
        match &self.source {
            Source::Model { model, top_k: None, support: None } => Some(model),
            _ => None,
        }
    }

    /// Returns the top-k tokens for every predicted token of these examples, if only they count. `places`: the indices of the
    /// examples in a file.
    pub(super) fn tokens(&self, sequences: &[Sequence], places: &[usize], student: &CausalLm, temperature: f32) -> Option<TopK> {
        match &self.source {
            Source::Stored(stored) => Some(stored.examples(places)),
            Source::Model { model, top_k, support } => {
                let vocabulary = student.config.vocab_size.min(model.config.vocab_size);
                let of_teacher = |k: usize| model.top_k(sequences, temperature, k, vocabulary);
                let of_student = |k: usize| student.inference().top_k(sequences, temperature, k, vocabulary);
                let entries = match *support {
                    None => return top_k.map(of_teacher),
                    Some((k, LossSupport::Teacher)) => return Some(of_teacher(k)),
                    Some((k, LossSupport::Student)) => of_student(k),
                    Some((k, LossSupport::Both | LossSupport::Auto)) => of_teacher(k).union(&of_student(k)),
                };
                Some(model.log_probs_of(&entries, sequences, temperature, vocabulary))
            }
        }
    }
}

/// Returns the requirements of this run on a file.
fn file_requirements(
    config: &DistillConfig,
    inputs: &StageInputs<DistillExample>,
    student: &CausalLm,
) -> Result<FileRequirements> {
    let own = &config.teacher;
    let examples: Vec<_> = inputs.train.iter().chain(&inputs.val).collect();
    let teacher = own.path.as_ref().map(|path| stored::fingerprint(path.as_path())).transpose().context(KEY)?;
    FileRequirements::new(&examples, teacher, config.algorithm.temperature, own.top_k, student.config.vocab_size)
}

/// Computes the teacher's tokens for all examples in one pass that the ranks share. `vocabulary`: the student's vocabulary size.
fn written(
    teacher: &CausalLm,
    config: &DistillConfig,
    inputs: &StageInputs<DistillExample>,
    vocabulary: usize,
    ranks: &Ranks,
) -> StoredTopK {
    let keys = config.stage().data;
    let cut = match keys.use_dynamic_bsz {
        true => Cut::Tokens(keys.max_token_len_per_gpu),
        false => Cut::Sequences(keys.micro_batch_size_per_gpu),
    };
    let k = config.teacher.top_k.unwrap_or(1);
    let examples: Vec<_> = inputs.train.iter().chain(&inputs.val).collect();
    let sequences: Vec<Vec<Sequence>> = examples.iter().map(|example| example.sequences()).collect();
    let vocabulary = vocabulary.min(teacher.config.vocab_size);
    tracing::info!("the teacher writes its top-{k} tokens for {} examples", examples.len());
    let mut stored = StoredTopK::empty(&examples, k);
    let micro_batches = cut.micro_batches_of(&sequences);
    let own = &micro_batches[ranks.share(micro_batches.len())];
    for micro in own {
        let of_micro: Vec<Sequence> = micro.iter().flat_map(|&i| sequences[i].iter().copied()).collect();
        stored.put(micro, &teacher.top_k(&of_micro, config.algorithm.temperature as f32, k, vocabulary));
        ranks.beat();
    }
    stored.gather(ranks, own.concat());
    stored
}

fn load(config: &DistillConfig, student: &CausalLm) -> Result<CausalLm> {
    let Some(path) = &config.teacher.path else { bail!("{KEY} is unset") };
    let teacher = CausalLm::load(path.as_path(), Init::Pretrained, &student.device).context(KEY)?;
    Ok(teacher.computing(is_bfloat16(config.teacher.dtype, config.trainer.device, &student.device), false))
}

/// Checks that the teacher has the tokens of the run and reads its sequences.
///
/// # Errors
/// If config.json cannot be read, the tokens differ, or the positions do not suffice.
fn check(config: &DistillConfig, inputs: &StageInputs<DistillExample>) -> Result<Option<DecoderConfig>> {
    let Some(path) = &config.teacher.path else { return Ok(None) };
    let theirs = HfConfig::read(path.as_path()).and_then(|hf| hf.decoder()).context(KEY)?;
    let examples = || inputs.train.iter().chain(&inputs.val);
    if config.algorithm.is_uld() {
        let longest = examples().filter_map(|example| example.teacher.as_ref()).map(|row| row.sequence().len()).max();
        let own = tokenizer(config, &inputs.tokenizer)?;
        check_model(&theirs, &own, longest.unwrap_or(0), "data.max_length with data.truncation=filter")
            .with_context(|| format!("{KEY}={path}"))?;
        return Ok(Some(theirs));
    }
    let longest = examples().flat_map(StageExample::sequences).map(|s| s.len()).max();
    let own = decoder(config)?;
    let teacher = SecondModel { key: KEY, folder: path.as_path(), role: "teacher", first: "student" };
    check_tokens(teacher, &inputs.tokenizer, (theirs.vocab_size, own.vocab_size))
        .map_err(|error| anyhow!("{error:#}; for a teacher with other tokens, write algorithm.loss_type=uld"))?;
    check_model(&theirs, &inputs.tokenizer, longest.unwrap_or(0), "data.max_length").with_context(|| format!("{KEY}={path}"))?;
    let common = own.vocab_size.min(theirs.vocab_size);
    let compared = config.algorithm.loss_top_k;
    ensure!(compared <= common, "algorithm.loss_top_k={compared} is more than the {common} tokens of the vocabulary");
    if let Some(k) = config.teacher.top_k {
        ensure!(k <= common, "teacher.top_k={k} is more than the {common} tokens of the vocabulary");
    }
    Ok(Some(theirs))
}

/// Adds the teacher to the memory of a run, unless its tokens are in a file.
pub(super) fn memory(config: &DistillConfig, memory: &mut MemoryEstimate) -> Result<()> {
    let own = &config.teacher;
    let Some(path) = own.path.as_ref().filter(|_| !own.is_stored()) else { return Ok(()) };
    let decoder = HfConfig::read(path.as_path()).and_then(|hf| hf.decoder()).context(KEY)?;
    match own.logits_file {
        Some(_) => memory.teacher_before(&decoder),
        None => memory.teacher(decoder, own.top_k.is_none() && config.algorithm.loss_top_k == 0),
    }
    Ok(())
}

/// Describes the teacher for users, after the checks of a run.
pub(super) fn describe(config: &DistillConfig, inputs: &StageInputs<DistillExample>) -> Result<String> {
    let decoder = check(config, inputs)?;
    let own = &config.teacher;
    let model = || own.path.as_ref().map_or_else(|| "a teacher".to_owned(), ToString::to_string);
    let shape = decoder
        .map_or_else(String::new, |decoder| format!(", {} layers of width {}", decoder.num_hidden_layers, decoder.hidden_size));
    let tokens = own.top_k.map_or_else(String::new, |k| format!(", its top-{k} tokens"));
    Ok(match &own.logits_file {
        Some(file) if own.is_stored() => format!("stored in {file}"),
        Some(file) => format!("{}{shape}{tokens}, to be stored in {file}", model()),
        None => format!("{}{shape}{tokens}", model()),
    })
}
