//! Conversations of several turns on the native engine. Their bits depend neither on their neighbours nor on the time that tools
//! take. The log-probability of every sampled token equals its log-probability in the training pass over the whole sequence.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use burnish::agent::{AgentLoop, Conversations, EndReason, Episode, NextAction, SampleRequest, SharedOptions};
use burnish::model::{CausalLm, Init, Sequence};
use burnish::rollout::{Engine, Finish, NativeEngine, Response, Sampling, TurnSettings, Turns};
use burnish::util::rng::Stream;

use crate::device::{cases, device, is_same};
use crate::recurrent::random;

const SAMPLING: Sampling = Sampling { max_tokens: 24, ..Sampling::PLAIN };
const ENGINE: NativeEngine =
    NativeEngine { max_num_seqs: 64, max_num_batched_tokens: 8192, max_model_len: None, enforce_eager: false };
const TURNS: usize = 4;
const CONVERSATIONS: usize = 12;
const EOS: [u32; 8] = [0, 30, 60, 90, 120, 150, 180, 210];

/// A conversation whose tool returns some tokens after a delay; before its last turn it removes some tokens.
struct Scripted {
    place: usize,
    delay: fn(usize, usize) -> u64,
    prompt: usize,
    ids: Vec<u32>,
    sampled: Vec<bool>,
    log_probs: Vec<f32>,
    turns: usize,
}

impl Scripted {
    fn new(place: usize, delay: fn(usize, usize) -> u64) -> Self {
        // Groups of three share their beginning; some prompts fill a block of the cache.
        let ids: Vec<u32> = (0..[16, 5, 33, 1][place / 3]).map(|j| (place as u32 / 3 * 31 + j * 17) % 256).collect();
        Self { place, delay, prompt: ids.len(), sampled: Vec::new(), log_probs: Vec::new(), ids, turns: 0 }
    }

    fn push(&mut self, ids: &[u32], log_probs: Option<&[f32]>) {
        self.ids.extend(ids);
        self.sampled.extend(vec![log_probs.is_some(); ids.len()]);
        self.log_probs.extend(log_probs.map_or_else(|| vec![0.0; ids.len()], <[f32]>::to_vec));
    }
}

impl AgentLoop for Scripted {
    fn next(&mut self, turn: Option<Response>) -> anyhow::Result<NextAction> {
        if let Some(turn) = turn {
            self.push(&turn.ids, Some(&turn.log_probs));
            self.turns += 1;
            if self.turns == TURNS {
                return Ok(NextAction::End);
            }
            std::thread::sleep(Duration::from_millis((self.delay)(self.place, self.turns)));
            if self.turns == TURNS - 1 {
                let left = self.sampled.len() - self.place.min(self.sampled.len() - 1);
                self.ids.truncate(self.prompt + left);
                self.sampled.truncate(left);
                self.log_probs.truncate(left);
            }
            let count = self.place * self.turns * 5 % 23;
            let context: Vec<u32> = (0..count).map(|j| (self.place * 7 + j * 13) as u32 % 256).collect();
            self.push(&context, None);
        }
        Ok(NextAction::Generate(SampleRequest::new(self.ids.clone(), 6 + self.place)))
    }

    fn finish(self: Box<Self>) -> Episode {
        let (prompt, ids) = self.ids.split_at(self.prompt);
        Episode {
            prompt: prompt.to_vec(),
            ids: ids.to_vec(),
            sampled: self.sampled,
            rollout_log_probs: self.log_probs.clone(),
            log_probs: self.log_probs,
            finish: Finish::Stop,
            end: EndReason::Answer,
            messages: Vec::new(),
            prompt_messages: 0,
            tools: vec![],
            tokens_only: false,
            assistant_turns: self.turns,
            user_turns: self.turns - 1,
            calls: Vec::new(),
            rewards: Vec::new(),
            score: None,
            extra: Default::default(),
            unreadable_calls: 0,
            dropped_calls: 0,
            waited: 0.0,
        }
    }
}

fn converse(model: &CausalLm, mut engine: NativeEngine, delay: fn(usize, usize) -> u64) -> Vec<Episode> {
    let episodes = Mutex::new(BTreeMap::new());
    let loops = (0..CONVERSATIONS).map(|place| Box::new(Scripted::new(place, delay)) as Box<dyn AgentLoop>).collect();
    let common = SharedOptions {
        sampling: SAMPLING,
        stream: &|conversation, turn| Stream::new(7, "rollout", &[conversation as u64, turn as u64]),
        finished: &|place, episode| _ = episodes.lock().unwrap().insert(place, episode),
        waiting: &|| {},
    };
    let settings = TurnSettings { eos: &EOS, stops: None, rules: None, progress: None, token: None };
    Conversations::run(loops, common, |turns| engine.converse(model, &settings, turns)).unwrap();
    episodes.into_inner().unwrap().into_values().collect()
}

