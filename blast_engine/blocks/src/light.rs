//! Receive, check, assemble, digest and write the datagrams of an optical phase.
//!
//! `group_socket.py` and `intake.py` of `blast_transport/datagrams` are the reference.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use blast_boundary::{Message, Scatter, monotonic, readable_within, receive_scattered};

use crate::assembly::{Assembly, Piece, Row, close};
use crate::block_map::{Run, append};
use crate::coding::parity_of;
use crate::datagram::{Expected, HEADER_BYTES, LARGEST_SEGMENT};
use crate::fault::Fault;
use crate::file_store::FileStore;
use crate::intake::lost;
use crate::masks::MAX_SEGMENTS;
use crate::recovery::Recovery;

/// Blocks that are read before any is processed: the amount that stays in a processor's cache.
const ROWS: usize = 8;
/// Blocks whose datagrams one call reads at most: the sender must get a credit before its window is exhausted.
const BLOCKS_PER_READ: usize = 64;
/// Value of `Stay::reads_for` in a receiver: the sender must learn of a slow store before it gives the receiver up.
pub const READS_FOR: Duration = Duration::from_millis(50);

/// `_MIN_SECONDS` of `base/moderation.py`.
const SHORTEST_PAUSE: f64 = 0.0002;

/// Time for which one call may continue reading, by the clock of `monotonic`.
///
/// It starts no further read after `reads_for`. After the first read it ends at `until`, when `segments` have passed or
/// some were skipped, and when one of `woken` is readable. Before every other read data collects, until `gathers`
/// seconds after the previous one, but for at most `max_wait` seconds, as in `base/moderation.py`.
#[derive(Clone, Copy, Debug)]
pub struct Stay<'a> {
    pub reads_for: Duration,
    pub until: f64,
    pub segments: u64,
    pub gathers: f64,
    pub max_wait: f64,
    pub woken: [BorrowedFd<'a>; 2],
}

/// Result of one call.
#[derive(Debug, Default)]
pub struct ReadResult {
    /// Segments (first, behind the last) that have passed, in their order.
    pub runs: Vec<Run>,
    /// The number of new segments.
    pub new: u64,
    /// Bytes of all payloads.
    pub bytes: u64,
    /// No more data was available.
    pub emptied: bool,
    /// Time of the last read or attempt.
    pub read_at: f64,
    /// Error of the socket after this data.
    pub lost: Option<io::Error>,
}

/// Segments that follow one another, and where in the row of payloads theirs begins and ends.
#[derive(Clone, Copy, Debug)]
struct Span {
    first: u64,
    count: u64,
    begin: usize,
    end: usize,
}

/// Buffers for the datagrams of one optical phase, and their expected origin.
#[derive(Debug)]
pub struct Light {
    expected: Expected,
    scatter: Scatter,
    block_segments: usize,
    recovery: Option<Recovery>,
    headers: Vec<u8>,
    payloads: Vec<u8>,
}

impl Light {
    /// Reader of blocks of `block_segments` segments. `joined`: the kernel combines several datagrams in one message,
    /// each of which gets room for a block; otherwise a message has room for one datagram, and longer ones are
    /// rejected. Parity segments are rejected without `recovery`, whose blocks are the same.
    pub fn new(
        expected: Expected,
        block_segments: usize,
        joined: bool,
        recovery: Option<Recovery>,
    ) -> Result<Self, Fault> {
        let body = expected.segment_size;
        if !(1..=MAX_SEGMENTS as usize).contains(&block_segments) || !(1..=LARGEST_SEGMENT).contains(&body) {
            return Err(Fault::Program(format!("light of {block_segments} segments of {body} bytes")));
        }
        let scatter = Scatter { head: HEADER_BYTES, body, parts: if joined { block_segments } else { 1 } };
        let [headers, payloads] = [HEADER_BYTES, body].map(|part| vec![0; ROWS * block_segments * part]);
        Ok(Light { expected, scatter, block_segments, recovery, headers, payloads })
    }

    /// Read available data into `assembly`, and later data as long as the call may `stay`; reject segments from `stop`
    /// on.
    pub fn read(
        &mut self,
        socket: BorrowedFd<'_>,
        assembly: &mut Assembly,
        store: &FileStore,
        stop: u64,
        stay: Stay<'_>,
    ) -> Result<ReadResult, Fault> {
        if (assembly.count(), assembly.size()) != (self.block_segments as u64, self.expected.segment_size) {
            return Err(Fault::Program("light of other blocks than those of the assembly".to_owned()));
        }
        let mut result = ReadResult::default();
        let mut left = BLOCKS_PER_READ * self.block_segments;
        let began = Instant::now();
        loop {
            (result.read_at, result.emptied) = (monotonic(), false);
            while left > 0 && began.elapsed() < stay.reads_for {
                self.read_once(socket, assembly, store, stop, (&mut result, &mut left))?;
                if result.emptied {
                    break;
                }
            }
            if !result.emptied || result.lost.is_some() || !stay.goes_on(&result, socket) {
                return Ok(result);
            }
        }
    }

