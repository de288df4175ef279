//! Virtual output queues (section 2.2): the copies at one port for one egress port and lane, first come, first served.
//!
//! A queue that is too long drops a copy at its head or at its tail (section 4.1). Head drop discards the first copy that
//! has not begun and was not sent before. A retransmission is never dropped, because its egress port waits for its
//! number.

use std::collections::{BTreeMap, VecDeque};

/// A copy that waits: its frame, and its number among the frame's copies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Header {
    pub frame: u32,
    pub copy: u32,
    pub packets: u32,
    /// Its place in the order of the VOQ, once it has been sent and is to be sent again.
    pub number: Option<u64>,
}

/// A queue. It requests space in the target's buffer frame by frame; grants are in packets.
#[derive(Clone, Debug)]
pub struct Voq {
    /// The port of the queue, and its target port.
    pub port: u32,
    pub to: u32,
    pub lane: u32,
    /// Both ports are of one leaf.
    pub local: bool,
    pub headers: VecDeque<Header>,
    /// Packets of frames that are not begun.
    pub backlog: u32,
    /// Packets that may be sent.
    pub granted: u32,
    /// Packets that are requested and not granted.
    pub asked: u32,
    /// The same request by request, as they were made.
    pub requests: VecDeque<u8>,
    /// Packets of the first frame that have left; 0: it is not begun.
    pub packet: u32,
    /// The copy on its way.
    pub flight: u32,
    pub suspended: bool,
    /// Number of suspensions, by which a timeout recognizes its own.
    pub suspensions: u32,
    /// It is among the VOQs that its port may serve.
    pub ready: bool,
    /// The slot in which it has sent last.
    pub slot: u64,
    /// Copies that have been begun.
    pub begun: u64,
    /// At the target: the next one to deliver, and later ones that have already arrived.
    pub expected: u64,
    pub early: BTreeMap<u64, u32>,
}

impl Voq {
    pub fn new(port: u32, to: u32, lane: u32, local: bool) -> Self {
        Self {
            port,
            to,
            lane,
            local,
            headers: VecDeque::new(),
            backlog: 0,
            granted: 0,
            asked: 0,
            requests: VecDeque::new(),
            packet: 0,
            flight: 0,
            suspended: false,
            suspensions: 0,
            ready: false,
            slot: u64::MAX,
            begun: 0,
            expected: 0,
            early: BTreeMap::new(),
        }
    }

    /// Queue a copy.
    pub fn push(&mut self, header: Header) {
        self.backlog += header.packets;
        self.headers.push_back(header);
    }

    /// Queue a lost copy before all others, with the space that it was granted then.
    pub fn push_again(&mut self, frame: u32, copy: u32, packets: u32, number: u64) {
        let place = usize::from(self.packet > 0);
        self.headers.insert(place, Header { frame, copy, packets, number: Some(number) });
        self.backlog += packets;
        self.granted += packets;
    }

    /// Return the number of packets that are still to be requested.
    pub fn to_ask(&self) -> u32 {
        self.backlog.saturating_sub(self.granted + self.asked)
    }

    /// Record a request.
    pub fn request(&mut self, packets: u32) {
        self.asked += packets;
        self.requests.push_back(packets as u8);
    }

    /// Grant the first requests, `packets` packets in total.
    pub fn grant(&mut self, packets: u32) {
        self.asked -= packets;
        self.granted += packets;
        let mut left = packets;
        while left > 0 {
            left -= self.requests.pop_front().map_or(left, u32::from);
        }
    }

    /// Return the number of granted packets that no queued copy needs.
    pub fn surplus(&self) -> u32 {
        (self.granted + self.asked).saturating_sub(self.backlog).min(self.granted)
    }

    /// Return the size of the next copy that is not begun, if some of its packets were granted but not all.
    pub fn lacks(&self) -> Option<u32> {
        let next = self.headers.get(usize::from(self.packet > 0))?;
        (0 < self.granted && self.granted < next.packets).then_some(next.packets)
    }

    /// Return whether the VOQ has a copy that it may send.
    #[inline]
    pub fn may_send(&self) -> bool {
        self.packet > 0
            || (!self.suspended && self.headers.front().is_some_and(|header| self.granted >= header.packets))
    }

    /// Take out the next copy that is not begun and was not sent before.
    pub fn drop_head(&mut self) -> Option<Header> {
        let begun = usize::from(self.packet > 0);
        let place = begun + self.headers.iter().skip(begun).position(|header| header.number.is_none())?;
        let header = self.headers.remove(place)?;
        self.backlog -= header.packets;
        Some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lacks_returns_the_size_of_a_partially_granted_copy() {
        let mut voq = Voq::new(0, 1, 0, true);
        voq.push(header(1));
        assert_eq!(voq.lacks(), None, "nothing is granted");
        voq.granted = 5;
        assert_eq!(voq.lacks(), Some(6));
        voq.granted = 6;
        assert_eq!(voq.lacks(), None);
    }

    fn header(frame: u32) -> Header {
        Header { frame, copy: 0, packets: 6, number: None }
    }

    #[test]
    fn drop_head_removes_the_first_copy_that_is_not_begun() {
        let mut voq = Voq::new(0, 1, 0, true);
        (1..4).for_each(|frame| voq.push(header(frame)));
        voq.packet = 2;
        voq.backlog -= 6;
        assert_eq!(voq.drop_head().map(|dropped| dropped.frame), Some(2));
        voq.packet = 0;
        assert_eq!(voq.drop_head().map(|dropped| dropped.frame), Some(1));
        assert_eq!(voq.headers.len(), 1);
    }

    #[test]
    fn voq_requests_its_backlog_and_reports_surplus_grants() {
        let mut voq = Voq::new(0, 1, 0, true);
        voq.push(header(1));
        voq.push(header(2));
        assert_eq!(voq.to_ask(), 12);
        voq.request(6);
        voq.request(6);
        voq.grant(6);
        assert_eq!((voq.to_ask(), voq.surplus(), voq.requests.len()), (0, 0, 1));
        voq.drop_head();
        assert_eq!(voq.surplus(), 6);
        voq.push(header(3));
        assert_eq!((voq.to_ask(), voq.surplus()), (0, 0));
    }
}
