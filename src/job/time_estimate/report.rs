//! The page of an estimate: a row for each card, and a row for each phase on the first of them.

use std::fmt::Write as _;

use super::cards::{CARDS, Card, Kind, MEMORY};
use super::estimate::{Part, TimeEstimate};
use crate::job::memory_estimate::GIB;
use burnish_model::memory::ElementCount;

/// The parts of a step in the order of the table.
const PARTS: &[(Part, &str)] = &[(Part::Generation, "generation"), (Part::Passes, "passes"), (Part::Update, "update")];

const MIB: f64 = (1u64 << 20) as f64;

impl TimeEstimate {
    /// The page. `memory`: bytes that the run holds at its peak.
    pub fn page(&self, memory: ElementCount) -> String {
        let ranks = if self.ranks > 1 { ", in each process, without what they send each other" } else { "" };
        let longest = if self.sampled > 0.0 { ", if every response is as long as allowed" } else { "" };
        let mut page =
            format!("time        of {}{ranks}{longest}: the least that a card needs, estimated and not measured\n", self.of);
        let parts: Vec<_> = PARTS.iter().filter(|(part, _)| self.phases.iter().any(|phase| phase.part == *part)).collect();
        let line = |name: &str, numbers: &str, in_all: &str, parts: Vec<String>, decoding: &str, memory: &str| {
            let parts: String = parts.iter().map(|part| format!("{part:>12}")).collect();
            let decoding = if self.sampled > 0.0 { format!("{decoding:>18}") } else { String::new() };
            format!("  {name:12}{numbers:10}{in_all:>12}{parts}{decoding}  {memory}").trim_end().to_owned() + "\n"
        };
        page +=
            &line("card", "numbers", "in all", parts.iter().map(|(_, name)| (*name).to_owned()).collect(), "decoding", "memory");
        for card in CARDS {
            let decoding = self.sampled / self.seconds(card, |phase| phase.kind == Kind::Decode);
            page += &line(
                card.name,
                if self.is_bfloat16(card) { "bfloat16" } else { "float32" },
                &seconds(self.seconds(card, |_| true)),
                parts.iter().map(|(part, _)| seconds(self.seconds(card, |phase| phase.part == *part))).collect(),
                &format!("{decoding:.0} tokens/s"),
                &fit(card, memory),
            );
        }
        page + &CARDS.first().map_or_else(String::new, |card| self.phases_on(card))
    }

    /// What each phase does and waits for.
    fn phases_on(&self, card: &Card) -> String {
        let mut page = format!(
            "  {:26}{:>10}{:>12}{:>12}{:>12}  bound by\n",
            format!("on {}", card.name),
            "launches",
            "GB",
            "TFLOP",
            "time"
        );
        for phase in &self.phases {
            let work = self.work(phase, card);
            let (time, bound) = card.seconds(work, phase.kind, self.is_bfloat16(card));
            let (gb, tflop, time) = (work.bytes / 1e9, work.flop / 1e12, seconds(time));
            let _ = writeln!(
                page,
                "  {:26}{:>10.0}{gb:>12.1}{tflop:>12.1}{time:>12}  {}",
                phase.name,
                work.launches + work.replayed,
                bound.name()
            );
        }
        page
    }
}

/// Whether a run that holds so many bytes fits into a card.
fn fit(card: &Card, memory: ElementCount) -> String {
    let (needed, has) = (memory as f64 / GIB, card.memory as f64 * MIB / GIB);
    let verdict = if needed <= has * MEMORY { "fits" } else { "does not fit" };
    format!("{verdict}: {needed:.1} of {has:.0} GiB")
}

/// Seconds with three digits or more.
fn seconds(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.1} ms", seconds * 1e3) } else { format!("{seconds:.2} s") }
}
