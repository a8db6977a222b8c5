//! Named random streams: every (seed, purpose, keys) has its own independent ChaCha8 generator.
//!
//! No state is global or shared, so a draw does not depend on earlier draws elsewhere. The tokens of a response do not depend on
//! the rest of the batch, and a resumed run needs only the step and no generator state.
//!
//! **Key derivation.** The words `seed, len(purpose), purpose (little-endian 8-byte words, zero padded), len(keys), keys…` are
//! absorbed into four 64-bit lanes that start from different constants. A lane takes a word by xor, multiplies by its own odd
//! constant and applies SplitMix64's finaliser. Each step is a bijection, so two inputs of equal shape that differ in one word
//! differ in every lane. The four lanes form the 256-bit ChaCha key. This is mixing, not cryptography. The known-answer test
//! below pins it: a change would change every run.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Initial value of each lane: fractional digits of pi, as in Blowfish.
const LANE_START: [u64; 4] = [0x243F_6A88_85A3_08D3, 0x1319_8A2E_0370_7344, 0xA409_3822_299F_31D0, 0x082E_FA98_EC4E_6C89];
/// Multiplier of each lane: the 64-bit primes of xxHash.
const LANE_PRIME: [u64; 4] = [0x9E37_79B1_85EB_CA87, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9, 0x85EB_CA77_C2B2_AE63];

/// A reproducible sequence of random numbers.
#[derive(Clone, Debug)]
pub struct Stream {
    generator: ChaCha8Rng,
    spare_normal: Option<f64>,
}

impl Stream {
    /// Returns the stream of `purpose` (a short constant name, such as `"rollout"`) under `keys` (such as `[step, prompt,
    /// sample]`).
    pub fn new(seed: u64, purpose: &str, keys: &[u64]) -> Self {
        Self { generator: ChaCha8Rng::from_seed(derive_key(seed, purpose, keys)), spare_normal: None }
    }

    /// Returns 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// Returns a uniform float in [0, 1) with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns a standard normal float (Box and Muller). Two uniforms give two normals; the second is kept for the next call.
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare_normal.take() {
            return spare;
        }
        // 1 - u is in (0, 1], so its logarithm is finite.
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare_normal = Some(radius * sin);
        radius * cos
    }

    /// Returns a uniform integer in 0..n without bias, for n > 0 (Lemire 2019, "Fast random integer generation in an interval").
    pub fn below(&mut self, n: usize) -> usize {
        assert!(n > 0, "below(0) has no value to return");
        let n = n as u64;
        let reject_below = n.wrapping_neg() % n;
        loop {
            let product = u128::from(self.bits()) * u128::from(n);
            if product as u64 >= reject_below {
                return (product >> 64) as usize;
            }
        }
    }

    /// Permutes the items uniformly at random, in place (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

fn derive_key(seed: u64, purpose: &str, keys: &[u64]) -> [u8; 32] {
    let mut lanes = LANE_START;
    let mut absorb = |word: u64| {
        for (lane, prime) in lanes.iter_mut().zip(LANE_PRIME) {
            *lane = finalise((*lane ^ word).wrapping_mul(prime));
        }
    };
    absorb(seed);
    absorb(purpose.len() as u64);
    for chunk in purpose.as_bytes().chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        absorb(u64::from_le_bytes(word));
    }
    absorb(keys.len() as u64);
    keys.iter().copied().for_each(absorb);

    let mut key = [0; 32];
    for (bytes, lane) in key.chunks_exact_mut(8).zip(lanes) {
        bytes.copy_from_slice(&lane.to_le_bytes());
    }
    key
}

/// SplitMix64's output function (Steele, Lea and Flood 2014, in Stafford's variant 13).
fn finalise(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// These values must never change, since every recorded run depends on them. An independent Python implementation of the
    /// module's description gave the same values.
    #[test]
    fn known_answers() {
        let mut stream = Stream::new(42, "rollout", &[1, 2, 3]);
        assert_eq!([stream.bits(), stream.bits()], [6_757_382_713_114_912_423, 1_906_994_768_315_747_255]);
        assert_eq!(stream.uniform(), 0.11856930148239031);
        assert_eq!([stream.below(10), stream.below(1000)], [9, 259]);
        // Logarithm and cosine come from the platform and may differ in the last digit.
        assert!((stream.normal() - 0.7883307583238652).abs() < 1e-12);
        let mut order: Vec<usize> = (0..8).collect();
        Stream::new(1, "shuffle", &[0]).shuffle(&mut order);
        assert_eq!(order, [0, 3, 5, 4, 2, 7, 1, 6]);
    }

    #[test]
    fn streams_are_independent() {
        let mut first_draws = HashSet::new();
        for (step, prompt, sample) in (0..20).flat_map(|a| (0..40).flat_map(move |b| (0..10).map(move |c| (a, b, c)))) {
            first_draws.insert(Stream::new(7, "rollout", &[step, prompt, sample]).bits());
        }
        assert_eq!(first_draws.len(), 20 * 40 * 10);
        // A different split between purpose and keys gives a different stream.
        let variants: [(u64, &str, &[u64]); 8] = [
            (0, "", &[]),
            (0, "", &[0]),
            (0, "", &[0, 0]),
            (0, "\0", &[]),
            (1, "", &[]),
            (0, "abcdefgh", &[1]),
            (0, "abcdefghi", &[]),
            (0, "abcdefgh", &[105, 0]),
        ];
        let keys: HashSet<[u8; 32]> = variants.iter().map(|(seed, purpose, keys)| derive_key(*seed, purpose, keys)).collect();
        assert_eq!(keys.len(), variants.len());

        // Draws of neighbouring streams are uncorrelated: |r| < 4 / sqrt(n).
        let n = 10_000u64;
        let draws = |offset: u64| (0..n).map(move |i| Stream::new(3, "rollout", &[0, i + offset]).uniform() - 0.5);
        let correlation = 12.0 / n as f64 * draws(0).zip(draws(1)).map(|(a, b)| a * b).sum::<f64>();
        assert!(correlation.abs() < 0.04, "{correlation}");
    }

    #[test]
    fn distributions_have_their_moments() {
        let mut stream = Stream::new(0, "moments", &[]);
        let n = 100_000;
        let uniform: Vec<f64> = (0..n).map(|_| stream.uniform()).collect();
        assert!(uniform.iter().all(|u| (0.0..1.0).contains(u)));
        let mean = |values: &[f64]| values.iter().sum::<f64>() / n as f64;
        assert!((mean(&uniform) - 0.5).abs() < 0.004);
        let normal: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
        let squares: Vec<f64> = normal.iter().map(|x| x * x).collect();
        assert!(mean(&normal).abs() < 0.013 && (mean(&squares) - 1.0).abs() < 0.018);
        let mut counts = [0; 3];
        (0..n).for_each(|_| counts[stream.below(3)] += 1);
        assert!(counts.iter().all(|count| (count - n / 3i32).abs() < 600), "{counts:?}");
    }
}