    /// Read and process one group of the datagrams that are `left` for this call.
    fn read_once(
        &mut self,
        socket: BorrowedFd<'_>,
        assembly: &mut Assembly,
        store: &FileStore,
        stop: u64,
        (result, left): (&mut ReadResult, &mut usize),
    ) -> Result<(), Fault> {
        let (heads, bodies) = (&mut self.headers, &mut self.payloads);
        match receive_scattered(socket, heads, bodies, self.scatter) {
            Ok(messages) => {
                let spans = self.spans(&messages, assembly);
                self.take(&spans, assembly, store, stop, result)?;
                // There was room for more.
                result.emptied = messages.len() * self.scatter.parts < ROWS * self.block_segments;
                *left = left.saturating_sub(self.datagrams(&messages));
            }
            Err(error) if is_passing(&error) => *left -= 1,
            Err(error) => {
                result.lost = lost(error);
                result.emptied = true;
            }
        }
        Ok(())
    }

    /// Return the number of datagrams, at least one for each message.
    fn datagrams(&self, messages: &[Message]) -> usize {
        let datagram = HEADER_BYTES + self.scatter.body;
        messages.iter().map(|message| message.length.div_ceil(datagram).max(1)).sum()
    }

    /// Return the runs of accepted segments; the others are refused.
    fn spans(&self, messages: &[Message], assembly: &mut Assembly) -> Vec<Span> {
        let Scatter { head, body, parts } = self.scatter;
        let mut spans = Vec::new();
        for (number, message) in messages.iter().enumerate() {
            match self.expected.segments(message, &self.headers[number * parts * head..]) {
                Ok(segments) => {
                    let begin = number * parts * body;
                    let end = begin + message.length - segments.len() * head;
                    spans.extend(in_runs(&segments, Span { first: 0, count: 0, begin, end }, body));
                }
                Err(refused) => assembly.refuse(refused),
            }
        }
        spans
    }

    /// Add segments that can be the sender's, and record that they have passed.
    fn take(
        &mut self,
        spans: &[Span],
        assembly: &mut Assembly,
        store: &FileStore,
        stop: u64,
        result: &mut ReadResult,
    ) -> Result<(), Fault> {
        let mut possible = Vec::with_capacity(spans.len());
        for span in spans {
            result.bytes += (span.end - span.begin) as u64;
            match span.first.checked_add(span.count).filter(|end| *end <= stop) {
                Some(end) => {
                    append(&mut result.runs, span.first, end);
                    if let Some(recovery) = &mut self.recovery {
                        recovery.arrived(span.first, end);
                    }
                    self.cut_at_blocks(*span, &mut possible);
                }
                None => self.keep(*span, assembly, store, stop)?,
            }
        }
        let (mut row, mut rest) = (Row::default(), possible.as_slice());
        while let [span, others @ ..] = rest {
            let (taken, behind) = match self.whole(rest) {
                Some(whole) if assembly.has_room_for(store, span.first / self.block_segments as u64)? => whole,
                _ => (*span, others),
            };
            let piece =
                Piece { first: taken.first, count: taken.count, payload: &self.payloads[taken.begin..taken.end] };
            result.new += assembly.add(store, &mut row, piece)?;
            rest = behind;
        }
        close(store, &mut row)?;
        if let Some(recovery) = &mut self.recovery {
            let (runs, new) = recovery.compute(assembly, store)?;
            result.new += new;
            for (first, end) in runs {
                append(&mut result.runs, first, end);
            }
        }
        Ok(())
    }

    /// Keep parity segments; refuse others.
    fn keep(&mut self, span: Span, assembly: &mut Assembly, store: &FileStore, stop: u64) -> Result<(), Fault> {
        let payload = &self.payloads[span.begin..span.end];
        let kept = match (&mut self.recovery, parity_of(span.first)) {
            (Some(recovery), Some(place)) => recovery.keep(assembly, store, place, payload, stop)?,
            _ => false,
        };
        if !kept {
            assembly.refuse(span.count);
        }
        Ok(())
    }

