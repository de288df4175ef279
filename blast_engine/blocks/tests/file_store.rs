//! Several threads fill one store of a file; and a panic of one of them is reported to the others.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::{env, process, thread};

use blast_blocks::{DIGEST_BYTES, Fault, FileStore, Shape, digest, digests_of_file, guarded};

const BLOCK: u64 = 40;
const BLOCKS: u64 = 203;
const SIZE: u64 = BLOCK * BLOCKS - 7;
const RECORD: usize = 8 + DIGEST_BYTES;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("blast-engine-{}-{name}", process::id()));
        fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> File {
        File::options().read(true).write(true).create(true).truncate(false).open(self.0.join(name)).unwrap()
    }

    fn store(&self) -> FileStore {
        let shape = Shape { block_size: BLOCK, size: Some(SIZE), ahead: 10 };
        FileStore::new(self.file("data"), self.file("records"), shape, None)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn content(seed: u64) -> Vec<u8> {
    (0..SIZE).map(|place| (place.wrapping_mul(2_654_435_761 + seed) >> 7) as u8).collect()
}

fn digests(content: &[u8]) -> Vec<[u8; DIGEST_BYTES]> {
    content.chunks(BLOCK as usize).map(digest).collect()
}

#[test]
fn concurrent_right_and_wrong_blocks_leave_the_sent_file() {
    let (folder, right, wrong) = (Folder::new("threads"), content(0), content(1));
    let store = folder.store();
    assert!(store.books().unwrap().expect(0, &digests(&right)[..50]));
    thread::scope(|scope| {
        for number in 0..3 {
            let (store, right, wrong) = (&store, &right, &wrong);
            scope.spawn(move || {
                for round in 0..BLOCKS {
                    let first = (round * 7 + number * 50) % BLOCKS;
                    let data = if (round + number) % 5 == 0 { wrong } else { right };
                    let (begin, end) = (first * BLOCK, ((first + 3) * BLOCK).min(SIZE));
                    let row = &data[begin as usize..end as usize];
                    if number == 1 {
                        store.put_row(first, row).unwrap();
                    } else {
                        store.put_all(first, &row.chunks(BLOCK as usize).collect::<Vec<_>>()).unwrap();
                    }
                    if number == 2 && round == 100 {
                        assert!(store.books().unwrap().expect(50, &digests(right)[50..]));
                    }
                }
            });
        }
    });
    assert!(!store.books().unwrap().take_wrong().is_empty());
    for (block, data) in right.chunks(BLOCK as usize).enumerate() {
        store.put_all(block as u64, &[data]).unwrap();
    }
    assert!(store.books().unwrap().complete());
    store.close().unwrap();
    assert!(fs::read(folder.0.join("data")).unwrap() == right);
    let records = fs::read(folder.0.join("records")).unwrap();
    assert!(records.len() % RECORD == 0 && records.len() >= BLOCKS as usize * RECORD);
}

#[test]
fn closed_store_rejects_new_blocks_and_can_be_closed_twice() {
    let folder = Folder::new("closed");
    let store = folder.store();
    assert_eq!(store.put_all(3, &[&[1; 40]]).unwrap(), 1);
    store.close().unwrap();
    store.close().unwrap();
    // A block that arrives again is not new, at any time.
    assert_eq!(store.put_all(3, &[&[1; 40]]).unwrap(), 0);
    store.put_row(3, &[1; 40]).unwrap();
    assert!(matches!(store.put_all(0, &[&[0; 40]]), Err(Fault::System(_))));
    assert!(matches!(store.put_row(0, &[0; 40]), Err(Fault::System(_))));
}

#[test]
fn store_refuses_blocks_after_a_panic_and_can_be_closed() {
    let folder = Folder::new("panic");
    let store = folder.store();
    let panicked = guarded(|| {
        let _books = store.books()?;
        panic!("in the middle");
        #[expect(unreachable_code, reason = "gives the closure its type")]
        Ok(())
    });
    assert!(matches!(panicked, Err(Fault::Program(words)) if words == "in the middle"));
    assert!(matches!(store.put_all(0, &[&[0; 40]]), Err(Fault::Program(words)) if words.contains("earlier panic")));
    store.close().unwrap();
}

#[test]
fn digests_of_truncated_file_report_its_length() -> io::Result<()> {
    let folder = Folder::new("shorter");
    fs::write(folder.0.join("data"), &content(0)[..1010])?;
    let file = folder.file("data");
    let file = file.as_fd();
    assert_eq!(digests_of_file(file, 3, 2, BLOCK, SIZE).unwrap(), digests(&content(0))[3..5].as_flattened());
    assert!(matches!(digests_of_file(file, 24, 5, BLOCK, SIZE), Err(Fault::Shorter(1010))));
    Ok(())
}
