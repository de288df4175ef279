//! All that the compiler cannot check, so that nothing else need be unsafe: calls of the system that the standard
//! library has not, and memory and descriptors that Python lends.

mod datagrams;
mod descriptor;
#[cfg(feature = "python")]
mod lent;
mod link;
mod usage;

pub use datagrams::{Message, Scatter, receive_scattered};
pub use descriptor::{duplicate, with_lent};
#[cfg(feature = "python")]
pub use lent::{Lent, Room};
pub use link::{peek, receive, send_file, send_more};
pub use usage::Usage;
