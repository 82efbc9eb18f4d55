//! The supported digests, their names and their values.

use std::fmt;

/// A digest algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// BLAKE3, 256 bits: the value `b3sum` prints. The default, and the only
    /// one that also yields block values.
    Blake3,
    /// SHA-256 (FIPS 180-4).
    Sha256,
    /// SHA-512 (FIPS 180-4).
    Sha512,
    /// SHA-1 (FIPS 180-4); broken against forgers, kept for old lists.
    Sha1,
    /// MD5 (RFC 1321); broken against forgers, kept for old lists.
    Md5,
    /// XXH3, 128 bits, seed 0, big-endian; not cryptographic.
    Xxh128,
    /// CRC-32 as in zip, big-endian: to hold a file against an SFV list, and
    /// never recorded.
    Crc32,
}

impl Algorithm {
    /// Those that can be recorded, in the order of their columns in the catalog.
    pub const RECORDED: [Self; 6] =
        [Self::Blake3, Self::Sha256, Self::Sha512, Self::Sha1, Self::Md5, Self::Xxh128];

    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Blake3,
        Self::Sha256,
        Self::Sha512,
        Self::Sha1,
        Self::Md5,
        Self::Xxh128,
        Self::Crc32,
    ];

    /// The name used on the command line and in the catalog.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blake3 => "blake3",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
            Self::Sha1 => "sha1",
            Self::Md5 => "md5",
            Self::Xxh128 => "xxh128",
            Self::Crc32 => "crc32",
        }
    }

    /// The algorithm of that name, of those that can be recorded.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::RECORDED.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// The algorithm of a name as people write it, in any case and with hyphens: `SHA-256`.
    pub fn from_typed(name: &str) -> Option<Self> {
        Self::from_name(&name.replace(['-', '_'], "").to_ascii_lowercase())
    }

    /// Length of a value in bytes.
    pub fn length(self) -> usize {
        match self {
            Self::Blake3 | Self::Sha256 => 32,
            Self::Sha512 => 64,
            Self::Sha1 => 20,
            Self::Md5 | Self::Xxh128 => 16,
            Self::Crc32 => 4,
        }
    }
}

/// A set of algorithms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlgorithmSet(u8);

impl AlgorithmSet {
    /// The set of those algorithms.
    pub fn of(algorithms: &[Algorithm]) -> Self {
        Self(algorithms.iter().fold(0, |set, algorithm| set | 1 << (*algorithm as u8)))
    }

    /// Returns true if `algorithm` is in the set.
    pub fn contains(self, algorithm: Algorithm) -> bool {
        self.0 & (1 << (algorithm as u8)) != 0
    }

    /// Returns true if all of `other` is in this set.
    pub fn covers(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The members, in the order of [`Algorithm::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Algorithm> {
        Algorithm::ALL.into_iter().filter(move |algorithm| self.contains(*algorithm))
    }

    /// Those of the set that can be recorded; BLAKE3 if there are none.
    #[must_use]
    pub fn recordable(self) -> Self {
        let set = Self(self.0 & Self::of(&Algorithm::RECORDED).0);
        if set == Self::default() { Self::of(&[Algorithm::Blake3]) } else { set }
    }

    /// The algorithms that are in this set and not in the other.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The set as bits, for use as a key.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// The algorithms that are in either set.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for AlgorithmSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(Algorithm::name).collect();
        f.write_str(&names.join(","))
    }
}

/// The digests of one content; at most one value per algorithm.
///
/// BLAKE3 lies apart from the rest so that the usual record needs no allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// The BLAKE3 value, if it was computed.
    pub blake3: Option<[u8; 32]>,
    others: Vec<(Algorithm, Box<[u8]>)>,
}

impl Digests {
    /// Adds a value. The length must be the algorithm's.
    pub fn insert(&mut self, algorithm: Algorithm, value: &[u8]) {
        assert_eq!(value.len(), algorithm.length(), "{}", algorithm.name());
        if algorithm == Algorithm::Blake3 {
            self.blake3 = value.try_into().ok();
        } else {
            self.others.retain(|(known, _)| *known != algorithm);
            self.others.push((algorithm, value.into()));
            self.others.sort_by_key(|(algorithm, _)| *algorithm);
        }
    }

    /// The value of one algorithm.
    pub fn get(&self, algorithm: Algorithm) -> Option<&[u8]> {
        if algorithm == Algorithm::Blake3 {
            return self.blake3.as_ref().map(<[u8; 32]>::as_slice);
        }
        self.others.iter().find(|(known, _)| *known == algorithm).map(|(_, value)| &**value)
    }

    /// The algorithms that have a value here.
    pub fn algorithms(&self) -> AlgorithmSet {
        let blake3 = self.blake3.map(|_| Algorithm::Blake3);
        let all = blake3.into_iter().chain(self.others.iter().map(|(algorithm, _)| *algorithm));
        AlgorithmSet(all.fold(0, |set, algorithm| set | AlgorithmSet::of(&[algorithm]).0))
    }

    /// Returns true if every algorithm that both have gives the same value;
    /// `None` if they have none in common and cannot be compared.
    pub fn agree(&self, other: &Self) -> Option<bool> {
        let common = self.algorithms().0 & other.algorithms().0;
        let is_same = |algorithm| self.get(algorithm) == other.get(algorithm);
        (common != 0).then(|| AlgorithmSet(common).iter().all(is_same))
    }
}

/// Bytes as lower-case hexadecimal text.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_differing_algorithm_is_a_difference() {
        let mut one = Digests::default();
        one.insert(Algorithm::Blake3, &[1; 32]);
        assert_eq!(one.agree(&Digests::default()), None);
        let mut two = one.clone();
        one.insert(Algorithm::Md5, &[2; 16]);
        assert_eq!(one.agree(&two), Some(true));
        two.insert(Algorithm::Md5, &[3; 16]);
        assert_eq!(one.agree(&two), Some(false));
    }

    #[test]
    fn names_go_both_ways() {
        for algorithm in Algorithm::RECORDED {
            assert_eq!(Algorithm::from_name(algorithm.name()), Some(algorithm));
        }
        assert_eq!(Algorithm::from_name("BLAKE3"), None);
        assert_eq!(Algorithm::from_typed("BLAKE3"), Some(Algorithm::Blake3));
        assert_eq!(Algorithm::from_typed("Sha-256"), Some(Algorithm::Sha256));
        assert_eq!(Algorithm::from_typed("sha3"), None);
        assert_eq!(Algorithm::from_name("crc32"), None, "nobody records it");
    }
}
