//! Cycle-faithful simulator of multicast in the fabric of a rack.
