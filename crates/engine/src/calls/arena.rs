//! Where calls live: slots that are used again, each time under a new generation.
//!
//! A slot costs 16 bytes and is kept for the next call; the call itself is freed when it is settled.

use crate::calls::Call;
use crate::id::CallId;

#[derive(Debug, Default)]
pub(crate) struct Arena {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    call: Option<Box<Call>>,
}

impl Arena {
    pub(crate) fn insert(&mut self, call: Box<Call>) -> CallId {
        let call = Some(call);
        if let Some(slot) = self.free.pop() {
            let entry = &mut self.slots[slot as usize];
            entry.call = call;
            return CallId { slot, generation: entry.generation };
        }
        self.slots.push(Slot { generation: 0, call });
        CallId { slot: self.slots.len() as u32 - 1, generation: 0 }
    }

    pub(crate) fn get(&self, id: CallId) -> Option<&Call> {
        let slot = self.slots.get(id.slot as usize)?;
        slot.call.as_deref().filter(|_| slot.generation == id.generation)
    }

    pub(crate) fn get_mut(&mut self, id: CallId) -> Option<&mut Call> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        slot.call.as_deref_mut().filter(|_| slot.generation == id.generation)
    }

    pub(crate) fn remove(&mut self, id: CallId) -> Option<Box<Call>> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        if slot.generation != id.generation {
            return None;
        }
        let call = slot.call.take()?;
        slot.generation = (slot.generation + 1) & CallId::GENERATIONS;
        self.free.push(id.slot);
        Some(call)
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = CallId> {
        let used = |(_, slot): &(usize, &Slot)| slot.call.is_some();
        self.slots
            .iter()
            .enumerate()
            .filter(used)
            .map(|(index, slot)| CallId { slot: index as u32, generation: slot.generation })
    }
}
