//! Constants by number: two have the same number if they have the same bytes in the same order, wherever they lie.
//!
//! A constant is looked at in samples first. Those with the same samples are compared byte by byte, so each weight of a result is
//! read once, beside the one of the input that it is. Places of samples are drawn when the check starts, so that nobody can write
//! many constants that only differ elsewhere.

use crate::terms::strided::{Dims, Elements, in_order};
use bytes::Bytes;
use rustc_hash::FxHashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// Elements that are looked at first.
const SAMPLES: u64 = 64;

/// Where the elements of a constant are: address, bytes, first element, and how they are read.
type Place = (usize, usize, i64, Dims, usize);

/// All constants that were looked at.
#[derive(Debug, Default)]
pub(crate) struct Constants {
    drawn: RandomState,
    list: Vec<Elements>,
    /// Numbers by what the samples are.
    alike: FxHashMap<u64, Vec<u32>>,
    /// Numbers by place in memory. The bytes are kept, so that no other constant comes to lie there.
    places: FxHashMap<Place, (u32, Bytes)>,
}

impl Constants {
    /// The number of these elements.
    pub(crate) fn number(&mut self, of: Elements) -> u32 {
        let place = (of.data.as_ptr().addr(), of.data.len(), of.first, of.dims.clone(), of.width);
        if let Some((number, _)) = self.places.get(&place) {
            return *number;
        }
        let samples = self.samples(&of);
        let data = of.data.clone();
        let alike = self.alike.entry(samples).or_default();
        let known = alike.iter().copied().find(|known| self.list[*known as usize] == of);
        let number = known.unwrap_or(self.list.len() as u32);
        if known.is_none() {
            alike.push(number);
            self.list.push(of);
        }
        self.places.insert(place, (number, data));
        number
    }

    /// Whether two constants are the same. Those of the second one are looked at as they lie, so that later looks at them find that.
    pub(crate) fn same(&mut self, a: Elements, b: Elements) -> bool {
        let (a, b) = if a.count() == b.count() { in_order(&a, &b).unwrap_or((a, b)) } else { (a, b) };
        self.number(b) == self.number(a)
    }

    /// The elements with a number.
    pub(crate) fn get(&self, number: u32) -> &Elements {
        &self.list[number as usize]
    }

    fn samples(&self, of: &Elements) -> u64 {
        let count = of.count() as u64;
        let mut hasher = self.drawn.build_hasher();
        hasher.write_u64(count);
        hasher.write_usize(of.width);
        for sample in 0..count.min(SAMPLES) {
            let at = if count <= SAMPLES { sample } else { self.drawn.hash_one(sample) % count };
            hasher.write(of.at(at as i64));
        }
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(data: Vec<u8>, dims: &[(i64, i64)]) -> Elements {
        Elements::new(&data.into(), 0, dims.iter().copied(), 1).unwrap()
    }

    #[test]
    fn any_changed_byte_is_another_number() {
        let mut constants = Constants::default();
        let bytes: Vec<u8> = (0..250).collect();
        let dense: &[(i64, i64)] = &[(250, 1)];
        let number = constants.number(elements(bytes.clone(), dense));
        assert_eq!(constants.number(elements(bytes.clone(), dense)), number);
        let mut others = vec![number];
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 0x10;
            others.push(constants.number(elements(other, dense)));
        }
        others.sort_unstable();
        others.dedup();
        assert_eq!(others.len(), 251);
    }

    #[test]
    fn the_order_is_what_counts_and_not_the_place() {
        let mut constants = Constants::default();
        let (rows, columns): (Vec<u8>, Vec<u8>) =
            ((0..200).collect(), (0..200).map(|n| n % 20 * 10 + n / 20).collect());
        let number = constants.number(elements(rows.clone(), &[(20, 10), (10, 1)]));
        assert_eq!(constants.number(elements(columns.clone(), &[(20, 1), (10, 20)])), number);
        assert_ne!(constants.number(elements(rows, &[(10, 1), (20, 10)])), number);
        assert_ne!(constants.number(elements(columns, &[(200, 1)])), number);
    }

    #[test]
    fn zeros_of_another_number_differ() {
        let mut constants = Constants::default();
        let numbers: Vec<u32> = (0..200).map(|n| constants.number(elements(vec![0; n], &[(n as i64, 1)]))).collect();
        assert_eq!(numbers, (0..200).collect::<Vec<u32>>());
    }
}
