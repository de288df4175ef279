//! Set of block numbers, with a bit for each. It grows on demand, so that a stream needs no size.

use std::iter;

/// Blocks that follow one another: (first, behind the last).
pub type Run = (u64, u64);

const BITS: u64 = u64::BITS as u64;

/// Put what is from `first` to before `stop`, if there is anything, behind the last of these.
pub fn append(runs: &mut Vec<Run>, first: u64, stop: u64) {
    if first >= stop {
        return;
    }
    match runs.last_mut() {
        Some(last) if last.1 == first => last.1 = stop,
        _ => runs.push((first, stop)),
    }
}

/// The caller bounds the numbers that it adds.
#[derive(Clone, Debug, Default)]
pub struct BlockMap {
    words: Vec<u64>,
    held: u64,
}

impl BlockMap {
    /// The number of blocks.
    pub fn held(&self) -> u64 {
        self.held
    }

    pub fn contains(&self, block: u64) -> bool {
        self.word(block / BITS) >> (block % BITS) & 1 == 1
    }

    /// Add one; false if it was there.
    pub fn insert(&mut self, block: u64) -> bool {
        let place = (block / BITS) as usize;
        if place >= self.words.len() {
            self.words.resize(place + 1, 0);
        }
        let bit = 1 << (block % BITS);
        let new = self.words[place] & bit == 0;
        self.words[place] |= bit;
        self.held += u64::from(new);
        new
    }

    /// Add those from `first` to before `stop`.
    pub fn insert_run(&mut self, first: u64, stop: u64) {
        for block in first..stop {
            self.insert(block);
        }
    }

    /// Remove one; false if it was not there.
    pub fn remove(&mut self, block: u64) -> bool {
        let there = self.contains(block);
        if there {
            self.words[(block / BITS) as usize] &= !(1 << (block % BITS));
            self.held -= 1;
        }
        there
    }

    /// Remove all from `stop` on.
    pub fn cut(&mut self, stop: u64) {
        let end = self.words.len() as u64 * BITS;
        let behind: Vec<Run> = self.runs(true, stop, end).collect();
        for (first, last) in behind {
            for block in first..last {
                self.remove(block);
            }
        }
    }

    /// The lowest one from `start` on that is not in it.
    pub fn first_missing(&self, start: u64) -> u64 {
        self.find(false, start, u64::MAX).unwrap_or(u64::MAX)
    }

    /// Yield the runs of blocks that are in it (`there`), or are not, from `start` to before `stop`, in order.
    pub fn runs(&self, there: bool, start: u64, stop: u64) -> impl Iterator<Item = Run> + '_ {
        let mut position = start;
        iter::from_fn(move || {
            let begin = self.find(there, position, stop)?;
            position = self.find(!there, begin, stop).unwrap_or(stop);
            Some((begin, position))
        })
    }

    /// Behind the last one that there can be.
    pub fn end(&self) -> u64 {
        self.words.len() as u64 * BITS
    }

    fn word(&self, place: u64) -> u64 {
        usize::try_from(place).ok().and_then(|place| self.words.get(place)).copied().unwrap_or(0)
    }

    fn find(&self, there: bool, start: u64, stop: u64) -> Option<u64> {
        let mut position = start;
        while position < stop {
            if position >= self.end() {
                return (!there).then_some(position);
            }
            let word = self.word(position / BITS);
            let bits = if there { word } else { !word } >> (position % BITS);
            if bits != 0 {
                let found = position + u64::from(bits.trailing_zeros());
                return (found < stop).then_some(found);
            }
            position = (position / BITS + 1) * BITS;
        }
        None
    }
}
