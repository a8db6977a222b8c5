//! The connection of requests and engine: waiting sequences and their clients.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use burnish_rollout::{Arrival, Response, Sampling, TurnRequest, TurnScores, TurnStops, Turns, WantedScores};
use burnish_util::rng::Stream;

/// The interval at which an idle engine checks for a shutdown.
const IDLE: Duration = Duration::from_millis(500);

/// An event of a sequence.
#[derive(Clone, Debug)]
pub(crate) enum SequenceEvent {
    /// A sampled token; only for streaming clients.
    Token(u32),
    /// The scores that the sequence asked for, just before its end.
    Scores(Box<TurnScores>),
    End(Response),
}

/// A sequence to sample.
pub(crate) struct SequenceRequest {
    pub ids: Arc<[u32]>,
    pub sampling: Sampling,
    pub scores: WantedScores,
    pub stream: Stream,
    pub stop: Option<TurnStops>,
}

/// The sequences of a request, and their events with the index of each sequence. Dropping the ticket ends the sequences.
pub(crate) struct Ticket {
    events: UnboundedReceiver<(usize, SequenceEvent)>,
    dropped: Arc<AtomicBool>,
}

impl Ticket {
    /// Returns the next event; `None` if the engine stopped or every sequence has ended.
    pub(crate) async fn next(&mut self) -> Option<(usize, SequenceEvent)> {
        self.events.recv().await
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Relaxed);
    }
}

/// The receiver of a sequence.
struct Client {
    events: UnboundedSender<(usize, SequenceEvent)>,
    index: usize,
    streams: bool,
    /// The conversation for which the engine keeps the sequence.
    keep: Option<String>,
}

#[derive(Default)]
struct State {
    arrivals: Vec<Arrival>,
    clients: HashMap<usize, Client>,
    /// The kept sequences and the keys of their conversations, the oldest first.
    kept: VecDeque<(String, usize)>,
    next: usize,
    closed: bool,
}

/// The connection of requests and engine.
pub(crate) struct RequestHub {
    state: Mutex<State>,
    news: Condvar,
    /// The number of sequences that the engine samples.
    running: AtomicUsize,
    /// The maximum number of sequences that wait or are sampled.
    max: usize,
    /// The maximum number of sequences that the engine keeps between two requests of a conversation.
    max_kept: usize,
}

impl RequestHub {
    pub(crate) fn new(max: usize, max_kept: usize) -> Self {
        Self { state: Mutex::default(), news: Condvar::new(), running: AtomicUsize::new(0), max, max_kept }
    }

