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

/// The state of a VOQ that got ahead.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ahead {
    /// It has an entry now that it did not have before.
    pub allocated: bool,
    /// It is suspended now and was not before.
    pub suspended: bool,
    /// Another VOQ had to give up its entry for it, and whether that one was suspended.
    pub evicted: Option<(u32, bool)>,
}

/// The state of a VOQ with which others have caught up.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CaughtUp {
    pub resumed: bool,
    pub released: bool,
}

impl SyncCam {
    pub fn new(entries: u32, block: u32, resume: u32) -> Self {
        Self { entries: Vec::with_capacity(entries as usize), room: entries as usize, block, resume, uses: 0 }
    }

    /// A VOQ begins a frame of `packets` packets, of which others still have to send a copy.
    pub fn begin(&mut self, voq: u32, packets: u32) -> Ahead {
        self.uses += 1;
        let mut told = Ahead::default();
        let place = self.find(voq).unwrap_or_else(|| {
            told.allocated = true;
            told.evicted = self.make_room();
            self.entries.push(Entry { voq, ahead: 0, used: 0, suspended: false });
            self.entries.len() - 1
        });
        let entry = &mut self.entries[place];
        entry.used = self.uses;
        entry.ahead += packets;
        told.suspended = !entry.suspended && entry.ahead > self.block;
        entry.suspended |= told.suspended;
        told
    }

    /// The last copy of a frame of `packets` packets is begun, or dropped: this VOQ has begun the frame before.
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

    /// A suspension has lasted long enough; true: it ends.
    pub fn expire(&mut self, voq: u32) -> bool {
        match self.find(voq) {
            Some(place) => std::mem::replace(&mut self.entries[place].suspended, false),
            None => false,
        }
    }

    /// Packets that a VOQ is ahead; none: it has no entry.
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
        let gone = self.entries.swap_remove(place);
        Some((gone.voq, gone.suspended))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_too_far_ahead_waits_until_the_others_have_come_near() {
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
    fn a_full_cam_gives_up_the_entry_that_was_used_min_recently() {
        let mut cam = SyncCam::new(2, 5, 3);
        assert!(cam.begin(1, 6).suspended);
        cam.begin(2, 1);
        assert_eq!(cam.begin(3, 1).evicted, Some((1, true)));
        cam.begin(2, 1);
        assert_eq!(cam.begin(4, 1).evicted, Some((3, false)));
        assert_eq!(cam.catch_up(1, 6), CaughtUp::default());
    }

    #[test]
    fn a_suspension_that_has_lasted_ends_once() {
        let mut cam = SyncCam::new(2, 5, 3);
        cam.begin(1, 6);
        assert!(cam.expire(1));
        assert!(!cam.expire(1));
        assert!(!cam.expire(7));
        assert!(cam.begin(1, 6).suspended, "it got further ahead");
    }
}
