//! Parity segments at a receiver: kept while their group is incomplete, until they suffice to compute its rest.
//!
//! The computed segments enter the assembly like received ones, so that digests decide. A group is computed only once:
//! if forged parity has made a block wrong, the sender repairs the block with segments.

use std::collections::{BTreeMap, BTreeSet};

use crate::assembly::{Assembly, Piece};
use crate::block_map::{BlockMap, Run};
use crate::coding::{Groups, MAX_PARITY, decode};
use crate::fault::Fault;
use crate::file_store::FileStore;

/// Every call must pass the same assembly and store.
#[derive(Debug)]
pub struct Recovery {
    groups: Groups,
    /// Parity segments by their index, of each incomplete group; their total number.
    kept: BTreeMap<u64, BTreeMap<usize, Vec<u8>>>,
    count: usize,
    /// Kept groups that have changed since the last computation.
    changed: BTreeSet<u64>,
    computed: BlockMap,
}

impl Recovery {
    pub fn new(groups: Groups) -> Self {
        let (kept, changed, computed) = (BTreeMap::new(), BTreeSet::new(), BlockMap::default());
        Recovery { groups, kept, count: 0, changed, computed }
    }

    /// Keep parity segments of this group from `index` on, which lie one behind the other in `payload`. Return false if
    /// they cannot come from the sender, which has sent no segment from `sent` on.
    pub fn keep(
        &mut self,
        assembly: &Assembly,
        store: &FileStore,
        (group, index): (u64, usize),
        payload: &[u8],
        sent: u64,
    ) -> Result<bool, Fault> {
        let size = self.groups.cut.segment_size;
        let (first, stop) = self.groups.span(group);
        let exists = first < stop && stop <= sent && payload.len() % size == 0;
        if !exists || index + payload.len() / size > MAX_PARITY {
            return Ok(false);
        }
        if self.computed.contains(group) || assembly.missing(store, first, stop)?.is_empty() {
            return Ok(true);
        }
        let kept = self.kept.entry(group).or_default();
        for (index, segment) in (index..).zip(payload.chunks_exact(size)) {
            self.count += usize::from(kept.insert(index, segment.to_vec()).is_none());
        }
        self.changed.insert(group);
        Ok(true)
    }

    /// Segments from `first` to before `stop` have arrived.
    pub fn arrived(&mut self, first: u64, stop: u64) {
        if !self.kept.is_empty() {
            let groups = self.groups.of(first)..=self.groups.of(stop.saturating_sub(1));
            self.changed.extend(self.kept.range(groups).map(|(group, _)| *group));
        }
    }

    /// Compute the groups for which that is possible now; return the added segments, and the number of new ones.
    pub fn compute(&mut self, assembly: &mut Assembly, store: &FileStore) -> Result<(Vec<Run>, u64), Fault> {
        let (mut runs, mut new) = (Vec::new(), 0);
        for group in std::mem::take(&mut self.changed) {
            let (first, stop) = self.groups.span(group);
            let missing = assembly.missing(store, first, stop)?;
            let lost: u64 = missing.iter().map(|run| run.1 - run.0).sum();
            if lost == 0 {
                self.drop(group);
            } else if let Some(parity) = self.kept.get(&group).filter(|kept| kept.len() as u64 >= lost) {
                let parity = parity.iter().take(lost as usize).map(|(index, segment)| (*index, segment.as_slice()));
                new += self.add_rest(assembly, store, group, &missing, parity)?;
                runs.extend(missing);
                self.computed.insert(group);
                self.drop(group);
            }
        }
        // Parity shares the memory of incomplete blocks, and is dropped first. The oldest may have been repaired.
        while self.count > assembly.room() * assembly.count() as usize {
            let Some(oldest) = self.kept.keys().next().copied() else { break };
            self.drop(oldest);
        }
        Ok((runs, new))
    }

    /// Compute the missing segments of this group, and add them; return the number of new ones.
    fn add_rest<'a>(
        &self,
        assembly: &mut Assembly,
        store: &FileStore,
        group: u64,
        missing: &[Run],
        parity: impl IntoIterator<Item = (usize, &'a [u8])>,
    ) -> Result<u64, Fault> {
        let (size, (first, stop)) = (self.groups.cut.segment_size, self.groups.span(group));
        let block_size = size * self.groups.cut.block_segments;
        let mut data = vec![0; (stop - first) as usize * size];
        let mut there = vec![true; (stop - first) as usize];
        for run in missing {
            there[(run.0 - first) as usize..(run.1 - first) as usize].fill(false);
        }
        let end = self.groups.bytes(first, stop);
        for (block, room) in (first / assembly.count()..).zip(data[..end].chunks_mut(block_size)) {
            assembly.copy(store, block, room)?;
        }
        decode(&mut data, size, &there, parity)?;
        let pieces = missing.iter().map(|run| {
            let begin = (run.0 - first) as usize * size;
            let payload = &data[begin..begin + self.groups.bytes(run.0, run.1)];
            Piece { first: run.0, count: run.1 - run.0, payload }
        });
        assembly.add_all(store, pieces)
    }

    fn drop(&mut self, group: u64) {
        self.count -= self.kept.remove(&group).map_or(0, |kept| kept.len());
    }
}
