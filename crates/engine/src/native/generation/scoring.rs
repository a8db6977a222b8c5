//! Scores of prompts, from the hidden states of their prefill.

use std::sync::Arc;

use burn::tensor::Tensor;
use rayon::prelude::*;

use super::state::GenerationState;
use crate::native::waiting::NewPrompt;
use crate::sampling::score;
use burnish_model::CausalLm;
use burnish_rollout::TokenScores;

/// The number of logits that are computed at once. A long prompt has no [tokens, vocabulary] tensor.
const LOGITS: usize = 1 << 24;

impl GenerationState<'_> {
    /// Returns the scores of each prompt whose sequences want them: of its tokens from the second, each predicted by the hidden
    /// state [rows, h] before it. The rows of the prompts follow one another.
    pub(super) fn score_prompts(&mut self, hidden: &Tensor<2>, prompts: &[NewPrompt]) -> Vec<Option<Arc<TokenScores>>> {
        let (mut first, most) = (0, (LOGITS / self.model.config.vocab_size).max(1));
        let mut all = Vec::with_capacity(prompts.len());
        for prompt in prompts {
            let targets = prompt.ids.get(1..).unwrap_or_default();
            let scores = prompt.scored().map(|top| {
                let rows = hidden.clone().narrow(0, first, prompt.ids.len());
                Arc::new(score_rows(&self.model, &rows, targets, top, most, &mut self.logits))
            });
            all.push(scores);
            first += prompt.ids.len();
        }
        all
    }
}

/// Scores tokens, each in the logits of its row of hidden states, with the `top` most probable ones. At most `most` rows of logits
/// are computed at once, in `logits`.
fn score_rows(
    model: &CausalLm,
    hidden: &Tensor<2>,
    targets: &[u32],
    top: usize,
    most: usize,
    logits: &mut Vec<f32>,
) -> TokenScores {
    let (vocab, mut scores) = (model.config.vocab_size, TokenScores::default());
    for (chunk, targets) in targets.chunks(most).enumerate() {
        model.logits(hidden.clone().narrow(0, chunk * most, targets.len()), logits);
        let rows = logits.par_chunks_exact(vocab).zip(targets).map(|(logits, token)| score(logits, *token, top));
        rows.collect::<Vec<_>>().into_iter().for_each(|score| score.append_to(&mut scores));
    }
    scores
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use burn::tensor::Device;

    use super::*;
    use burnish_model::Init;
    use burnish_model::ops::tensor_from_vec;

    #[test]
    fn chunks_do_not_change_scores() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/models/qwen2");
        let model = CausalLm::load(&folder, Init::Pretrained, &Device::flex()).unwrap();
        let (rows, width) = (11, model.config.hidden_size);
        let hidden = (0..rows * width).map(|i| (i as f32 * 0.713).sin()).collect();
        let hidden = tensor_from_vec(hidden, [rows, width], &Device::flex());
        let targets: Vec<u32> = (1..rows as u32).map(|i| i * 7).collect();
        let scores = |most: usize| score_rows(&model, &hidden, &targets, 3, most, &mut Vec::new());
        let whole = scores(rows);
        assert_eq!((whole.log_probs.len(), whole.top_ids.len()), (10, 30));
        [1, 3, 5, 10].iter().for_each(|most| assert_eq!(scores(*most), whole, "{most} at once"));
    }
}
