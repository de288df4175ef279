//! What a receiver holds of a transfer, and what proves it; the loops of a chain's links, which are receive, digest,
//! write, and read, send; and those of light, which are the same: all without Python.
//!
//! `blast_transport/store/store.py` is the reference: whatever comes in whatever order, both hold the same blocks, ask
//! for the same again and leave the same file. Nothing here knows Python, and nothing is unsafe.

mod assembly;
mod block_map;
mod books;
mod burst;
mod bursts;
mod datagram;
mod digests;
mod fault;
mod file_store;
mod frames;
mod intake;
mod light;
mod masks;
mod outlet;
mod pace;
mod reading;
mod records;

pub use assembly::{Assembly, Piece};
pub use block_map::{BlockMap, Run};
pub use books::{Books, MAX_BLOCKS, Shape};
pub use bursts::{Bursts, Cut, Ends, Sent, Spot, Turn};
pub use datagram::{Expected, HEADER_BYTES, LARGEST_SEGMENT};
pub use digests::{DIGEST_BYTES, Digest, DigestTable, cut, digest, digests_of_file};
pub use fault::{Fault, guarded};
pub use file_store::{Before, FileStore};
pub use frames::{CHUNK_BYTES, announcing};
pub use intake::{Place, Taken};
pub use light::{Came, Light, READS_FOR, Stay};
pub use masks::MAX_SEGMENTS;
pub use outlet::{Given, Span, give_to};
pub use pace::{Pace, Schedule};
