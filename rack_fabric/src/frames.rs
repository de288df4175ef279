//! Frames that wait at a port, and copies of them that are on their way to another one.

use crate::wheel::Ps;

/// Maximum number of packets of a frame: a jumbo frame has 36.
pub const MAX_PACKETS: usize = 64;

/// No line of the cache.
pub const NOWHERE: u32 = u32::MAX;

/// A frame in the payload memory of a port; its copies are numbered as in the multicast table.
#[derive(Clone, Debug)]
pub struct Frame {
    pub flow: u32,
    pub node: u32,
    pub bytes: u32,
    pub packets: u32,
    /// When its host had it ready.
    pub born: Ps,
    /// When it came to this port.
    pub arrived: Ps,
    /// Copies that have a header here: not rejected and not dropped.
    pub live: u32,
    /// Those of them that a VOQ has begun to send.
    pub begun: u32,
    /// Copies without an ACK.
    pub unacknowledged: u32,
    /// Number of sent copies of each packet.
    pub sent: [u8; MAX_PACKETS],
    /// The cache's line of each packet.
    pub lines: [u32; MAX_PACKETS],
}

impl Frame {
    /// A frame whose copies are still to be accepted.
    pub fn new(flow: u32, node: u32, bytes: u32, packets: u32, born: Ps, arrived: Ps) -> Self {
        Self {
            flow,
            node,
            bytes,
            packets,
            born,
            arrived,
            live: 0,
            begun: 0,
            unacknowledged: 0,
            sent: [0; MAX_PACKETS],
            lines: [NOWHERE; MAX_PACKETS],
        }
    }

    /// Return whether every copy of this packet has left.
    #[inline]
    pub fn all_sent(&self, packet: usize) -> bool {
        u32::from(self.sent[packet]) >= self.live.count_ones()
    }
}

/// A copy on its way from one port to another.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flight {
    pub flow: u32,
    pub bytes: u32,
    pub packets: u32,
    /// Packets that have come to the egress buffer.
    pub arrived: u32,
    pub born: Ps,
    /// Destination port, lane there, and the node that replicates it (or `NO_NODE`).
    pub to: u32,
    pub lane: u32,
    pub node: u32,
    /// Surrogates passed.
    pub level: u32,
    /// Where the ACK goes.
    pub voq: u32,
    pub frame: u32,
    pub copy: u32,
    /// It left its port in this order.
    pub number: u64,
    /// The egress port sends it, and waits for its last packets.
    pub overtaken: bool,
}

/// No node: the copy is at its destination.
pub const NO_NODE: u32 = u32::MAX;

/// Items by number; numbers of removed items are reused.
#[derive(Clone, Debug)]
pub struct Pool<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { items: Vec::new(), free: Vec::new() }
    }
}

impl<T> Pool<T> {
    /// Store an item and return its number, which is valid until the item is removed.
    #[inline]
    pub fn add(&mut self, item: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.items[number as usize] = item;
            number
        } else {
            self.items.push(item);
            self.items.len() as u32 - 1
        }
    }

    /// Remove an item, so that its number can be reused.
    #[inline]
    pub fn remove(&mut self, number: u32) {
        debug_assert!(!self.free.contains(&number) || self.free.len() > 64, "removed twice");
        self.free.push(number);
    }

    /// Return the number of stored items.
    pub fn len(&self) -> usize {
        self.items.len() - self.free.len()
    }

    /// Return whether no item is stored.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> std::ops::Index<u32> for Pool<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.items[number as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Pool<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.items[number as usize]
    }
}
