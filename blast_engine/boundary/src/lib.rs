//! All that the compiler cannot check, so that nothing else need be unsafe: calls of the system that the standard
//! library has not, and memory and descriptors that Python lends.

mod burst;
mod datagrams;
mod descriptor;
mod file;
#[cfg(feature = "python")]
mod lent;
mod link;
mod usage;
mod waiting;

pub use burst::{cut_into, refuses_to_cut, send_each, send_joined};
pub use datagrams::{Message, Scatter, receive_scattered};
pub use descriptor::{duplicate, with_all_lent, with_lent};
pub use file::read_at;
#[cfg(feature = "python")]
pub use lent::{Lent, Room};
pub use link::{peek, receive, send, send_file, send_more};
pub use usage::Usage;
pub use waiting::{monotonic, readable_within, woken_within};
