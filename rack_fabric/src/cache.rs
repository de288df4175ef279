//! The multicast cache of a leaf (section 3): packets that have been sent once, for the copies that follow.
//!
//! A line is freed when the last copy of its packet has left. Besides, with fewer than `reserve` lines free, one that
//! is not in use is evicted in every cycle, the least recently used first (the reading of Figure 4c). The reserve is half
//! of the cache at most: with 10 of 16 lines kept free no cache of that size could do what Figure 4b shows.

/// A packet of a frame at a port.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Packet {
    pub frame: u32,
    pub packet: u32,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    held: Packet,
    /// Neighbors in the order of use.
    older: u32,
    newer: u32,
    /// The slot in which it was used last.
    used: u64,
}

const END: u32 = u32::MAX;

/// The lines, all of them in one order of use.
#[derive(Clone, Debug)]
pub struct Cache {
    lines: Vec<Line>,
    free: Vec<u32>,
    reserve: usize,
    oldest: u32,
    newest: u32,
}

impl Cache {
    pub fn new(packets: u32, reserve: u32) -> Self {
        let none = Line { held: Packet { frame: 0, packet: 0 }, older: END, newer: END, used: 0 };
        Self {
            lines: vec![none; packets as usize],
            free: (0..packets).rev().collect(),
            reserve: reserve.min(packets / 2) as usize,
            oldest: END,
            newest: END,
        }
    }

    /// Return the number of lines in use.
    pub fn occupied(&self) -> usize {
        self.lines.len() - self.free.len()
    }

    /// Store a packet from this slot on; return its line, if one is free.
    pub fn write(&mut self, held: Packet, slot: u64) -> Option<u32> {
        let line = self.free.pop()?;
        self.lines[line as usize] = Line { held, older: END, newer: END, used: slot };
        self.append(line);
        Some(line)
    }

    /// Record that the packet of a line is copied.
    #[inline]
    pub fn touch(&mut self, line: u32, slot: u64) {
        self.lines[line as usize].used = slot;
        if self.newest != line {
            self.unlink(line);
            self.append(line);
        }
    }

    /// Free a line.
    pub fn release(&mut self, line: u32) {
        self.unlink(line);
        self.free.push(line);
    }

    /// Evict a packet in this cycle if too few lines are free; return the packet.
    pub fn evict(&mut self, slot: u64) -> Option<Packet> {
        let line = self.oldest;
        if self.free.len() >= self.reserve || line == END || self.lines[line as usize].used == slot {
            return None;
        }
        self.release(line);
        Some(self.lines[line as usize].held)
    }

    fn append(&mut self, line: u32) {
        self.lines[line as usize].older = self.newest;
        self.lines[line as usize].newer = END;
        match self.newest {
            END => self.oldest = line,
            newest => self.lines[newest as usize].newer = line,
        }
        self.newest = line;
    }

    fn unlink(&mut self, line: u32) {
        let Line { older, newer, .. } = self.lines[line as usize];
        match older {
            END => self.oldest = newer,
            older => self.lines[older as usize].newer = newer,
        }
        match newer {
            END => self.newest = older,
            newer => self.lines[newer as usize].older = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(frame: u32) -> Packet {
        Packet { frame, packet: 0 }
    }

    #[test]
    fn cache_evicts_oldest_line_while_free_lines_are_below_reserve() {
        let mut cache = Cache::new(4, 2);
        let lines: Vec<u32> = (0..4).filter_map(|frame| cache.write(packet(frame), 1)).collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(cache.write(packet(9), 1), None);
        assert_eq!(cache.evict(1), None, "all lines are in use in this slot");
        cache.touch(lines[0], 2);
        assert_eq!(cache.evict(2), Some(packet(1)));
        assert_eq!(cache.evict(2), Some(packet(2)));
        assert_eq!(cache.evict(2), None, "two are free, which is the reserve");
        assert_eq!(cache.occupied(), 2);
    }

    proptest! {
        /// Compare with a list that is kept in order of use.
        #[test]
        fn cache_behaves_like_a_list_in_order_of_use(steps in prop::collection::vec((0u8..4, 0usize..8), 0..200)) {
            let (size, reserve) = (8, 3);
            let mut cache = Cache::new(size, reserve);
            // (line, packet, slot), the least recently used first.
            let mut list: Vec<(u32, Packet, u64)> = Vec::new();
            for (slot, (step, which)) in steps.into_iter().enumerate() {
                let slot = slot as u64 / 2;
                match step {
                    0 => {
                        let line = cache.write(packet(slot as u32), slot);
                        prop_assert_eq!(line.is_none(), list.len() == size as usize);
                        list.extend(line.map(|line| (line, packet(slot as u32), slot)));
                    }
                    1 if which < list.len() => {
                        let (line, held, _) = list.remove(which);
                        cache.touch(line, slot);
                        list.push((line, held, slot));
                    }
                    2 if which < list.len() => cache.release(list.remove(which).0),
                    _ => {
                        let short = size as usize - list.len() < reserve as usize;
                        let due = short && list.first().is_some_and(|first| first.2 != slot);
                        let expected = if due { Some(list.remove(0).1) } else { None };
                        prop_assert_eq!(cache.evict(slot), expected);
                    }
                }
                prop_assert_eq!(cache.occupied(), list.len());
            }
        }
    }
}
