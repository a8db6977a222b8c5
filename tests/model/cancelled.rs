//! Cancelled turns end before their next token, whether they are being sampled, wait for a place, or continue a sequence.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use burnish::model::{CausalLm, Init};
use burnish::rollout::{Arrival, Engine, NativeEngine, Response, Sampling, TurnRequest, TurnSettings, Turns, WantedScores};
use burnish::util::rng::Stream;

use crate::device::device;

/// Number of tokens of a response with a waiting client.
const LONG: usize = 40;

/// Sequences that arrive at once, and again when they continue.
struct Clients {
    arrivals: Mutex<Vec<Arrival>>,
    /// The lengths of the turns of each sequence.
    ended: Mutex<BTreeMap<usize, Vec<usize>>>,
    turns: usize,
    left: Vec<Arc<AtomicBool>>,
}

impl Clients {
    fn turn(&self, sequence: usize, ids: Vec<u32>) -> Arrival {
        let sampling = Sampling { max_tokens: LONG, min_tokens: LONG, ..Sampling::PLAIN };
        let (stream, cancelled) = (Stream::new(1, "cancelled", &[sequence as u64]), Some(self.left[sequence].clone()));
        let turn = TurnRequest { ids: ids.into(), sampling, scores: WantedScores::default(), stream, stops: None, cancelled };
        Arrival { sequence, turn: Some(turn) }
    }
}

impl Turns for Clients {
    fn ended(&self, sequence: usize, turn: Response) {
        let mut ended = self.ended.lock().unwrap();
        let turns = ended.entry(sequence).or_default();
        turns.push(turn.ids.len());
        let again = turns.len() < self.turns;
        // It continues; sequence 3 leaves before it does.
        self.left[3].fetch_or(sequence == 3, Ordering::Relaxed);
        let next = if again { self.turn(sequence, vec![1; 5]) } else { Arrival { sequence, turn: None } };
        self.arrivals.lock().unwrap().push(next);
    }

    fn arrived(&self, _: bool) -> Option<Vec<Arrival>> {
        let over = self.ended.lock().unwrap().values().filter(|turns| turns.len() >= self.turns).count();
        let arrivals = std::mem::take(&mut *self.arrivals.lock().unwrap());
        (over < self.left.len() || !arrivals.is_empty()).then_some(arrivals)
    }
}

#[test]
fn nothing_is_sampled_for_who_has_left() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/models/qwen2");
    let model = CausalLm::load(&folder, Init::Pretrained, &device()).unwrap();
    // 0 leaves after some tokens, 1 before its first, 2 stays, 3 leaves before its second turn, 4 waits for a place and leaves.
    let left: Vec<_> = (0..5).map(|_| Arc::new(AtomicBool::new(false))).collect();
    left[1].store(true, Ordering::Relaxed);
    let clients = Clients { arrivals: Mutex::default(), ended: Mutex::default(), turns: 2, left: left.clone() };
    clients.arrivals.lock().unwrap().extend((0..5).map(|i| clients.turn(i, vec![2 + i as u32; 3])));
    let counts = Mutex::new(BTreeMap::<usize, usize>::new());
    let token = |sequence: usize, _: u32| {
        let mut counts = counts.lock().unwrap();
        *counts.entry(sequence).or_default() += 1;
        if sequence == 0 && counts[&0] == 3 {
            left[0].store(true, Ordering::Relaxed);
            left[4].store(true, Ordering::Relaxed);
        }
    };
    let settings = TurnSettings { eos: &[0], stops: None, rules: None, progress: None, token: Some(&token) };
    let mut engine = NativeEngine { max_num_seqs: 3, max_num_batched_tokens: 64, max_model_len: None, enforce_eager: false };
    engine.converse(&model, &settings, &clients).unwrap();
    let ended = clients.ended.into_inner().unwrap();
    assert!((3..6).contains(&ended[&0][0]), "{ended:?}");
    assert_eq!((&ended[&1][..], &ended[&2][..], &ended[&4][..]), (&[0, 0][..], &[LONG, LONG][..], &[0, 0][..]));
    assert_eq!((ended[&0][1], &ended[&3][..]), (0, &[LONG, 0][..]));
}
