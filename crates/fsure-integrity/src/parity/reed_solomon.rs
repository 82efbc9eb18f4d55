//! The code itself: recovery shards of data, and data from what is left.

use super::group::SHARD;

/// The recovery shards of a group's data, which are whole shards.
pub fn encode(data: &[u8], recovery: u32) -> Option<Vec<Vec<u8>>> {
    let count = data.len() / SHARD;
    reed_solomon_simd::encode(count, recovery as usize, data.chunks(SHARD)).ok()
}

/// Puts back the shards of `data` that are not `good`, from the recovery shards
/// that are there. Whether that could be done.
pub fn restore(data: &mut [u8], good: &[bool], recovery: &[Option<&[u8]>]) -> bool {
    let bad = good.iter().filter(|good| !**good).count();
    let there: Vec<(usize, &[u8])> =
        recovery.iter().enumerate().filter_map(|(n, shard)| Some((n, (*shard)?))).collect();
    if bad == 0 || there.len() < bad {
        return bad == 0;
    }
    let original = data.chunks(SHARD).enumerate().filter(|(number, _)| good[*number]);
    let restored = reed_solomon_simd::decode(good.len(), recovery.len(), original, there);
    let Ok(restored) = restored else { return false };
    for (number, shard) in restored {
        data[number * SHARD..][..SHARD].copy_from_slice(&shard);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(shards: usize) -> Vec<u8> {
        (0..shards * SHARD).map(|at| (at / 7 + at % 251) as u8).collect()
    }

    /// Stored data must be understood for decades: these values must never change.
    #[test]
    fn the_code_is_fixed() {
        for (shards, recovery, value) in [
            (1, 1, "8867c63a3acfa854"),
            (100, 5, "882a7f3c0608388b"),
            (4096, 205, "55df95a2988c36ba"),
        ] {
            let code = encode(&data(shards), recovery).unwrap().concat();
            let found = blake3::hash(&code).to_hex();
            assert_eq!(&found[..16], value, "{shards}");
        }
    }

    #[test]
    fn as_many_as_promised_and_not_one_more() {
        let whole = data(40);
        let code = encode(&whole, 4).unwrap();
        for (bad, lost, can) in [(4, 0, true), (3, 1, true), (0, 4, true), (4, 1, false)] {
            let mut damaged = whole.clone();
            let mut good = vec![true; 40];
            for number in 0..bad {
                damaged[number * 9 * SHARD..][..SHARD].fill(9);
                good[number * 9] = false;
            }
            let left =
                |(n, shard): (usize, &Vec<u8>)| (n >= lost).then_some(shard.as_slice().to_vec());
            let left: Vec<_> = code.iter().enumerate().map(left).collect();
            let left: Vec<_> = left.iter().map(|shard| shard.as_deref()).collect();
            assert_eq!(restore(&mut damaged, &good, &left), can, "{bad} {lost}");
            assert_eq!(damaged == whole, can || bad == 0);
        }
    }
}
