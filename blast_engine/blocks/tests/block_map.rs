//! A map of blocks behaves like a set of numbers under any sequence of operations.

use std::collections::BTreeSet;

use blast_blocks::{BlockMap, Run};
use proptest::prelude::*;

const MAX_BLOCK: u64 = 300;

#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    InsertRun(u64, u64),
    Remove(u64),
    Cut(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let number = 0..MAX_BLOCK;
    let step = prop_oneof![
        number.clone().prop_map(Step::Insert),
        (number.clone(), 0..100u64).prop_map(|(first, count)| Step::InsertRun(first, first + count)),
        number.clone().prop_map(Step::Remove),
        number.prop_map(Step::Cut),
    ];
    prop::collection::vec(step, 0..40)
}

fn runs_of(numbers: impl Iterator<Item = u64>) -> Vec<Run> {
    let mut runs = Vec::<Run>::new();
    for number in numbers {
        match runs.last_mut() {
            Some(last) if last.1 == number => last.1 += 1,
            _ => runs.push((number, number + 1)),
        }
    }
    runs
}

proptest! {
    #[test]
    fn block_map_behaves_like_a_set(steps in steps(), start in 0..MAX_BLOCK, length in 0..MAX_BLOCK) {
        let (mut map, mut set) = (BlockMap::default(), BTreeSet::new());
        for step in steps {
            match step {
                Step::Insert(block) => prop_assert_eq!(map.insert(block), set.insert(block)),
                Step::InsertRun(first, stop) => {
                    map.insert_run(first, stop);
                    set.extend(first..stop);
                }
                Step::Remove(block) => prop_assert_eq!(map.remove(block), set.remove(&block)),
                Step::Cut(stop) => {
                    map.cut(stop);
                    set.retain(|block| *block < stop);
                }
            }
            prop_assert_eq!(map.held(), set.len() as u64);
        }
        let stop = start + length;
        let there: Vec<Run> = map.runs(true, start, stop).collect();
        let missing: Vec<Run> = map.runs(false, start, stop).collect();
        prop_assert_eq!(there, runs_of((start..stop).filter(|block| set.contains(block))));
        prop_assert_eq!(missing, runs_of((start..stop).filter(|block| !set.contains(block))));
        prop_assert_eq!(map.first_missing(start), (start..3 * MAX_BLOCK).find(|block| !set.contains(block)).unwrap());
        prop_assert!((0..2 * MAX_BLOCK).all(|block| map.contains(block) == set.contains(&block)));
    }
}

#[test]
fn missing_runs_far_beyond_the_last_block_take_no_memory() {
    let mut map = BlockMap::default();
    map.insert(3);
    assert_eq!(map.runs(false, 0, u64::MAX).collect::<Vec<_>>(), [(0, 3), (4, u64::MAX)]);
    assert!(!map.contains(u64::MAX));
    assert!(map.end() < 1000);
}
