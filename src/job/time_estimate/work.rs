//! Some work, and the time that it takes on a card.

use std::ops::{Add, Mul};

use super::cards::{BANDWIDTH, Card, Kind, LAUNCH, PEAK, REPLAYED};

/// What is counted of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Kernels that are launched one by one.
    pub launches: f64,
    /// Kernels of recorded graphs that are replayed.
    pub replayed: f64,
    /// Bytes that pass between the chip and its memory.
    pub bytes: f64,
    /// Floating-point operations; a multiplication and its addition are two.
    pub flop: f64,
}

/// What the others wait for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    Launches,
    Bandwidth,
    Flop,
}

impl Bound {
    pub fn name(self) -> &'static str {
        match self {
            Self::Launches => "launches",
            Self::Bandwidth => "bandwidth",
            Self::Flop => "FLOP",
        }
    }
}

impl Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            launches: self.launches + other.launches,
            replayed: self.replayed + other.replayed,
            bytes: self.bytes + other.bytes,
            flop: self.flop + other.flop,
        }
    }
}

impl Mul<f64> for Work {
    type Output = Self;

    fn mul(self, times: f64) -> Self {
        Self {
            launches: self.launches * times,
            replayed: self.replayed * times,
            bytes: self.bytes * times,
            flop: self.flop * times,
        }
    }
}

impl Card {
    /// Returns the seconds that some work takes, and what they are spent on: the longest of its launches, of its bytes at the bandwidth
    /// that is reached and of its FLOP at the peak that is reached, as if the other two cost nothing (the roofline model: Williams,
    /// Waterman and Patterson 2009).
    pub fn seconds(&self, work: Work, kind: Kind, bfloat16: bool) -> (f64, Bound) {
        let peak = self.bfloat16.filter(|_| bfloat16).unwrap_or(self.float32);
        let reached = PEAK.iter().find(|(known, _)| *known == kind).map_or(1.0, |(_, share)| *share);
        let times = [
            (work.launches * LAUNCH + work.replayed * REPLAYED, Bound::Launches),
            (work.bytes / (self.bandwidth * BANDWIDTH), Bound::Bandwidth),
            (work.flop / (peak * reached), Bound::Flop),
        ];
        times.into_iter().fold((0.0, Bound::Launches), |longest, time| if time.0 > longest.0 { time } else { longest })
    }
}