    /// Split at the borders of blocks.
    fn cut_at_blocks(&self, mut span: Span, cut: &mut Vec<Span>) {
        let whole = self.block_segments as u64;
        loop {
            let here = whole - span.first % whole;
            if span.count <= here {
                cut.push(span);
                return;
            }
            let end = span.begin + here as usize * self.scatter.body;
            cut.push(Span { count: here, end, ..span });
            span = Span { first: span.first + here, count: span.count - here, begin: end, ..span };
        }
    }

    /// Return a complete block that several of these form in one piece of memory, and the remaining ones. Where the
    /// kernel does not combine datagrams, or combines them across the borders of blocks, this avoids a copy.
    fn whole<'a>(&self, spans: &'a [Span]) -> Option<(Span, &'a [Span])> {
        let [first, others @ ..] = spans else { return None };
        if first.first % self.block_segments as u64 != 0 {
            return None;
        }
        let mut joined = *first;
        let mut rest = others;
        while (joined.count as usize) < self.block_segments {
            let [next, others @ ..] = rest else { return None };
            if next.first != joined.first + joined.count || next.begin != joined.end {
                return None;
            }
            (joined.count, joined.end, rest) = (joined.count + next.count, next.end, others);
        }
        (joined.end - joined.begin == self.block_segments * self.scatter.body).then_some((joined, rest))
    }
}

impl Stay<'_> {
    /// Wait for more data, and let it collect; return whether this call continues to read.
    fn goes_on(&self, result: &ReadResult, socket: BorrowedFd<'_>) -> bool {
        let passed: u64 = result.runs.iter().map(|run| run.1 - run.0).sum();
        if passed >= self.segments || result.runs.len() > 1 {
            return false;
        }
        let left = self.until - monotonic();
        if left <= 0.0 || readable_within(self.and(socket), Duration::from_secs_f64(left)) != Some([true, false, false])
        {
            return false;
        }
        let now = monotonic();
        let pause = (result.read_at + self.gathers - now).min(self.max_wait).min(self.until - now);
        pause < SHORTEST_PAUSE || readable_within(self.woken, Duration::from_secs_f64(pause)) == Some([false, false])
    }

    fn and<'a>(&'a self, socket: BorrowedFd<'a>) -> [BorrowedFd<'a>; 3] {
        [socket, self.woken[0], self.woken[1]]
    }
}

/// Return the segments of a message, whose payloads lie from `all.begin` to `all.end`, as runs of consecutive ones.
fn in_runs(segments: &[u64], all: Span, size: usize) -> impl Iterator<Item = Span> {
    let follows = |one: &u64, other: &u64| one.checked_add(1) == Some(*other);
    let mut begin = all.begin;
    segments.chunk_by(follows).map(move |run| {
        let end = all.end.min(begin + run.len() * size);
        let span = Span { first: run[0], count: run.len() as u64, begin, end };
        begin = end;
        span
    })
}

