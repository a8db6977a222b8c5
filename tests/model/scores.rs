//! Scores of prompts and of sampled tokens: the log-probabilities of transformers, of a training pass and of generation, with
//! ranks and the most probable tokens.

use std::collections::BTreeMap;
use std::sync::Mutex;

use burnish::model::{CausalLm, Init, Sequence};
use burnish::rollout::{
    Arrival, Engine, Logprobs, NativeEngine, Response, Sampling, TokenScores, TurnRequest, TurnScores, TurnSettings, Turns,
    WantedScores,
};
use burnish::util::rng::Stream;

use crate::device::device;
use crate::transformers::{close, floats, models, sequences};

const ENGINE: NativeEngine =
    NativeEngine { max_num_seqs: 4, max_num_batched_tokens: 16, max_model_len: None, enforce_eager: false };
const TOP: usize = 3;
const SAMPLED: usize = 4;

/// A turn that has ended, with the scores that it asked for.
type EndedTurn = (Option<TurnScores>, Response);

/// The turns of a sequence, one after another, with what came of them.
struct ScoredTurns {
    waiting: Mutex<Vec<(usize, Vec<TurnRequest>)>>,
    arrivals: Mutex<Vec<Arrival>>,
    ended: Mutex<BTreeMap<usize, Vec<EndedTurn>>>,
    scored: Mutex<BTreeMap<usize, TurnScores>>,
}

impl ScoredTurns {
    /// Runs the turns of each sequence, and returns their scores and responses.
    fn run(model: &CausalLm, turns: Vec<Vec<TurnRequest>>) -> Vec<Vec<EndedTurn>> {
        let all = Self {
            waiting: turns.into_iter().enumerate().collect::<Vec<_>>().into(),
            arrivals: Mutex::default(),
            ended: Mutex::default(),
            scored: Mutex::default(),
        };
        let count = all.waiting.lock().unwrap().len();
        (0..count).for_each(|sequence| all.next(sequence));
        let settings = TurnSettings { eos: &[], stops: None, rules: None, progress: None, token: None };
        { ENGINE }.converse(model, &settings, &all).unwrap();
        all.ended.into_inner().unwrap().into_values().collect()
    }

    fn next(&self, sequence: usize) {
        let turns = &mut self.waiting.lock().unwrap()[sequence].1;
        let turn = if turns.is_empty() { None } else { Some(turns.remove(0)) };
        self.arrivals.lock().unwrap().push(Arrival { sequence, turn });
    }
}

impl Turns for ScoredTurns {
    fn scored(&self, sequence: usize, scores: TurnScores) {
        assert!(self.scored.lock().unwrap().insert(sequence, scores).is_none());
    }

    fn ended(&self, sequence: usize, turn: Response) {
        let scores = self.scored.lock().unwrap().remove(&sequence);
        self.ended.lock().unwrap().entry(sequence).or_default().push((scores, turn));
        self.next(sequence);
    }

    fn arrived(&self, _: bool) -> Option<Vec<Arrival>> {
        let arrivals = std::mem::take(&mut *self.arrivals.lock().unwrap());
        (!arrivals.is_empty()).then_some(arrivals).or_else(|| {
            let (ended, waiting) = (self.ended.lock().unwrap(), self.waiting.lock().unwrap());
            let is_over = waiting.iter().all(|(sequence, turns)| turns.is_empty() && ended.contains_key(sequence));
            (!is_over || ended.is_empty()).then(Vec::new)
        })
    }
}

fn turn(ids: &[u32], max_tokens: usize, scores: WantedScores) -> TurnRequest {
    // The scores are those of temperature 1 for every sampling setting.
    let sampling = Sampling { temperature: 0.0, max_tokens, logprobs: Logprobs::Raw, ..Sampling::PLAIN };
    TurnRequest { ids: ids.into(), sampling, scores, stream: Stream::new(1, "scores", &[]), stops: None, cancelled: None }
}

