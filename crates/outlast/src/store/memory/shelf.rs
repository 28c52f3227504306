//! A map whose changes can be taken back until they are settled.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

/// A map, and what it held before the changes that are not settled.
#[derive(Debug)]
pub struct Shelf<K, V> {
    map: BTreeMap<K, V>,
    before: Vec<(K, Option<V>)>,
}

impl<K, V> Default for Shelf<K, V> {
    fn default() -> Shelf<K, V> {
        Shelf { map: BTreeMap::new(), before: Vec::new() }
    }
}

impl<K: Ord + Clone, V: Clone> Shelf<K, V> {
    pub fn get(&self, key: &K) -> Option<&V> {
        self.map.get(key)
    }

    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// The first one, copied: what is done with it changes the shelf.
    pub fn first(&self) -> Option<(K, V)> {
        self.map.first_key_value().map(|(key, value)| (key.clone(), value.clone()))
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.map.iter()
    }

    pub fn range(&self, keys: impl RangeBounds<K>) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.map.range(keys)
    }

    pub fn put(&mut self, key: K, value: V) {
        let before = self.map.insert(key.clone(), value);
        self.before.push((key, before));
    }

    pub fn take(&mut self, key: &K) -> Option<V> {
        let value = self.map.remove(key)?;
        self.before.push((key.clone(), Some(value.clone())));
        Some(value)
    }

    /// Takes everything that is meant.
    pub fn take_where(&mut self, meant: impl Fn(&K, &V) -> bool) -> Vec<(K, V)> {
        let found = self.map.iter().filter(|(key, value)| meant(key, value));
        let keys: Vec<K> = found.map(|(key, _)| key.clone()).collect();
        keys.into_iter().filter_map(|key| self.take(&key).map(|value| (key, value))).collect()
    }

    /// Makes the changes final, or takes them back.
    pub fn settle(&mut self, keep: bool) {
        while let Some((key, value)) = self.before.pop() {
            match value {
                _ if keep => {}
                Some(value) => drop(self.map.insert(key, value)),
                None => drop(self.map.remove(&key)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Shelf;

    #[test]
    fn changes_are_taken_back_in_reverse() {
        let mut shelf = Shelf::default();
        shelf.put(1, "a");
        shelf.settle(true);
        shelf.put(1, "b");
        shelf.put(2, "c");
        shelf.take(&1);
        shelf.put(1, "d");
        shelf.settle(false);
        assert_eq!(shelf.iter().collect::<Vec<_>>(), [(&1, &"a")]);
        assert_eq!(shelf.take_where(|key, _| *key == 1), [(1, "a")]);
        shelf.settle(true);
        shelf.settle(false);
        assert_eq!(shelf.len(), 0);
    }
}
