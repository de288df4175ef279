//! The data of a transfer at a receiver, and its digests; the loops of a chain's links: receive, digest, write, and
//! read, send; and those of the optical transport: all without Python.
//!
//! `blast_transport/store/blocks/store.py` is the reference: for any order of calls, both hold the same blocks, request the
//! same again and leave the same file. This crate does not depend on Python, and has no unsafe code.

mod assembly;
mod block_map;
mod books;
mod burst;
mod bursts;
mod coding;
mod datagram;
mod digests;
mod fault;
mod file_store;
mod frames;
mod intake;
mod layout;
mod light;
mod masks;
mod outlet;
mod pace;
mod reading;
mod records;
mod recovery;
mod sent_file;

pub use assembly::{Assembly, Piece};
pub use block_map::{BlockMap, Run};
pub use books::{Books, MAX_BLOCKS, Shape};
pub use bursts::{Bursts, Ends, Sent, Spot, Step};
pub use coding::{Groups, MAX_GROUP_BLOCKS, MAX_PARITY, decode, encode, number_of};
pub use datagram::{Expected, HEADER_BYTES, LARGEST_SEGMENT};
pub use digests::{DIGEST_BYTES, Digest, DigestTable, cut, digest, digests_of_file};
pub use fault::{Fault, guarded};
pub use file_store::{Before, FileStore};
pub use frames::{CHUNK_BYTES, announcing};
pub use intake::{Place, Taken};
pub use layout::Cut;
pub use light::{Light, READS_FOR, ReadResult, Stay};
pub use masks::MAX_SEGMENTS;
pub use outlet::{Given, Origin, Span, give_to};
pub use pace::{Pace, Schedule};
pub use recovery::Recovery;
pub use sent_file::{Digested, SentFile};
