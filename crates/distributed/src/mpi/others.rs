//! What a rank hears of the others, and how it tells them that it is at work.

use std::time::{Duration, Instant};

use super::message::{Arrival, Message};
use super::waiting::{Clock, For};
use super::world::{Posted, World};
use crate::wire::{decoded, encoded};

/// The time between two signs of work at most.
const BEAT: Duration = Duration::from_secs(10);

/// What a rank knows of the others: rank 0 of all, and each of the others of rank 0.
pub struct Others {
    pub clock: Clock,
    /// How long to wait for a rank of which nothing is heard.
    pub patience: Duration,
    /// The calls made so far.
    pub calls: u64,
    /// The number of the last call that rank 0 let this rank go on with.
    pub released: Option<u64>,
    /// By rank; of this rank itself there is nothing to know.
    pub known: Vec<Peer>,
    beaten: Instant,
    posted: Vec<(usize, Posted)>,
}

/// What is known of a rank.
#[derive(Clone, Default)]
pub struct Peer {
    /// When it was last heard of, by the clock of waiting.
    heard: Duration,
    /// The call that it waits in, and since when.
    pub arrived: Option<(Arrival, Instant)>,
    /// The call before.
    pub last: Option<Arrival>,
}

impl Others {
    pub fn new(world: &World) -> Self {
        Self {
            clock: Clock::new(),
            patience: Duration::from_secs(600),
            calls: 0,
            released: None,
            known: vec![Peer::default(); if world.rank == 0 { world.size } else { 1 }],
            beaten: Instant::now(),
            posted: Vec::new(),
        }
    }

    /// The ranks that this one knows of, without itself.
    pub fn peers(&self, world: &World) -> impl Iterator<Item = (usize, &Peer)> {
        let own = world.rank;
        self.known.iter().enumerate().filter(move |(rank, _)| *rank != own)
    }

    /// The time that this rank has waited since `start` without a sign of another one.
    pub fn silence(&self, peer: &Peer, start: Duration) -> Duration {
        self.clock.last() - start.max(peer.heard)
    }

    /// Sends a message to a rank.
    pub fn tell(&mut self, world: &World, to: usize, message: &Message) {
        self.posted.push((to, world.post(to, encoded(message))));
    }

    /// True once all messages have left.
    pub fn has_told(&mut self, world: &World) -> bool {
        self.posted.retain_mut(|(_, posted)| !posted.has_left(world));
        self.posted.is_empty()
    }

    /// Reads the messages that have come.
    pub fn hear(&mut self, world: &World) {
        let Self { clock, patience, .. } = self;
        let start = clock.look();
        let mut wait = |from: usize| {
            let waited = clock.look() - start;
            if waited > *patience {
                world.lost(&format!("rank {from} has stopped in the middle of a message to rank {}", world.rank));
            }
            For::Data.pause(waited);
        };
        let mut heard = Vec::new();
        while let Some((from, bytes)) = world.next(&mut wait) {
            heard.push((from, decoded(&bytes)));
        }
        for (from, message) in heard {
            self.known[from].heard = self.clock.last();
            match message {
                Message::Beat => {}
                Message::Arrived(arrival) => self.known[from].arrived = Some((arrival, Instant::now())),
                Message::Go(call) => self.released = Some(call),
            }
        }
    }

    /// Tells those who may wait for this rank that it is at work, unless they have just heard so, and hears what they say.
    pub fn beat(&mut self, world: &World) {
        if self.beaten.elapsed() < BEAT.min(self.patience / 4) {
            return;
        }
        self.beaten = Instant::now();
        self.hear(world);
        self.has_told(world);
        let others: Vec<usize> = self.peers(world).map(|(rank, _)| rank).collect();
        // A rank that does not take the last message is not sent another one.
        for to in others {
            if !self.posted.iter().any(|(other, _)| *other == to) {
                self.tell(world, to, &Message::Beat);
            }
        }
    }
}
