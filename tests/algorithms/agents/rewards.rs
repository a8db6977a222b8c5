//! Reward functions of a conversation: their arguments, in each calling convention.

use std::sync::Arc;
use std::time::Duration;

use burnish::agent::{EndReason, Episode, TurnReward};
use burnish::reward::python::{CodeSource, Pool, PoolOptions, functions};
use burnish::reward::{Runs, ScoreInput};
use burnish::rollout::Finish;
use serde_json::{Map, Value, json};

const FUNCTIONS: &str = r#"
def check(extra_info):
    assert extra_info["num_turns"] == 4, extra_info
    assert extra_info["tool_rewards"] == [0.25] and extra_info["turn_scores"] == [], extra_info
    assert extra_info["rollout_reward_scores"] == {} and extra_info["seen"] == ["6"], extra_info
    assert extra_info["index"] == 3 and extra_info["messages"][2] == {"role": "tool", "content": "6"}, extra_info

def verl(data_source, solution_str, ground_truth, extra_info=None):
    check(extra_info)
    return 1.0

def verl_batch(data_sources, solution_strs, ground_truths, extra_infos):
    check(extra_infos[0])
    assert "tool_rewards" not in extra_infos[1] and extra_infos[1]["rollout_reward_scores"] == {}, extra_infos
    return [1.0] * len(extra_infos)

def trl(prompts, completions, **columns):
    assert [message["role"] for message in completions[0]] == ["assistant", "tool", "assistant"], completions
    assert completions[1] == [{"role": "assistant", "content": "6"}], completions
    return [1.0, 1.0]
"#;

fn episode() -> Episode {
    let messages = [("user", "2*3"), ("assistant", "call"), ("tool", "6"), ("assistant", "It is 6.")];
    Episode {
        prompt: vec![1],
        ids: vec![2, 3, 4],
        sampled: vec![true, false, true],
        log_probs: vec![-1.0, 0.0, -1.0],
        rollout_log_probs: vec![-1.0, 0.0, -1.0],
        finish: Finish::Stop,
        end: EndReason::Answer,
        messages: messages.map(|(role, content)| json!({"role": role, "content": content})).to_vec(),
        prompt_messages: 1,
        tools: vec![],
        tokens_only: false,
        assistant_turns: 2,
        user_turns: 1,
        calls: vec![],
        rewards: vec![TurnReward { at: 0, value: 0.25, of_tool: true }],
        score: None,
        extra: Map::from_iter([("seen".to_owned(), json!(["6"]))]),
        unreadable_calls: 0,
        dropped_calls: 0,
        waited: 0.5,
    }
}

/// The second response is one turn, as in a run whose rows have different loops.
#[test]
fn reward_functions_see_the_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my_reward.py");
    std::fs::write(&path, FUNCTIONS).unwrap();
    let (episode, extra_info, prompt) = (episode(), json!({"index": 3}), json!([{"role": "user", "content": "2*3"}]));
    let one = ScoreInput { solution: "6", extra_info: &extra_info, prompt: &prompt, ..ScoreInput::default() };
    let inputs = [ScoreInput { conversation: Some(&episode), ..one }, one];
    for name in ["verl", "verl_batch", "trl"] {
        let source = CodeSource::File {
            path: path.to_str().unwrap().to_owned(),
            names: vec![name.to_owned()],
            reward_kwargs: Map::<String, Value>::new(),
            positional: false,
        };
        let time = Duration::from_secs(20);
        let options = PoolOptions { num_workers: 1, timeout: time, start_timeout: time, ..PoolOptions::default() };
        let pool = Arc::new(Pool::start(source, options).unwrap());
        let scores = match &functions(&pool)[0].runs {
            Runs::Each(judge) => judge.score(&inputs[0]).map(|score| vec![score]),
            Runs::Together(judge) => judge.score(&inputs),
            _ => panic!("no Python function"),
        };
        assert!(scores.as_ref().is_ok_and(|scores| scores.iter().all(|score| score.score == Some(1.0))), "{name}: {scores:?}");
    }
}
