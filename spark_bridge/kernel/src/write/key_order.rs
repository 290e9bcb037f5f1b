//! Checks the order of changes per key: remembers the last position of each key.

use std::hash::{BuildHasher, Hash, RandomState};

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

/// Maximum number of remembered keys; at least half of them are kept.  Changes out of order are
/// usually near each other, and a task may have any number of keys.
const MAX_KEYS: usize = 1 << 17;

/// Numbers, compared from left to right.
pub type Position = [i64; 7];

/// The kind of a position; only positions of the same kind are comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(u64);

/// The last positions of keys.
#[derive(Default)]
pub struct KeyOrder {
    hasher: RandomState,
    // The older half is dropped at once, which avoids bookkeeping per change.
    recent: HashMap<u64, (Kind, Position)>,
    older: HashMap<u64, (Kind, Position)>,
}

impl KeyOrder {
    /// The kind of positions with this name.
    pub fn kind(&self, name: impl Hash) -> Kind {
        Kind(self.hasher.hash_one(name))
    }

    /// Remembers the position of a key; fails with the last position if that is later.
    pub fn check(&mut self, key: &[u8], kind: Kind, position: Position) -> Result<(), Position> {
        // 64 bits instead of the key: of 2^17 keys, two have one hash with a chance of one in 10^9.
        let key = self.hasher.hash_one(key);
        let slot = self.recent.entry(key);
        let last = match &slot {
            Entry::Occupied(slot) => Some(slot.get()),
            Entry::Vacant(_) => self.older.get(&key),
        };
        if let Some((known, last)) = last
            && *known == kind
            && position < *last
        {
            return Err(*last);
        }
        slot.insert((kind, position));
        if self.recent.len() >= MAX_KEYS / 2 {
            std::mem::swap(&mut self.recent, &mut self.older);
            self.recent.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_a_key_ascend() {
        let mut order = KeyOrder::default();
        let (one, other) = (order.kind("commit_ts"), order.kind(("topic", 1)));
        let at = |number| [number, 0, 0, 0, 0, 0, 0];
        assert_eq!(order.check(b"a", one, at(2)), Ok(()));
        assert_eq!(order.check(b"b", one, at(1)), Ok(()));
        assert_eq!(order.check(b"a", one, at(2)), Ok(()));
        assert_eq!(order.check(b"a", one, at(1)), Err(at(2)));
        assert_eq!(order.check(b"a", other, at(1)), Ok(()));
    }

    #[test]
    fn few_keys_are_remembered() {
        let mut order = KeyOrder::default();
        let kind = order.kind("");
        for number in 0..MAX_KEYS as i64 * 2 {
            let _ = order.check(&number.to_le_bytes(), kind, [number, 0, 0, 0, 0, 0, 0]);
            assert!(order.recent.len() + order.older.len() <= MAX_KEYS);
        }
    }
}
