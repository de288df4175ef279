//! A simulator of a server-rack fabric that copies frames itself.
//!
//! Chrysos, Neeser, Gusat, Minkenberg, Denzel, Basso, Rudquist, Valk, Vanderpool: the multicast architecture of a
//! distributed server-rack fabric (the paper that section numbers in this crate refer to). One file a mechanism; a run
//! depends on its scenario alone and gives the same bytes on every machine.
#![forbid(unsafe_code)]

mod adapter;
mod adapters;
pub mod arbiter;
pub mod cache;
mod checks;
pub mod congestion;
mod crossbar;
mod egress;
pub mod fabric;
pub mod frames;
mod ingress;
pub mod pause;
pub mod random;
mod reading;
pub mod scenario;
mod spine_links;
mod spines;
pub mod statistics;
pub mod sync_cam;
pub mod trace;
pub mod trees;
pub mod voq;
pub mod wheel;
pub mod wrong;
