//! The queue of events: a time wheel, which inserts and removes an event in constant time.
//!
//! Events leave in the order of (time, port, order of entry), whatever the order of insertion: a run depends on its
//! scenario only. Events beyond the wheel's horizon wait in a heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Picoseconds since the start of the simulation.
pub type Ps = u64;

const SLOT_BITS: u32 = 12;
const SLOTS: usize = 1 << 12;
/// The range of the wheel: 16.8 microseconds.
const HORIZON: Ps = (SLOTS as Ps) << SLOT_BITS;

/// An event with its time and port.
#[derive(Clone, Copy, Debug)]
pub struct Entry<E> {
    pub time: Ps,
    pub port: u32,
    sequence: u64,
    pub event: E,
}

impl<E> Entry<E> {
    fn key(&self) -> (Ps, u32, u64) {
        (self.time, self.port, self.sequence)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// Events that are still to happen. Nothing may be added before the time of the event that was taken last.
pub struct Wheel<E> {
    slots: Vec<Vec<Entry<E>>>,
    far: BinaryHeap<Reverse<Entry<E>>>,
    /// Number of the slot that is being emptied, counted from time 0.
    current: u64,
    /// Events of the current slot, the next one last.
    due: Vec<Entry<E>>,
    sequence: u64,
    near: usize,
}

impl<E: Copy> Default for Wheel<E> {
    fn default() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| Vec::new()).collect(),
            far: BinaryHeap::new(),
            current: 0,
            due: Vec::new(),
            sequence: 0,
            near: 0,
        }
    }
}

impl<E: Copy> Wheel<E> {
    /// Schedule an event at a port.
    #[inline]
    pub fn add(&mut self, time: Ps, port: u32, event: E) {
        let entry = Entry { time, port, sequence: self.sequence, event };
        self.sequence += 1;
        let slot = time >> SLOT_BITS;
        debug_assert!(slot >= self.current, "an event in the past");
        if slot == self.current {
            let place = self.due.partition_point(|other| other.key() > entry.key());
            self.due.insert(place, entry);
        } else if slot - self.current < SLOTS as u64 {
            self.slots[slot as usize % SLOTS].push(entry);
            self.near += 1;
        } else {
            self.far.push(Reverse(entry));
        }
    }

    /// Return the next event, unless it is later than `until`.
    #[inline]
    pub fn next(&mut self, until: Ps) -> Option<Entry<E>> {
        if self.due.is_empty() && !self.advance(until) {
            return None;
        }
        match self.due.last() {
            Some(entry) if entry.time <= until => self.due.pop(),
            _ => None,
        }
    }

    /// Advance to the next slot with events; return false if there is none up to `until`.
    fn advance(&mut self, until: Ps) -> bool {
        let last = until >> SLOT_BITS;
        while self.due.is_empty() {
            if self.near == 0 {
                match self.far.peek() {
                    Some(Reverse(entry)) if entry.time <= until => self.current = entry.time >> SLOT_BITS,
                    _ => return false,
                }
            } else if self.current < last {
                self.current += 1;
            } else {
                return false;
            }
            self.bring_near();
            let slot = &mut self.slots[self.current as usize % SLOTS];
            self.near -= slot.len();
            std::mem::swap(slot, &mut self.due);
            self.due.sort_unstable_by(|one, other| other.cmp(one));
        }
        true
    }

    fn bring_near(&mut self) {
        let end = (self.current << SLOT_BITS) + HORIZON;
        while self.far.peek().is_some_and(|Reverse(entry)| entry.time < end) {
            if let Some(Reverse(entry)) = self.far.pop() {
                self.slots[(entry.time >> SLOT_BITS) as usize % SLOTS].push(entry);
                self.near += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_added_by_other_events_leave_in_time_order(
            times in prop::collection::vec((0u64..200_000_000, 0u32..4, 0u64..40_000_000), 1..60)
        ) {
            let mut wheel = Wheel::default();
            let mut expected = Vec::new();
            for (number, &(time, port, _)) in times.iter().enumerate() {
                wheel.add(time, port, number);
                expected.push((time, port, number));
            }
            let mut found = Vec::new();
            let mut fresh = times.len();
            while let Some(entry) = wheel.next(u64::MAX >> 1) {
                found.push((entry.time, entry.port, entry.event));
                // Every original event causes another one.
                if entry.event < times.len() {
                    let (_, port, later) = times[entry.event];
                    wheel.add(entry.time + later, port, fresh);
                    expected.push((entry.time + later, port, fresh));
                    fresh += 1;
                }
            }
            // An event that a higher port causes at the same time comes behind earlier ones.
            prop_assert_eq!(found.len(), expected.len());
            prop_assert!(found.windows(2).all(|pair| pair[0].0 <= pair[1].0));
            let mut ours = found;
            ours.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(ours, expected);
        }

        #[test]
        fn initial_events_leave_by_time_port_and_entry(entries in prop::collection::vec((0u64..90_000_000, 0u32..5), 0..99)) {
            let mut wheel = Wheel::default();
            for (number, &(time, port)) in entries.iter().enumerate() {
                wheel.add(time, port, number);
            }
            let mut expected: Vec<_> = entries.iter().enumerate().map(|(n, &(time, port))| (time, port, n)).collect();
            expected.sort_unstable();
            let found: Vec<_> =
                std::iter::from_fn(|| wheel.next(u64::MAX >> 1)).map(|e| (e.time, e.port, e.event)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn next_returns_no_event_after_the_limit() {
        let mut wheel = Wheel::default();
        wheel.add(5_000_000_000, 0, 'a');
        assert!(wheel.next(4_999_999_999).is_none());
        wheel.add(4_999_999_999, 0, 'b');
        assert_eq!(wheel.next(5_000_000_000).map(|entry| entry.event), Some('b'));
        assert_eq!(wheel.next(5_000_000_000).map(|entry| entry.event), Some('a'));
    }
}