    /// Submits sequences. `streams`: true to receive every token at once. `conversation`: a key under which a single sequence is
    /// kept, so that the next request of that conversation reuses its keys and values.
    ///
    /// Returns `None` if too many sequences wait or the engine stopped.
    pub(crate) fn submit(&self, sequences: Vec<SequenceRequest>, streams: bool, conversation: Option<&str>) -> Option<Ticket> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.closed || state.clients.len().saturating_add(sequences.len()) > self.max {
            return None;
        }
        let (events, receive) = unbounded_channel();
        let dropped = Arc::new(AtomicBool::new(false));
        let keep = conversation.filter(|_| sequences.len() == 1 && self.max_kept > 0);
        for (index, SequenceRequest { ids, sampling, scores, stream, stop }) in sequences.into_iter().enumerate() {
            let known = keep.and_then(|key| state.kept.iter().position(|(kept, _)| kept == key));
            let sequence = match known.and_then(|at| state.kept.remove(at)) {
                Some((_, sequence)) => sequence,
                None => {
                    state.next += 1;
                    state.next - 1
                }
            };
            let turn = TurnRequest { ids, sampling, scores, stream, stops: stop, cancelled: Some(dropped.clone()) };
            state.arrivals.push(Arrival { sequence, turn: Some(turn) });
            state.clients.insert(sequence, Client { events: events.clone(), index, streams, keep: keep.map(str::to_owned) });
        }
        drop(guard);
        self.news.notify_one();
        Some(Ticket { events: receive, dropped })
    }

    /// Returns the number of sequences that wait or are sampled.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().clients.len()
    }

    /// Returns the numbers of sequences that are sampled, and that wait for it.
    pub(crate) fn running_and_waiting(&self) -> (usize, usize) {
        let (running, all) = (self.running.load(Ordering::Relaxed), self.waiting());
        (running.min(all), all.saturating_sub(running))
    }

    /// Returns true if the engine has stopped.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Reports a new token of a sequence.
    pub(crate) fn token(&self, sequence: usize, token: u32) {
        let state = self.lock();
        if let Some(client) = state.clients.get(&sequence).filter(|client| client.streams) {
            // A client that has left is ignored.
            _ = client.events.send((client.index, SequenceEvent::Token(token)));
        }
    }

    /// Refuses further requests, and drops the waiting ones.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.clients.clear();
        drop(state);
        self.news.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turns for RequestHub {
    fn running(&self, count: usize) {
        self.running.store(count, Ordering::Relaxed);
    }

    fn scored(&self, sequence: usize, scores: TurnScores) {
        let state = self.lock();
        if let Some(client) = state.clients.get(&sequence) {
            // A client that has left is ignored.
            _ = client.events.send((client.index, SequenceEvent::Scores(Box::new(scores))));
        }
    }

    fn ended(&self, sequence: usize, turn: Response) {
        let mut state = self.lock();
        let client = state.clients.remove(&sequence);
        let keep = client.as_ref().and_then(|client| client.keep.clone());
        // Two concurrent requests of a conversation leave an older sequence, which ends here.
        let older = keep.as_ref().and_then(|key| state.kept.iter().position(|(kept, _)| kept == key));
        let mut over: Vec<usize> = older.and_then(|at| state.kept.remove(at)).map(|(_, sequence)| sequence).into_iter().collect();
        match keep {
            Some(key) => state.kept.push_back((key, sequence)),
            None => over.push(sequence),
        }
        while state.kept.len() > self.max_kept
            && let Some((_, oldest)) = state.kept.pop_front()
        {
            over.push(oldest);
        }
        state.arrivals.extend(over.into_iter().map(|sequence| Arrival { sequence, turn: None }));
        if let Some(client) = client {
            _ = client.events.send((client.index, SequenceEvent::End(turn)));
        }
    }

    fn arrived(&self, wait: bool) -> Option<Vec<Arrival>> {
        let mut state = self.lock();
        if wait && state.arrivals.is_empty() && !state.closed {
            state = self.news.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.closed { None } else { Some(std::mem::take(&mut state.arrivals)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnish_rollout::Finish;

    fn sequences(ids: &[u32]) -> SequenceRequest {
        SequenceRequest {
            ids: ids.into(),
            sampling: Sampling::PLAIN,
            scores: WantedScores::default(),
            stream: Stream::new(1, "test", &[]),
            stop: None,
        }
    }

    fn response() -> Response {
        Response { ids: vec![7], log_probs: vec![0.0], rollout_log_probs: vec![0.0], finish: Finish::Stop }
    }

    /// Returns the indices of sequences with a turn, and of ended sequences.
    fn arrived(hub: &RequestHub) -> (Vec<usize>, Vec<usize>) {
        let arrivals = hub.arrived(false).unwrap();
        let (turns, over): (Vec<_>, Vec<_>) = arrivals.iter().partition(|arrival| arrival.turn.is_some());
        let numbers = |arrivals: Vec<&Arrival>| arrivals.iter().map(|arrival| arrival.sequence).collect();
        (numbers(turns), numbers(over))
    }

    #[test]
    fn a_conversation_keeps_its_sequence() {
        let hub = RequestHub::new(4, 1);
        let mut first = hub.submit(vec![sequences(&[1])], true, Some("a")).unwrap();
        let _second = hub.submit(vec![sequences(&[1]), sequences(&[1])], false, Some("a")).unwrap();
        assert!(hub.submit(vec![sequences(&[1]), sequences(&[1])], false, None).is_none(), "four at most");
        assert_eq!(arrived(&hub), (vec![0, 1, 2], vec![]));
        for sequence in 0..3 {
            hub.token(sequence, 7);
            hub.ended(sequence, response());
        }
        assert_eq!(arrived(&hub), (vec![], vec![1, 2]));
        assert!(matches!(first.events.try_recv(), Ok((0, SequenceEvent::Token(7)))));
        assert!(matches!(first.events.try_recv(), Ok((0, SequenceEvent::End(_)))));
        assert!(first.events.try_recv().is_err());
        // The sequence continues; another conversation replaces it when it ends.
        let _again = hub.submit(vec![sequences(&[1, 7, 2])], false, Some("a")).unwrap();
        assert_eq!(arrived(&hub), (vec![0], vec![]));
        hub.ended(0, response());
        let _other = hub.submit(vec![sequences(&[1])], false, Some("b")).unwrap();
        hub.ended(3, response());
        assert_eq!(arrived(&hub), (vec![3], vec![0]));
        assert_eq!(hub.waiting(), 0);
    }

    #[test]
    fn who_leaves_ends_the_sequence() {
        let hub = RequestHub::new(4, 0);
        let ticket = hub.submit(vec![sequences(&[1])], false, None).unwrap();
        let turn = hub.arrived(true).unwrap()[0].turn.clone().unwrap();
        assert!(!turn.is_cancelled());
        drop(ticket);
        assert!(turn.is_cancelled());
        let mut waits = hub.submit(vec![sequences(&[1])], false, None).unwrap();
        hub.close();
        assert!(waits.events.try_recv().is_err() && hub.arrived(true).is_none());
        assert!(hub.submit(vec![sequences(&[1])], false, None).is_none());
    }
}
