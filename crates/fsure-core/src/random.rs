//! Chance that can be had again: the same seed gives the same cut on every
//! machine and in every version, which no general library promises.

/// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
/// Generators", 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Begins with a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 where `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        let wide = u128::from(self.next_bits()) * u128::from(end);
        (wide >> 64) as u64
    }

    /// Heads or tails.
    pub fn coin(&mut self) -> bool {
        self.next_bits() >> 63 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first values of the reference implementation for the seed 1234567.
    #[test]
    fn a_seed_gives_the_same_for_ever() {
        let mut random = Random::new(1_234_567);
        let first: Vec<_> = (0..3).map(|_| random.next_bits()).collect();
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
        assert!((0..1000).all(|_| random.below(7) < 7));
        assert_eq!(random.below(0), 0);
    }
}
