//! A map that mostly holds one thing. Around one server there is one client and one server, and every
//! message asks for both several times: they are found without a search.

use std::collections::BTreeMap;

/// In the order of the keys, as a [`BTreeMap`] is. It has no index: what an id names may be gone, and whoever
/// looks for it says what happens then.
#[derive(Debug)]
pub(crate) struct SmallMap<K, V> {
    /// Comes before all of the rest. There is none once it was removed while others were there.
    first: Option<(K, V)>,
    rest: BTreeMap<K, V>,
}

impl<K, V> Default for SmallMap<K, V> {
    fn default() -> Self {
        SmallMap { first: None, rest: BTreeMap::new() }
    }
}

impl<K: Ord + Copy, V> SmallMap<K, V> {
    #[inline]
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        match &self.first {
            Some((first, value)) if first == key => Some(value),
            _ => self.get_rest(key),
        }
    }

    #[cold]
    fn get_rest(&self, key: &K) -> Option<&V> {
        self.rest.get(key)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        match &mut self.first {
            Some((first, value)) if first == key => Some(value),
            _ => rest_mut(&mut self.rest, key),
        }
    }

    #[inline]
    pub(crate) fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// What was there before, if anything was.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match &mut self.first {
            Some((first, kept)) if *first == key => Some(std::mem::replace(kept, value)),
            Some((first, _)) if key < *first => {
                let (after, kept) = self.first.replace((key, value))?;
                self.rest.insert(after, kept)
            }
            None if self.rest.is_empty() => {
                self.first = Some((key, value));
                None
            }
            _ => self.rest.insert(key, value),
        }
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let first = self.first.take_if(|(first, _)| first == key);
        first.map(|(_, value)| value).or_else(|| self.rest.remove(key))
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.first.iter().map(|(key, value)| (key, value)).chain(&self.rest)
    }

    pub(crate) fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }
}

#[cold]
fn rest_mut<'a, K: Ord, V>(rest: &'a mut BTreeMap<K, V>, key: &K) -> Option<&'a mut V> {
    rest.get_mut(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is put in and taken out, in whatever order, it is the same as in the plain map.
    #[test]
    fn it_is_a_map() {
        let (mut few, mut map) = (SmallMap::default(), BTreeMap::new());
        let mut chance = crate::chance::Chance::new(7);
        for step in 0..20_000u64 {
            let key = (chance.next() * 5.0) as u64;
            if chance.next() < 0.5 {
                assert_eq!(few.insert(key, step), map.insert(key, step));
            } else {
                assert_eq!(few.remove(&key), map.remove(&key));
            }
            let key = (chance.next() * 5.0) as u64;
            assert_eq!((few.get(&key), few.contains_key(&key)), (map.get(&key), map.contains_key(&key)));
            assert_eq!(few.get_mut(&key), map.get_mut(&key));
            assert_eq!(few.len(), map.len());
            assert!(few.iter().eq(map.iter()) && few.keys().rev().eq(map.keys().rev()));
        }
    }
}
