//! Data transfer of a call, once all ranks have arrived at it.

use std::time::Duration;

use super::meet::turn;
use super::message::ReachedCall;
use super::others::OtherRanks;
use super::waiting::WaitFor;
use super::world::{Parts, World};

/// Bytes in transit at a time, to and from this rank.
const WINDOW: usize = 256 << 20;

impl OtherRanks {
    /// Sends each rank its part of `send`, and receives one from each; the parts have any size. `send(rank)` returns the bytes
    /// for a rank.
    ///
    /// Ranks are paired in a rotation, so that no rank receives from all others at once. They wait for a window of steps at a
    /// time. No two ranks wait for each other: the rank that is furthest behind waits only for steps that its partners have
    /// begun.
    pub(crate) fn pairwise<'a>(
        &mut self,
        world: &'a World,
        current: &ReachedCall,
        send: impl Fn(usize) -> &'a [u8],
        received: &'a mut [u8],
        received_counts: &[usize],
    ) {
        assert_eq!(received.len(), received_counts.iter().sum::<usize>(), "the bytes that are received");
        let mut rest = received;
        let split = |count: &usize| Some(rest.split_off_mut(..*count).expect("the bytes of a rank"));
        let mut places: Vec<Option<&'a mut [u8]>> = received_counts.iter().map(split).collect();
        places[world.rank].take().expect("a place").copy_from_slice(send(world.rank));
        let (mut parts, mut bytes) = (world.parts(), 0);
        for step in 1..world.size {
            let (to, from) = ((world.rank + step) % world.size, (world.rank + world.size - step) % world.size);
            let (sent, place) = (send(to), places[from].take().expect("a place"));
            bytes += sent.len() + place.len();
            parts.receive(from, place);
            parts.send(to, sent);
            if bytes >= WINDOW {
                self.wait(world, current, &mut parts);
                bytes = 0;
            }
        }
        self.wait(world, current, &mut parts);
    }

    /// Copies the bytes of a rank to all others.
    pub(crate) fn broadcast<'a>(&mut self, world: &'a World, current: &ReachedCall, bytes: &'a mut [u8], root: usize) {
        for window in bytes.chunks_mut(WINDOW) {
            let mut parts = world.parts();
            parts.broadcast(window, root);
            self.wait(world, current, &mut parts);
        }
    }

    /// Waits until data has arrived. If it does not, ends the job.
    fn wait(&mut self, world: &World, current: &ReachedCall, parts: &mut Parts) {
        let start = self.clock.look();
        while !parts.are_done() {
            let waited = self.clock.look() - start;
            if waited > self.patience + turn(world.rank) {
                self.stand_still(world, current, parts, start);
            }
            self.beat(world);
            WaitFor::Data.pause(waited);
        }
    }

    /// Ends the job, and names the ranks that this rank waits for and the ranks that were silent. A waiting rank still sends
    /// signs of life.
    fn stand_still(&mut self, world: &World, current: &ReachedCall, parts: &mut Parts, start: Duration) -> ! {
        self.hear(world);
        let list = |ranks: &[usize]| ranks.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let is_silent = |peer| self.silence(peer, start) > self.patience / 2;
        let silent: Vec<usize> = self.peers(world).filter(|(_, peer)| is_silent(peer)).map(|(rank, _)| rank).collect();
        let silent = match silent.is_empty() {
            true => String::new(),
            false => format!("; rank {} gave no sign of work", list(&silent)),
        };
        let late = list(&parts.late());
        let (rank, seconds) = (world.rank, (self.clock.last() - start).as_secs());
        world.lost(&format!(
            "all ranks have reached {current}, but rank {rank} has waited {seconds} s for rank {late} there{silent}"
        ))
    }
}
