//! All that the compiler cannot check, so that nothing else need be unsafe: memory and descriptors that Python lends.

mod descriptor;
mod lent;

pub use descriptor::duplicate;
pub use lent::Lent;