/// Each place has its most probable tokens in order, with the token at its rank.
fn check_top(name: &str, ids: &[u32], scores: &TokenScores) {
    assert_eq!((scores.ranks.len(), scores.top, scores.top_ids.len()), (ids.len(), TOP, ids.len() * TOP), "{name}");
    for (place, (&id, &rank)) in ids.iter().zip(&scores.ranks).enumerate() {
        let top: Vec<(u32, f32)> = scores.top(place, TOP).collect();
        assert!(top.windows(2).all(|pair| pair[0].1 >= pair[1].1), "{name}: {top:?}");
        match top.iter().position(|(other, _)| *other == id) {
            Some(at) => assert_eq!((top[at].1, at as u32 + 1), (scores.log_probs[place], rank), "{name}"),
            None => assert!(rank > TOP as u32 && scores.log_probs[place] <= top[TOP - 1].1, "{name}: rank {rank}"),
        }
    }
}

#[test]
fn scores_are_those_of_transformers_training_and_generation() {
    let wanted = WantedScores { prompt: Some(TOP), sampled: TOP };
    for (name, folder, golden) in models() {
        let model = CausalLm::load(&folder, Init::Pretrained, &device()).unwrap();
        let sequences = sequences(&golden);
        let only = |ids: &Vec<u32>| vec![turn(ids, 0, WantedScores { sampled: 0, ..wanted })];
        let sampled = |ids: &Vec<u32>| vec![turn(ids, SAMPLED, wanted)];
        let unscored = |ids: &Vec<u32>| vec![turn(ids, SAMPLED, WantedScores::default())];
        // A later turn of a kept sequence, whose prompt is scored again.
        let again = |ids: &Vec<u32>| vec![turn(&ids[..2], 1, WantedScores::default()), turn(ids, SAMPLED, wanted)];
        // A later turn of a kept sequence, which samples nothing.
        let none = |ids: &Vec<u32>| vec![turn(&ids[..2], 1, WantedScores::default()), turn(ids, 0, WantedScores::default())];
        let turns = sequences.iter().flat_map(|ids| [only(ids), sampled(ids), unscored(ids), again(ids), none(ids)]).collect();
        let ended = ScoredTurns::run(&model, turns);
        for ((ids, expected), ended) in sequences.iter().zip(golden["sequences"].as_array().unwrap()).zip(ended.chunks(5)) {
            let [only, sampled, unscored, again, none] = ended else { panic!("{name}: {} sequences", ended.len()) };
            let (Some(scores), response) = &only[0] else { panic!("{name} has no scores") };
            let prompt = scores.prompt.as_ref().unwrap();
            assert_eq!((&response.ids, &scores.sampled), (&Vec::new(), &TokenScores::default()));
            close(&format!("{name} prompt"), &prompt.log_probs, &floats(&expected["token_logprobs"]), 1e-4);
            let trained = model.token_stats(&[Sequence::new(&ids[..1], &ids[1..])], 1.0, None);
            close(&format!("{name} training"), &prompt.log_probs, &trained.log_prob, 1e-4);
            check_top(&name, &ids[1..], prompt);
            assert!(none[1].1.ids.is_empty(), "{name}: {:?}", none[1].1.ids);
            let (of_unscored, greedy) = &unscored[0];
            assert!(of_unscored.is_none());
            for (scores, response) in [&sampled[0], &again[1]] {
                let scores = scores.as_ref().unwrap();
                close(&format!("{name} prompt"), &scores.prompt.as_ref().unwrap().log_probs, &prompt.log_probs, 1e-5);
                assert_eq!(response.ids, greedy.ids, "{name}: scores change no response");
                close(&format!("{name} generation"), &scores.sampled.log_probs, &response.rollout_log_probs, 1e-5);
                assert!(scores.sampled.ranks.iter().all(|rank| *rank == 1), "{name}: greedy tokens");
                check_top(&name, &response.ids, &scores.sampled);
            }
        }
    }
}
