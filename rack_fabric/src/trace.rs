//! Events at ports, one record of 32 bytes each, for checks and analysis.
//!
//! Header: `BLASTRF1`, version (u32), size of a record (u32). Record: time in ps (u64), kind (u8), flags (u8), port (u16),
//! frame (u32), VOQ (u32), value (u32), extra (u64). All little-endian.

use std::io::{self, Write};

use crate::wheel::Ps;

const MAGIC: &[u8; 8] = b"BLASTRF1";
const VERSION: u32 = 1;
const RECORD: u32 = 32;

/// No frame, or no VOQ.
pub const NONE: u32 = u32::MAX;

/// The kind of an event. Comments define `value`, `flags` and `extra`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Kind {
    /// value: packets; voq: none; extra: flow.
    FrameIn = 1,
    /// The same fields as above.
    FrameDropped = 2,
    /// value: headers of the lane before; extra: number of the copy.
    HeaderAccepted = 3,
    /// The same fields as above.
    HeaderDropped = 4,
    /// value: packets.
    Request = 5,
    /// value: packets.
    Grant = 6,
    /// value: packets; extra: number of the copy.
    BeginFrame = 7,
    /// value: packet; flags bit 0: over the payload line.
    PacketSent = 8,
    /// value: packet.
    CacheWritten = 9,
    /// value: packet; flags bit 0: the last copy had left.
    CacheEvicted = 10,
    /// value: packets ahead.
    Suspended = 11,
    /// value: 0 others have caught up, 1 timeout, 2 the entry was evicted.
    Resumed = 12,
    /// value: packets; extra: number of the copy.
    HeadDropped = 13,
    /// extra: number of the copy.
    Acked = 14,
    /// value: packets.
    PayloadFreed = 15,
    /// At its destination; value: bytes; extra: when its host had it ready.
    FrameOut = 16,
    /// value: feedback; extra: flow.
    Cnm = 17,
    /// value: class.
    Pause = 18,
    /// value: class.
    Go = 19,
    CamAllocated = 20,
    CamReleased = 21,
    /// extra: number of the copy.
    Retransmitted = 22,
    /// extra: number of the copy.
    Corrupted = 23,
}

/// One event at a port.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub time: Ps,
    pub kind: Kind,
    pub flags: u8,
    pub port: u32,
    pub frame: u32,
    pub voq: u32,
    pub value: u32,
    pub extra: u64,
}

/// The output of records.
pub struct Trace<'a> {
    out: Box<dyn Write + 'a>,
    failed: Option<io::Error>,
}

impl<'a> Trace<'a> {
    /// Begin a trace. Fails if it cannot be written.
    pub fn new(mut out: Box<dyn Write + 'a>) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&RECORD.to_le_bytes())?;
        Ok(Self { out, failed: None })
    }

    /// Write a record; `finish` reports a failure.
    pub fn write(&mut self, record: &Record) {
        if self.failed.is_some() {
            return;
        }
        let mut bytes = [0; RECORD as usize];
        bytes[0..8].copy_from_slice(&record.time.to_le_bytes());
        bytes[8] = record.kind as u8;
        bytes[9] = record.flags;
        bytes[10..12].copy_from_slice(&(record.port as u16).to_le_bytes());
        bytes[12..16].copy_from_slice(&record.frame.to_le_bytes());
        bytes[16..20].copy_from_slice(&record.voq.to_le_bytes());
        bytes[20..24].copy_from_slice(&record.value.to_le_bytes());
        bytes[24..32].copy_from_slice(&record.extra.to_le_bytes());
        self.failed = self.out.write_all(&bytes).err();
    }

    /// Flush the trace, or return its first error.
    pub fn finish(mut self) -> io::Result<()> {
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }
}
