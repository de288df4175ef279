//! Loose synchronization of the VOQs that carry copies of the same frames (section 3.1).
//!
//! A VOQ that begins a frame before others do is ahead of them by that frame's packets; a VOQ that is too far ahead is
//! suspended. When the last copy of a frame is begun, VOQs are no longer ahead by it.

/// Entries of VOQs that are ahead of others.
#[derive(Clone, Debug)]
pub struct SyncCam {
    entries: Vec<Entry>,
    room: usize,
    block: u32,
    resume: u32,
    uses: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    voq: u32,
    ahead: u32,
    used: u64,
    suspended: bool,
}

/// Changes when a VOQ gets ahead.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ahead {
    /// It has an entry now that it did not have before.
    pub allocated: bool,
    /// It is suspended now and was not before.
    pub suspended: bool,
    /// The VOQ whose entry was evicted, and whether it was suspended.
    pub evicted: Option<(u32, bool)>,
}

/// Changes when other VOQs catch up.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CaughtUp {
    pub resumed: bool,
    pub released: bool,
}

impl SyncCam {
    pub fn new(entries: u32, block: u32, resume: u32) -> Self {
        Self { entries: Vec::with_capacity(entries as usize), room: entries as usize, block, resume, uses: 0 }
    }

    /// Record that a VOQ begins a frame of `packets` packets that other VOQs have still to begin.
    pub fn begin(&mut self, voq: u32, packets: u32) -> Ahead {
        self.uses += 1;
        let mut change = Ahead::default();
        let place = self.find(voq).unwrap_or_else(|| {
            change.allocated = true;
            change.evicted = self.make_room();
            self.entries.push(Entry { voq, ahead: 0, used: 0, suspended: false });
            self.entries.len() - 1
        });
        let entry = &mut self.entries[place];
        entry.used = self.uses;
        entry.ahead += packets;
        change.suspended = !entry.suspended && entry.ahead > self.block;
        entry.suspended |= change.suspended;
        change
    }

    /// Record that the last copy of a frame, which this VOQ has begun before, is begun or dropped.
    pub fn catch_up(&mut self, voq: u32, packets: u32) -> CaughtUp {
        let Some(place) = self.find(voq) else { return CaughtUp::default() };
        let entry = &mut self.entries[place];
        // Less than it counted, if it lost its entry in between.
        entry.ahead = entry.ahead.saturating_sub(packets);
        let released = entry.ahead == 0;
        let resumed = entry.suspended && (released || entry.ahead < self.resume);
        entry.suspended &= !resumed;
        if released {
            self.entries.swap_remove(place);
        }
        CaughtUp { resumed, released }
    }

    /// End a suspension after its timeout; return whether there was one.
    pub fn expire(&mut self, voq: u32) -> bool {
        match self.find(voq) {
            Some(place) => std::mem::replace(&mut self.entries[place].suspended, false),
            None => false,
        }
    }

    /// Return the number of packets by which a VOQ is ahead; `None` without an entry.
    pub fn ahead(&self, voq: u32) -> Option<u32> {
        self.find(voq).map(|place| self.entries[place].ahead)
    }

    #[inline]
    fn find(&self, voq: u32) -> Option<usize> {
        self.entries.iter().position(|entry| entry.voq == voq)
    }

    fn make_room(&mut self) -> Option<(u32, bool)> {
        if self.entries.len() < self.room {
            return None;
        }
        let (place, _) = self.entries.iter().enumerate().min_by_key(|(_, entry)| entry.used)?;
        let evicted = self.entries.swap_remove(place);
        Some((evicted.voq, evicted.suspended))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cam_suspends_voq_too_far_ahead_until_others_catch_up() {
        let mut cam = SyncCam::new(24, 18, 12);
        assert_eq!(cam.begin(1, 6), Ahead { allocated: true, ..Ahead::default() });
        for _ in 0..2 {
            assert!(!cam.begin(1, 6).suspended);
        }
        assert!(cam.begin(1, 6).suspended, "24 packets exceed 18");
        assert_eq!(cam.catch_up(1, 6), CaughtUp::default());
        assert_eq!(cam.catch_up(1, 6), CaughtUp::default(), "12 is not below 12");
        assert_eq!(cam.catch_up(1, 6), CaughtUp { resumed: true, released: false });
        assert_eq!(cam.ahead(1), Some(6));
        assert_eq!(cam.catch_up(1, 6), CaughtUp { resumed: false, released: true });
        assert_eq!(cam.ahead(1), None);
    }

    #[test]
    fn full_cam_evicts_the_entry_with_the_oldest_use() {
        let mut cam = SyncCam::new(2, 5, 3);
        assert!(cam.begin(1, 6).suspended);
        cam.begin(2, 1);
        assert_eq!(cam.begin(3, 1).evicted, Some((1, true)));
        cam.begin(2, 1);
        assert_eq!(cam.begin(4, 1).evicted, Some((3, false)));
        assert_eq!(cam.catch_up(1, 6), CaughtUp::default());
    }

    #[test]
    fn expired_suspension_ends_once() {
        let mut cam = SyncCam::new(2, 5, 3);
        cam.begin(1, 6);
        assert!(cam.expire(1));
        assert!(!cam.expire(1));
        assert!(!cam.expire(7));
        assert!(cam.begin(1, 6).suspended, "it got further ahead");
    }
}
