//! Throughput of conversations with tools: 64 conversations of 4 turns, whose tools take 0, 10 or 200 ms, compared with the same
//! number of sampled tokens without tools. The model is a small Qwen2 (17 million parameters, vocabulary of 50,304).
//!
//! Every row is measured `REPEATS` times, in turn with the others, and its median is printed. The first row has neither tools nor
//! their results. The second has the tokens of the results in its prompts, so that the model reads and samples as many tokens as
//! with tools; the shares are of its speed. The last column is the share if all conversations waited at the same time and the
//! model sampled nothing meanwhile.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use burn::tensor::Device;
use burnish::agent::{AgentLoop, Conversations, EndReason, Episode, NextAction, SampleRequest, SharedOptions};
use burnish::model::{CausalLm, Init};
use burnish::rollout::{Engine, Finish, NativeEngine, Response, Sampling, TurnSettings};
use burnish::util::rng::Stream;

// The same allocator as in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CONVERSATIONS: usize = 64;
const TURNS: usize = 4;
const PROMPT_TOKENS: usize = 64;
/// The tokens of a tool's result.
const ANSWER_TOKENS: usize = 16;
const REPEATS: usize = 5;

/// The tokens of a turn: between 12 and 36, so that conversations do not all wait at the same time.
fn turn_tokens(place: usize, turn: usize) -> usize {
    12 + (place * 7 + turn * 11) % 25
}

/// A conversation whose turns have given lengths, and whose tool has a delay; without a tool all its tokens are one turn.
struct Scripted {
    place: usize,
    tool: Option<Duration>,
    ids: Vec<u32>,
    turns: usize,
}

impl AgentLoop for Scripted {
    fn next(&mut self, turn: Option<Response>) -> anyhow::Result<NextAction> {
        let Some(delay) = self.tool else {
            let all = (0..TURNS).map(|turn| turn_tokens(self.place, turn)).sum();
            return Ok(match turn {
                None => NextAction::Generate(SampleRequest::new(self.ids.clone(), all)),
                Some(_) => NextAction::End,
            });
        };
        if let Some(turn) = turn {
            self.ids.extend(turn.ids);
            self.turns += 1;
            if self.turns == TURNS {
                return Ok(NextAction::End);
            }
            std::thread::sleep(delay);
            self.ids.extend((0..ANSWER_TOKENS).map(|j| ((self.place * 31 + self.turns * 17 + j * 7919) % 50_000) as u32));
        }
        Ok(NextAction::Generate(SampleRequest::new(self.ids.clone(), turn_tokens(self.place, self.turns))))
    }

    fn finish(self: Box<Self>) -> Episode {
        Episode {
            prompt: Vec::new(),
            ids: self.ids,
            sampled: Vec::new(),
            log_probs: Vec::new(),
            rollout_log_probs: Vec::new(),
            finish: Finish::Stop,
            end: EndReason::Answer,
            messages: Vec::new(),
            prompt_messages: 0,
            tools: Vec::new(),
            tokens_only: false,
            assistant_turns: self.turns,
            user_turns: 0,
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

/// Seconds for all conversations.
fn seconds(model: &CausalLm, answers: bool, tool: Option<Duration>) -> f64 {
    let answer_tokens = if answers && tool.is_none() { (TURNS - 1) * ANSWER_TOKENS } else { 0 };
    let prompt =
        |place: usize| (0..PROMPT_TOKENS + answer_tokens).map(|j| ((place * 7919 + j * 104_729) % 50_000) as u32).collect();
    let conversation = |place| Box::new(Scripted { place, tool, ids: prompt(place), turns: 0 }) as Box<dyn AgentLoop>;
    let common = SharedOptions {
        sampling: Sampling::default(),
        stream: &|conversation, turn| Stream::new(1, "bench", &[conversation as u64, turn as u64]),
        finished: &|_, _| (),
        waiting: &|| (),
    };
    let settings = TurnSettings { eos: &[], stops: None, rules: None, progress: None, token: None };
    let mut engine = NativeEngine { max_num_seqs: 1024, max_num_batched_tokens: 8192, max_model_len: None, enforce_eager: false };
    let started = Instant::now();
    Conversations::run((0..CONVERSATIONS).map(conversation).collect(), common, |turns| engine.converse(model, &settings, turns))
        .expect("conversations");
    started.elapsed().as_secs_f64()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes/gsm8k/qwen2_small");
    let model = CausalLm::load(&folder, Init::Random { seed: 1 }, &Device::flex()).expect("a model of the repository");
    let tools = [(false, None), (true, None), (true, Some(0)), (true, Some(10)), (true, Some(200))];
    let mut times = tools.map(|_| Vec::new());
    for _ in 0..REPEATS {
        for ((answers, tool), times) in tools.iter().zip(&mut times) {
            times.push(seconds(&model, *answers, tool.map(Duration::from_millis)));
        }
    }
    let tokens: usize = (0..CONVERSATIONS).flat_map(|place| (0..TURNS).map(move |turn| turn_tokens(place, turn))).sum();
    let [_, plain, ..] = times.clone().map(median);
    let mut table =
        "| tool | sampled tokens/s | share of the same tokens without tools | if all waited at once |\n|---|---|---|---|\n"
            .to_owned();
    for ((answers, tool), times) in tools.iter().zip(times) {
        let (time, waiting) = (median(times), tool.unwrap_or(0) as f64 / 1e3 * (TURNS - 1) as f64);
        let name = match tool {
            None if *answers => "none, answers in the prompt".to_owned(),
            None => "none".to_owned(),
            Some(milliseconds) => format!("{milliseconds} ms"),
        };
        let (speed, share, possible) = (tokens as f64 / time, plain / time, plain / (plain + waiting));
        table += &format!("| {name} | {speed:.0} | {:.1} % | {:.1} % |\n", 100.0 * share, 100.0 * possible);
    }
    std::io::stdout().write_all(table.as_bytes()).expect("a place to print to");
}
