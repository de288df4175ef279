//! Random numbers that are the same on every machine: no library for mathematics takes part.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, 2019), seeded by splitmix64.

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// Create the stream with this number; the streams of a seed are independent.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut mixed = seed ^ stream.wrapping_mul(0xA24B_AED4_963E_E407);
        let mut next = || {
            mixed = mixed.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut word = mixed;
            word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            word ^ (word >> 31)
        };
        Self { state: [next(), next(), next(), next()] }
    }

    fn word(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let found = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        self.state = [a ^ b ^ d, a ^ b ^ c, c ^ a ^ (b << 17), (d ^ b).rotate_left(45)];
        found
    }

    /// Return a number that is uniform in (0, 1].
    pub fn unit(&mut self) -> f64 {
        // 53 bits, as many as a double holds.
        ((self.word() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Return a number that is uniform in 0 .. `end`, by Lemire's reduction, whose bias is below 2^-32 here.
    pub fn below(&mut self, end: u32) -> u32 {
        (((self.word() >> 32) * u64::from(end)) >> 32) as u32
    }

    /// Return true with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() <= probability
    }

    /// Return a gap between two events of a Poisson process, with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -logarithm(self.unit())
    }
}

/// Return the natural logarithm of a positive, normal number, by operations whose results IEEE 754 prescribes.
///
/// `ln` of machines differ in the last bit. With m in [sqrt(1/2), sqrt(2)) and s = (m - 1) / (m + 1), ln m is the series
/// 2 (s + s^3/3 + s^5/5 + ...), of which eleven terms are below the rounding of a double.
pub fn logarithm(number: f64) -> f64 {
    const LN_2: f64 = std::f64::consts::LN_2;
    let bits = number.to_bits();
    let mut exponent = ((bits >> 52) & 0x7FF) as i32 - 1023;
    let mut mantissa = f64::from_bits((bits & 0x000F_FFFF_FFFF_FFFF) | 0x3FF0_0000_0000_0000);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let series = (0..11).rev().fold(0.0, |sum, term| sum * square + 1.0 / f64::from(2 * term + 1));
    2.0 * s * series + f64::from(exponent) * LN_2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn logarithm_matches_the_standard_library(number in 1e-300f64..1e300) {
            let ours = logarithm(number);
            prop_assert!((ours - number.ln()).abs() <= 4e-16 * number.ln().abs().max(1.0), "{} {}", ours, number.ln());
        }

        #[test]
        fn drawn_numbers_lie_in_their_ranges(seed: u64, stream: u64, end in 1u32..1000) {
            let mut random = Random::new(seed, stream);
            for _ in 0..50 {
                prop_assert!(random.below(end) < end);
                let unit = random.unit();
                prop_assert!(unit > 0.0 && unit <= 1.0);
                prop_assert!(random.exponential() >= 0.0);
            }
        }
    }

    #[test]
    fn sample_means_match_the_distributions() {
        let mut random = Random::new(1, 0);
        let draws = 200_000;
        let mean = (0..draws).map(|_| random.exponential()).sum::<f64>() / f64::from(draws);
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        let hits = (0..draws).filter(|_| random.chance(0.3)).count() as f64 / f64::from(draws);
        assert!((hits - 0.3).abs() < 0.01, "{hits}");
    }

    #[test]
    fn streams_differ_and_repeat() {
        let first: Vec<u64> = (0..4).map(|stream| Random::new(7, stream).word()).collect();
        let again: Vec<u64> = (0..4).map(|stream| Random::new(7, stream).word()).collect();
        assert_eq!(first, again);
        assert!((1..4).all(|stream| first[stream] != first[0]));
    }
}
