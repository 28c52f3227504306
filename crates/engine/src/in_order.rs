//! Ids in their order. A new one is nearly always the last, and the first is nearly always the first to
//! go: a queue does that without a search.

use std::collections::VecDeque;

/// In order, each once.
#[derive(Debug)]
pub(crate) struct InOrder<T>(VecDeque<T>);

impl<T> Default for InOrder<T> {
    fn default() -> Self {
        InOrder(VecDeque::new())
    }
}

impl<T: Ord + Copy> InOrder<T> {
    pub(crate) fn insert(&mut self, id: T) {
        if self.0.back().is_none_or(|last| *last < id) {
            self.0.push_back(id);
        } else if let Err(at) = self.0.binary_search(&id) {
            self.0.insert(at, id);
        }
    }

    pub(crate) fn remove(&mut self, id: &T) {
        if self.0.front() == Some(id) {
            self.0.pop_front();
        } else if let Ok(at) = self.0.binary_search(id) {
            self.0.remove(at);
        }
    }

    pub(crate) fn contains(&self, id: &T) -> bool {
        self.0.binary_search(id).is_ok()
    }

    pub(crate) fn first(&self) -> Option<&T> {
        self.0.front()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set_in_order(steps: Vec<(bool, u8)>) {
            let (mut ours, mut theirs) = (InOrder::default(), BTreeSet::new());
            for (insert, id) in steps {
                if insert {
                    ours.insert(id);
                    theirs.insert(id);
                } else {
                    prop_assert_eq!(ours.contains(&id), theirs.contains(&id));
                    ours.remove(&id);
                    theirs.remove(&id);
                }
                prop_assert_eq!(ours.first(), theirs.first());
                prop_assert_eq!(ours.len(), theirs.len());
            }
            prop_assert!(ours.iter().eq(theirs.iter()));
        }
    }
}