/// Return whether the error is temporary: an ICMP error of an earlier datagram, or a signal.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};
    use std::{env, process};

    use super::*;
    use crate::books::Shape;
    use crate::coding::{Groups, MAX_PARITY, number_of};
    use crate::digests::DIGEST_BYTES;
    use crate::layout::Cut;

    const SEGMENTS: usize = 4;
    const SIZE: usize = 10;
    /// Segments of a coding group.
    const GROUP: u64 = 2 * SEGMENTS as u64;
    const BLOCKS: u64 = 2000;
    const SESSION: u32 = 77;
    const SOURCE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4000);
    const CALLS: usize = 500;

    /// Random numbers by xorshift64* (Vigna, 2016), and the segment near which most test segments lie.
    struct Chance(u64, u64);

    impl Chance {
        fn any(&mut self) -> u64 {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
        }

        fn below(&mut self, limit: usize) -> usize {
            (self.any() % limit as u64) as usize
        }

        /// True once in `times` calls.
        fn rarely(&mut self, times: usize) -> bool {
            self.below(times) == 0
        }

        fn segment(&mut self) -> u64 {
            match self.below(20) {
                0 => self.any(),
                1 => u64::MAX - self.below(3 * SEGMENTS) as u64,
                2 => self.below(SEGMENTS * (BLOCKS as usize + 2)) as u64,
                3 => number_of(self.below(BLOCKS as usize) as u64, self.below(MAX_PARITY + 2)),
                4 => number_of(self.1 / GROUP, self.below(MAX_PARITY)),
                _ => self.1 + self.below(20 * SEGMENTS) as u64,
            }
        }
    }

    fn store(size: Option<u64>, number: u64) -> FileStore {
        let file = |name: &str| {
            let path = env::temp_dir().join(format!("blast-fuzz-{}-{number}-{name}", process::id()));
            let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
            fs::remove_file(path).unwrap();
            file
        };
        let shape = Shape { block_size: (SEGMENTS * SIZE) as u64, size, ahead: 1000 };
        FileStore::new(file("data"), file("records"), shape, None)
    }

    /// The `number`-th message as the kernel would leave it: usually valid and complete.
    fn message(light: &mut Light, number: usize, chance: &mut Chance) -> Message {
        let Scatter { head, body, parts } = light.scatter;
        let (count, first) = (1 + chance.below(parts), chance.segment());
        for part in 0..parts {
            let flags = if chance.rarely(60) { chance.any() as u32 } else { 0 };
            let session = if chance.rarely(60) { chance.any() as u32 } else { SESSION };
            let segment = if chance.rarely(30) { chance.segment() } else { first.wrapping_add(part as u64) };
            let begin = (number * parts + part) * head;
            let header = [&session.to_le_bytes()[..], &flags.to_le_bytes(), &segment.to_le_bytes()].concat();
            light.headers[begin..begin + head].copy_from_slice(&header);
        }
        let fill = chance.any() as u8;
        light.payloads[number * parts * body..(number + 1) * parts * body].fill(fill);
        let max_length = parts * (head + body);
        let length = match chance.below(6) {
            0 => chance.below(max_length + 1),
            1 => count * (head + body) - chance.below(body),
            _ => count * (head + body),
        };
        let source = (!chance.rarely(60)).then_some(SOURCE);
        Message { length, truncated: chance.rarely(60), source }
    }

    /// Concurrent events: repairs of missing and other segments, wrong digests, requests.
    fn meanwhile(assembly: &mut Assembly, store: &FileStore, chance: &mut Chance) {
        let (first, stop) = (chance.segment(), chance.segment());
        assembly.missing(store, first.min(stop), first.max(stop)).unwrap();
        let row = [chance.any() as u8; 3 * SEGMENTS * SIZE];
        for (first, stop) in assembly.missing(store, 0, chance.1).unwrap() {
            let length = row.len().min((stop - first) as usize * SIZE);
            assembly.repair(store, &[(first, &row[..length])]).unwrap();
        }
        assembly.repair(store, &[(chance.segment(), &row[..chance.below(row.len())])]).unwrap();
        let known = chance.below(BLOCKS as usize) as u64;
        store.books().unwrap().expect(known, &[[chance.any() as u8; DIGEST_BYTES]; 2]);
        assembly.take_wrong(store).unwrap();
    }

    #[test]
    #[ignore = "ten million messages, or BLAST_SOAK_MESSAGES: make soak"]
    fn random_messages_cause_no_panic_and_no_fault() {
        let (mut chance, mut held) = (Chance(2026, 0), 0);
        let messages = env::var("BLAST_SOAK_MESSAGES").map_or(10_000_000, |text| text.parse().unwrap());
        let sessions = (messages / (CALLS * ROWS) as u64).max(1);
        for number in 0..sessions {
            let size = BLOCKS * 40 - chance.below(3 * SIZE) as u64;
            let store = store((number % 3 > 0).then_some(size), number);
            let mut assembly = Assembly::new(&store, SEGMENTS as u64, SIZE, 40).unwrap();
            let expected = Expected { source: SOURCE, session: SESSION, segment_size: SIZE };
            let cut = Cut { size, segment_size: SIZE, block_segments: SEGMENTS };
            let known = store.books().unwrap().shape().size.is_some();
            let recovery = known.then(|| Recovery::new(Groups::new(cut, GROUP as usize / SEGMENTS).unwrap()));
            let mut light = Light::new(expected, SEGMENTS, number % 2 == 0, recovery).unwrap();
            let mut result = ReadResult::default();
            for call in 0..CALLS {
                chance.1 = BLOCKS * SEGMENTS as u64 * call as u64 / CALLS as u64;
                let messages: Vec<Message> = (0..ROWS).map(|row| message(&mut light, row, &mut chance)).collect();
                let spans = light.spans(&messages, &mut assembly);
                let stop = if chance.rarely(10) { chance.segment() } else { SEGMENTS as u64 * BLOCKS };
                result.runs.clear();
                light.take(&spans, &mut assembly, &store, stop, &mut result).unwrap();
                assert!(result.runs.iter().all(|run| run.0 < run.1 && run.1 <= stop));
                if chance.rarely(20) {
                    meanwhile(&mut assembly, &store, &mut chance);
                }
            }
            store.end_at(size).unwrap();
            assembly.settle(&store).unwrap();
            held += store.books().unwrap().held().held();
        }
        // The test must not consist of refused segments alone.
        assert!(held > sessions * BLOCKS / 10, "{held}");
    }
}
