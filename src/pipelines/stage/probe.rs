//! The part of a stage's step that `trainer replay` shows: every predicted token, and the gradient of each example.

use anyhow::Result;

use super::batch::StageBatch;
use super::objective::Objective;
use crate::job::probe::{ProbedSample, ProbedText, SampleGradient, StepProbe, TokenColumns};
use burnish_data::Tokenizer;
use burnish_distributed::Ranks;
use burnish_model::config::HeadKind;
use burnish_model::{CausalLm, Cut, Gradients, Sequence, TokenStats};
use burnish_optim::GradientSum;

/// Passes over each example of a batch alone, with its weight in the batch, before the update. `gradients`: the gradients of the
/// batch.
pub(super) fn look<O: Objective>(
    probe: &StepProbe,
    (objective, tokenizer): (&O, &Tokenizer),
    batch: &StageBatch<O::Example>,
    model: &CausalLm,
    gradients: &GradientSum,
    ranks: &Ranks,
) -> Result<()> {
    // A loss of the whole batch gets its facts from a pass ahead, as with any batch that is divided.
    let apart = StageBatch {
        examples: batch.examples.clone(),
        sequences: batch.sequences.clone(),
        rows: batch.rows.clone(),
        slices: batch.slices.clone(),
        cut: Cut::Sequences(1),
        ..*batch
    };
    let totals = objective.batch_totals(&apart, model, ranks);
    for (i, sequences) in batch.sequences.iter().enumerate() {
        let mut own = Gradients::default();
        objective.pass(&apart, &totals, &[i], model, Some(&mut own));
        let texts = sequences.iter().map(|sequence| text(sequence, tokenizer, model)).collect::<Result<_>>()?;
        let gradients = vec![SampleGradient::measure(1, &own, gradients.whole())];
        let sample = ProbedSample { sample: i, row: batch.rows[i], gradients, texts, ..ProbedSample::default() };
        probe.look(|step| step.samples.push(sample));
    }
    Ok(())
}

/// Returns a sequence with its values under the current model. A model with a scalar head has none.
fn text(sequence: &Sequence, tokenizer: &Tokenizer, model: &CausalLm) -> Result<ProbedText> {
    let stats =
        (model.config.head == HeadKind::Language).then(|| model.frozen().token_stats(std::slice::from_ref(sequence), 1.0, None));
    let columns = |stats: TokenStats| TokenColumns {
        update: 1,
        log_prob: stats.log_prob,
        entropy: stats.entropy,
        ratio: None,
        clipped: None,
    };
    Ok(ProbedText {
        prompt: tokenizer.decode(sequence.prompt, false)?,
        response: tokenizer.decode(sequence.response, false)?,
        tokens: tokenizer.pieces(sequence.response)?,
        mask: vec![1; sequence.response.len()],
        updates: stats.map(columns).into_iter().collect(),
        ..ProbedText::default()
    })
}