/// Asserts that episodes are equal. Log-probabilities are compared only where rows do not depend on their neighbours.
fn assert_same(mut got: Vec<Episode>, expected: &[Episode], label: &str) {
    assert_eq!(got.len(), expected.len(), "{label}");
    for (got, expected) in got.iter_mut().zip(expected) {
        assert!(is_same(&got.log_probs, &expected.log_probs), "{label}: {:?}, not {:?}", got.log_probs, expected.log_probs);
        (got.log_probs, got.rollout_log_probs) = (expected.log_probs.clone(), expected.rollout_log_probs.clone());
    }
    assert_eq!(got, expected, "{label}");
}

#[test]
fn a_conversation_depends_on_itself_alone_and_is_what_training_sees() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/models/qwen2");
    let qwen2 = CausalLm::load(&folder, Init::Pretrained, &device()).unwrap();
    // A conversation that removes tokens begins again in layers whose state has passed them.
    for model in cases([qwen2, random("qwen3_5_text", "{}"), random("lfm2", "{}"), random("granitemoehybrid", "{}")], 1) {
        check(&model);
    }
}

fn check(model: &CausalLm) {
    let together = converse(model, ENGINE, |_, _| 0);
    assert_eq!(together.len(), CONVERSATIONS);
    let delays: [fn(usize, usize) -> u64; 2] =
        [|place, turn| (place * 37 + turn * 11) as u64 % 30, |place, _| 40 * (place % 2) as u64];
    for delay in cases(delays, 1) {
        assert_same(converse(model, ENGINE, delay), &together, "tools that take their time");
    }
    for max_num_seqs in cases([3, 1, 5], 1) {
        let few = converse(model, NativeEngine { max_num_seqs, ..ENGINE }, |place, _| place as u64 % 4);
        assert_same(few, &together, &format!("{max_num_seqs} side by side"));
    }
    for max_num_batched_tokens in cases([20, 1], 1) {
        let engine = NativeEngine { max_num_batched_tokens, ..ENGINE };
        assert_same(converse(model, engine, |_, _| 0), &together, &format!("{max_num_batched_tokens} tokens in a pass"));
    }
    for episode in &together {
        let sequence = Sequence::new(&episode.prompt, &episode.ids);
        let stats = model.token_stats(&[sequence], SAMPLING.temperature, None);
        let sampled = episode.sampled.iter().zip(episode.log_probs.iter().zip(&stats.log_prob)).filter(|(sampled, _)| **sampled);
        for (_, (a, b)) in sampled {
            // Both are float32, with sums over up to 150 positions in another order.
            assert!((a - b).abs() < 1e-5 * (1.0 + a.abs()), "{a} while sampling, {b} in training");
        }
    }
}

/// If the engine or a conversation panics, the other threads do not wait for it forever.
#[test]
fn a_panic_ends_all_conversations() {
    struct Broken;
    impl AgentLoop for Broken {
        fn next(&mut self, _: Option<Response>) -> anyhow::Result<NextAction> {
            panic!("a conversation is broken")
        }

        fn finish(self: Box<Self>) -> Episode {
            unreachable!("it never ends")
        }
    }
    let run = |loops: Vec<Box<dyn AgentLoop>>, engine: fn(&dyn Turns) -> anyhow::Result<()>| {
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let common = SharedOptions {
                sampling: SAMPLING,
                stream: &|conversation, turn| Stream::new(7, "rollout", &[conversation as u64, turn as u64]),
                finished: &|_, _| {},
                waiting: &|| {},
            };
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| Conversations::run(loops, common, engine)));
            tell.send(caught.is_err()).unwrap();
        });
        told.recv_timeout(Duration::from_secs(60)).expect("a thread waits for a message that does not come")
    };
    let scripted = || (0..3).map(|place| Box::new(Scripted::new(place, |_, _| 0)) as Box<dyn AgentLoop>);
    assert!(run(scripted().collect(), |_| panic!("the engine is broken")));
    let listen: fn(&dyn Turns) -> anyhow::Result<()> = |turns| {
        while turns.arrived(true).is_some() {}
        Ok(())
    };
    assert!(run(scripted().chain([Box::new(Broken) as Box<dyn AgentLoop>]).collect(), listen));
}
