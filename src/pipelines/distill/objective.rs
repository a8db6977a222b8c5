//! The objective of distillation.

use anyhow::Result;

use crate::job::memory_estimate::MemoryEstimate;
use crate::job::unused_options::UnusedOption;
use crate::pipelines::sft;
use crate::pipelines::stage::{self, Measured, Objective, RowFiles, StageBatch, StageInputs};
use burnish_config::DistillConfig;
use burnish_config::schema::DistillDivergence;
use burnish_data::Tokenizer;
use burnish_distributed::Ranks;
use burnish_model::{CausalLm, Gradients};
use burnish_registry::Choice;

use super::example::{self, DistillExample};
use super::loss::{self, DistillSums, KdLoss};
use super::teacher::{self, Teacher};
use super::uld::{self, UldLoss};

/// Returns every name in the registries, for the configuration of a distillation.
pub fn choices() -> Vec<Choice> {
    stage::choices([])
}

/// The divergence from a teacher, and the likelihood of the text.
pub struct Distill {
    teacher: Option<Teacher>,
    loss: DistillLoss,
}

/// The loss of a batch.
enum DistillLoss {
    /// Token by token, with a teacher that has the student's tokens.
    Tokens(KdLoss),
    /// Group of tokens by group, with a teacher that has other tokens.
    Groups(Box<UldLoss>),
}

impl Objective for Distill {
    type Config = DistillConfig;
    type Example = DistillExample;
    /// The sum of the weights of all tokens.
    type BatchTotals = f64;
    type SliceResult = DistillSums;

    fn unused_options(config: &DistillConfig) -> Result<Vec<UnusedOption>> {
        const WITHOUT: &str = "algorithm.kd_coef is 0";
        let (teacher, algorithm) = (&config.teacher, &config.algorithm);
        if algorithm.is_uld() {
            let own = uld::unused_options(config);
            return Ok(own.into_iter().chain(sft::unused_options(&config.data)).collect());
        }
        let sparse = teacher.top_k.is_some() || teacher.logits_file.is_some();
        let off = algorithm.is_without_teacher();
        let of_uld = uld::KEYS.map(|key| (true, key, "it needs algorithm.loss_type=uld"));
        let rows = [
            (off, "teacher.path", WITHOUT),
            (off, "teacher.dtype", WITHOUT),
            (off, "teacher.top_k", WITHOUT),
            (off, "teacher.logits_file", WITHOUT),
            (off, "teacher.logits_dtype", WITHOUT),
            (off, "algorithm.loss_type", WITHOUT),
            (off, "algorithm.beta", WITHOUT),
            (off, "algorithm.loss_top_k", WITHOUT),
            (off || algorithm.loss_top_k == 0, "algorithm.loss_add_tail", "it needs algorithm.loss_top_k above 0"),
            (off, "algorithm.temperature", WITHOUT),
            (off, "algorithm.log_prob_min_clamp", WITHOUT),
            (algorithm.loss_type != DistillDivergence::Jsd, "algorithm.beta", "it needs algorithm.loss_type=jsd"),
            (!sparse, "algorithm.log_prob_min_clamp", "it needs teacher.top_k or teacher.logits_file"),
            (teacher.logits_file.is_none(), "teacher.logits_dtype", "it needs teacher.logits_file"),
            (teacher.is_stored(), "teacher.logits_dtype", "teacher.logits_file exists already, and has its own format"),
            (teacher.is_stored(), "teacher.dtype", "teacher.logits_file is read instead"),
        ];
        Ok(rows.into_iter().chain(of_uld).chain(sft::unused_options(&config.data)).collect())
    }

    fn read(config: &DistillConfig, tokenizer: &Tokenizer, rows: &RowFiles) -> Result<Vec<DistillExample>> {
        example::read(config, tokenizer, rows)
    }

    fn build(config: &DistillConfig, inputs: &StageInputs<DistillExample>, model: &CausalLm, ranks: &Ranks) -> Result<Self> {
        let open = || Teacher::open(config, inputs, model, ranks);
        let teacher = (!config.algorithm.is_without_teacher()).then(open).transpose()?;
        let loss = match KdLoss::from_config(&config.algorithm) {
            Some(loss) => DistillLoss::Tokens(loss),
            None => DistillLoss::Groups(Box::new(UldLoss::new(config, &inputs.tokenizer, model, teacher.as_ref())?)),
        };
        Ok(Self { teacher, loss })
    }

    fn batch_totals(&self, batch: &StageBatch<DistillExample>, _model: &CausalLm, _ranks: &Ranks) -> f64 {
        sft::total_weight(&batch.examples.iter().map(|example| &example.student).collect::<Vec<_>>())
    }

    fn pass(
        &self,
        batch: &StageBatch<DistillExample>,
        of_all: &f64,
        slice: &[usize],
        model: &CausalLm,
        gradients: Option<&mut Gradients>,
    ) -> DistillSums {
        let teacher = self.teacher.as_ref();
        match &self.loss {
            DistillLoss::Tokens(loss) => loss::pass(loss, teacher, batch, *of_all, slice, model, gradients),
            DistillLoss::Groups(loss) => loss.pass(teacher, batch, *of_all, slice, model, gradients),
        }
    }

    fn measured(&self, _batch: &StageBatch<DistillExample>, _of_all: f64, results: Vec<DistillSums>) -> Measured {
        results.into_iter().reduce(DistillSums::and).unwrap_or_default().measured()
    }

    fn memory(config: &DistillConfig, memory: &mut MemoryEstimate) -> Result<()> {
        if config.algorithm.is_without_teacher() { Ok(()) } else { teacher::memory(config, memory) }
    }

    fn for_measuring(config: &mut DistillConfig) -> (bool, Vec<&'static str>) {
        if config.teacher.is_stored() {
            return (false, vec![]);
        }
        // The teacher passes over each batch in its step, in place of all batches before the first step.
        config.teacher.logits_file = None;
        (true, vec![])
    }

    fn describe(config: &DistillConfig, inputs: &StageInputs<DistillExample>) -> Result<Vec<(&'static str, String)>> {
        let teacher = match config.algorithm.is_without_teacher() {
            true => "none: its weight in the loss is 0".to_owned(),
            false => teacher::describe(config, inputs)?,
        };
        let loss = KdLoss::from_config(&config.algorithm);
        let loss = loss.map_or_else(|| uld::describe(&config.algorithm), |loss| loss.describe());
        Ok(vec![("teacher", teacher), ("loss", loss)])
    }
}
