//! The meeting with which every call begins: rank 0 receives a message from each rank that has reached the call, and then
//! releases all.

use std::time::Duration;

use super::message::{Call, RankMessage, ReachedCall};
use super::others::OtherRanks;
use super::waiting::WaitFor;
use super::world::World;
use burnish_util::terminal;

/// Time that a failed rank waits for others before it ends them: they may have failed too, and have messages.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// Largest number of bytes of the final message of a rank other than 0.
const LONGEST: usize = 4096;

impl OtherRanks {
    /// Waits until all ranks have reached this call. If they do not, ends the job.
    pub(crate) fn meet(&mut self, world: &World, call: Call) -> ReachedCall {
        let reached = ReachedCall { number: self.calls, call };
        self.calls += 1;
        if world.rank == 0 {
            self.lead(world, &reached)
        } else {
            self.follow(world, &reached)
        }
        reached
    }

    fn lead(&mut self, world: &World, own: &ReachedCall) {
        let start = self.clock.look();
        loop {
            self.hear(world);
            self.judge(world, own);
            if self.peers(world).all(|(_, peer)| peer.arrived.is_some()) {
                break;
            }
            let waited = self.clock.look() - start;
            if let Some((code, message)) = own.failure().filter(|_| waited > LAST_WORDS.min(self.patience)) {
                self.fail(world, code, message);
            }
            self.check_missing(world, own, start);
            self.beat(world);
            WaitFor::Others.pause(waited);
        }
        if let Call::End { message, .. } = &own.call {
            self.say_messages_of_others(world, message);
        }
        for rank in 1..world.size {
            let (arrival, _) = self.health[rank].arrived.take().expect("all have come");
            self.tell(world, rank, &RankMessage::Go(arrival.number));
            self.health[rank].last = Some(arrival);
        }
        let start = self.clock.look();
        while !self.has_sent(world) {
            let waited = self.clock.look() - start;
            if waited > self.patience {
                world.lost(&format!("rank 0 cannot reach all others at {own}"));
            }
            WaitFor::Data.pause(waited);
        }
    }

    fn follow(&mut self, world: &World, own: &ReachedCall) {
        let start = self.clock.look();
        let sent_call = match &own.call {
            Call::End { code, message } => Call::End { code: *code, message: clipped(message).to_owned() },
            call => call.clone(),
        };
        self.tell(world, 0, &RankMessage::Arrived(ReachedCall { call: sent_call, ..*own }));
        loop {
            self.hear(world);
            self.has_sent(world);
            if self.released == Some(own.number) {
                return;
            }
            let waited = self.clock.look() - start;
            let silence = self.silence(&self.health[0], start);
            if silence > self.patience + turn(world.rank) {
                let (rank, seconds) = (world.rank, silence.as_secs());
                world.lost(&format!(
                    "rank 0 has not replied to rank {rank} at {own} and has shown no sign of work for {seconds} s"
                ));
            }
            WaitFor::Others.pause(waited);
        }
    }

    /// Ends the job if a rank has reached another call; reports the failure of a rank.
    fn judge(&self, world: &World, own: &ReachedCall) {
        let arrived = self.peers(world).filter_map(|(rank, peer)| Some((rank, &peer.arrived.as_ref()?.0)));
        let others: Vec<(usize, &ReachedCall)> = arrived.filter(|(_, other)| !other.agrees(own)).collect();
        if others.is_empty() {
            return;
        }
        let failed = others.iter().find_map(|(rank, other)| Some((rank, other.failure()?)));
        if let Some((rank, (code, message))) = failed {
            self.fail(world, code, &named(&[*rank], message));
        }
        if let Some((code, message)) = own.failure() {
            self.fail(world, code, message);
        }
        let others: Vec<String> = others.iter().map(|(rank, other)| format!("rank {rank} is at {other}")).collect();
        world.lost(&format!("the ranks do not make the same calls: rank 0 is at {own}, {}", others.join(", ")));
    }

    /// Ends the job if another rank has failed while rank 0 is working and does not reach a call.
    pub(crate) fn check_failed(&self, world: &World) {
        for (rank, peer) in self.peers(world) {
            let Some((arrival, since)) = &peer.arrived else { continue };
            if let Some((code, message)) = arrival.failure().filter(|_| since.elapsed() > LAST_WORDS) {
                self.fail(world, code, &named(&[rank], message));
            }
        }
    }

    /// Ends the job if a rank gave no sign for longer than the patience.
    fn check_missing(&self, world: &World, own: &ReachedCall, start: Duration) {
        let is_missing = |peer| self.silence(peer, start) > self.patience;
        let missing: Vec<_> = self.peers(world).filter(|(_, peer)| peer.arrived.is_none() && is_missing(peer)).collect();
        let Some((_, first)) = missing.first() else { return };
        let ranks: Vec<usize> = missing.iter().map(|(rank, _)| *rank).collect();
        let before =
            first.last.as_ref().map_or("there was no call before".to_owned(), |last| format!("the call before was {last}"));
        let have = if ranks.len() == 1 { "has" } else { "have" };
        world.lost(&format!(
            "{} {} not reached {own} and {} shown no sign of work for {} s; {before}",
            ranks_named(&ranks),
            have,
            have,
            self.silence(first, start).as_secs()
        ));
    }

    /// Prints why the job fails, and ends it.
    fn fail(&self, world: &World, code: u8, message: &str) -> ! {
        terminal::say(&format!("{message}\n"));
        world.abort(code)
    }

    /// Prints the final messages of other ranks that differ from rank 0's, each once.
    fn say_messages_of_others(&self, world: &World, own: &str) {
        let mut messages: Vec<(&str, Vec<usize>)> = vec![(clipped(own), Vec::new())];
        for (rank, peer) in self.peers(world) {
            let Some((ReachedCall { call: Call::End { message, .. }, .. }, _)) = &peer.arrived else { continue };
            match messages.iter_mut().find(|(known, _)| known == message) {
                Some((_, ranks)) => ranks.push(rank),
                None => messages.push((message, vec![rank])),
            }
        }
        for (message, ranks) in messages.iter().skip(1).filter(|(message, _)| !message.is_empty()) {
            terminal::say(&format!("{}\n", named(ranks, message)));
        }
    }
}

/// Returns how much longer than the patience a rank waits. Rank 0 knows most, so it reports first. Then the other ranks follow in
/// their order, and the first living one ends the job.
pub(super) fn turn(rank: usize) -> Duration {
    Duration::from_secs(if rank == 0 { 0 } else { 5 + (rank as u64 - 1).min(30) })
}

/// Adds the ranks' numbers to their message.
fn named(ranks: &[usize], message: &str) -> String {
    let (kind, text) = message.split_at(if message.starts_with("error: ") { "error: ".len() } else { 0 });
    format!("{kind}{}: {text}", ranks_named(ranks))
}

fn ranks_named(ranks: &[usize]) -> String {
    let numbers: Vec<String> = ranks.iter().map(usize::to_string).collect();
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, numbers.join(", "))
}

/// Returns the beginning of a message, up to the part that is sent.
fn clipped(message: &str) -> &str {
    &message[..message.floor_char_boundary(LONGEST)]
}
