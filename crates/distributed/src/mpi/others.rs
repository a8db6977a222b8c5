//! A rank's knowledge of the other ranks, and the messages by which they know that it is working.

use std::time::{Duration, Instant};

use super::message::{RankMessage, ReachedCall};
use super::waiting::{WaitClock, WaitFor};
use super::world::{Posted, World};
use crate::wire::{decoded, encoded};

/// Longest time between two signs of work.
const BEAT: Duration = Duration::from_secs(10);

/// A rank's knowledge of the other ranks: rank 0 knows all ranks, and every other rank knows rank 0.
pub(super) struct OtherRanks {
    pub clock: WaitClock,
    /// Time to wait for a silent rank.
    pub patience: Duration,
    /// Number of calls made so far.
    pub calls: u64,
    /// Number of the last call for which rank 0 released this rank.
    pub(crate) released: Option<u64>,
    /// Peers by rank; the entry of this rank itself is unused.
    pub health: Vec<RankHealth>,
    beaten: Instant,
    posted: Vec<(usize, Posted)>,
}

/// Knowledge of one rank.
#[derive(Clone, Default)]
pub(super) struct RankHealth {
    /// Time of its last message, by the clock of waiting.
    last_heard: Duration,
    /// Call that it waits in, and the time it arrived there.
    pub arrived: Option<(ReachedCall, Instant)>,
    /// Call before the current one.
    pub last: Option<ReachedCall>,
}

impl OtherRanks {
    pub(super) fn new(world: &World) -> Self {
        Self {
            clock: WaitClock::new(),
            patience: Duration::from_secs(600),
            calls: 0,
            released: None,
            health: vec![RankHealth::default(); if world.rank == 0 { world.size } else { 1 }],
            beaten: Instant::now(),
            posted: Vec::new(),
        }
    }

    /// Returns the ranks that this rank knows, without itself.
    pub(super) fn peers(&self, world: &World) -> impl Iterator<Item = (usize, &RankHealth)> {
        let own = world.rank;
        self.health.iter().enumerate().filter(move |(rank, _)| *rank != own)
    }

    /// Returns the time that this rank has waited since `start` without a sign of another one.
    pub(crate) fn silence(&self, peer: &RankHealth, start: Duration) -> Duration {
        self.clock.last() - start.max(peer.last_heard)
    }

    /// Sends a message to a rank.
    pub(super) fn tell(&mut self, world: &World, to: usize, message: &RankMessage) {
        self.posted.push((to, world.post(to, encoded(message))));
    }

    /// Returns true once all messages have left.
    pub(crate) fn has_sent(&mut self, world: &World) -> bool {
        self.posted.retain_mut(|(_, posted)| !posted.has_left(world));
        self.posted.is_empty()
    }

    /// Reads the messages that have arrived.
    pub(super) fn hear(&mut self, world: &World) {
        let Self { clock, patience, .. } = self;
        let start = clock.look();
        let mut wait = |from: usize| {
            let waited = clock.look() - start;
            if waited > *patience {
                world.lost(&format!("rank {from} has stopped in the middle of a message to rank {}", world.rank));
            }
            WaitFor::Data.pause(waited);
        };
        let mut messages = Vec::new();
        while let Some((from, bytes)) = world.next(&mut wait) {
            messages.push((from, decoded(&bytes)));
        }
        for (from, message) in messages {
            self.health[from].last_heard = self.clock.last();
            match message {
                RankMessage::Beat => {}
                RankMessage::Arrived(arrival) => self.health[from].arrived = Some((arrival, Instant::now())),
                RankMessage::Go(call) => self.released = Some(call),
            }
        }
    }

    /// Tells the ranks that may wait for this rank that it is working, unless it just did, and reads their messages.
    pub(super) fn beat(&mut self, world: &World) {
        if self.beaten.elapsed() < BEAT.min(self.patience / 4) {
            return;
        }
        self.beaten = Instant::now();
        self.hear(world);
        self.has_sent(world);
        let others: Vec<usize> = self.peers(world).map(|(rank, _)| rank).collect();
        // A rank that does not take the last message gets no further one.
        for to in others {
            if !self.posted.iter().any(|(other, _)| *other == to) {
                self.tell(world, to, &RankMessage::Beat);
            }
        }
    }
}
