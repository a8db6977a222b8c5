//! Conversations that score themselves or failed, mixed with responses that functions score.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;

use super::conversation::tests::TestConversation;
use super::reward_error::RewardError;
use super::{BatchJudge, Conversation, OnError, PendingScores, Reward, Rewards, Runs, Score, ScoreInput};

/// A judge that scores every response with the size of its batch.
struct Counts(Arc<AtomicUsize>);

impl BatchJudge for Counts {
    fn score(&self, inputs: &[ScoreInput]) -> Result<Vec<Score>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(vec![Score::new(inputs.len() as f32); inputs.len()])
    }
}

fn rewards(on_error: OnError, calls: &Arc<AtomicUsize>) -> Rewards {
    let each = Reward::new("each", Runs::Rule(|_| Ok(Score::new(1.0))));
    let together = Reward { weight: 0.5, ..Reward::new("together", Runs::Together(Arc::new(Counts(calls.clone())))) };
    Rewards { on_error, ..Rewards::from_functions(vec![each, together]) }
}

#[test]
fn a_conversation_with_a_verdict_is_not_scored_again_and_a_failed_one_is_no_zero() {
    let conversations = [None, Some(Ok(0.25)), Some(Err("the user hung".to_owned()))].map(TestConversation::new);
    let mut inputs = vec![ScoreInput::default()];
    inputs.extend(
        conversations
            .iter()
            .map(|messages| ScoreInput { conversation: Some(messages as &dyn Conversation), ..ScoreInput::default() }),
    );
    for (on_error, failed) in [(OnError::Abstain, None), (OnError::Value(-1.0), Some(-1.5))] {
        let calls = Arc::new(AtomicUsize::new(0));
        let rewards = rewards(on_error, &calls);
        let pending = inputs.iter().map(|input| rewards.begin(input)).collect();
        let scores = rewards.complete(&inputs, pending, |i| format!("response {i}")).unwrap();
        // The batch function gets the two responses whose conversation has no score.
        assert_eq!(scores.iter().map(|score| score.score).collect::<Vec<_>>(), [Some(2.0), Some(2.0), Some(0.25), failed]);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        assert!(scores.iter().all(|score| score.components.len() == 2), "every response has a part of each function");
        assert_eq!(rewards.stats.take().timeouts, 1);
        let none: Vec<PendingScores> = vec![rewards.begin(&inputs[2])];
        rewards.complete(&inputs[2..3], none, |_| String::new()).unwrap();
        assert_eq!(calls.load(Ordering::Relaxed), 1, "there is nothing to ask about");
    }
}

#[test]
fn a_failed_conversation_ends_a_run_that_ends_on_errors() {
    let rewards = rewards(OnError::Error, &Arc::default());
    let messages = TestConversation::new(Some(Err("the user hung".to_owned())));
    let inputs = [ScoreInput { conversation: Some(&messages), ..ScoreInput::default() }];
    let (failed, pending) =
        (AtomicUsize::new(usize::MAX), |failed: &AtomicUsize| rewards.begin_unless_failed(0, &inputs[0], failed));
    // The result is the same after serialization, as between processes.
    let text = serde_json::to_string(&pending(&failed).unwrap()).unwrap();
    let pending: PendingScores = serde_json::from_str(&text).unwrap();
    assert!(pending.failed() && failed.load(Ordering::Relaxed) == 0);
    let error = rewards.complete(&inputs, vec![pending], |i| format!("response {i}")).unwrap_err();
    assert!(error.is::<RewardError>(), "{error:#}");
    assert_eq!(format!("{error:#}"), "response 0: the conversation failed: the user hung");
}
