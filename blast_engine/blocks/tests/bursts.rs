//! Blocks of a file through real sockets: the received data is the file, in any pattern of calls.

use std::fs::{self, File};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;
use std::{env, process};

use blast_blocks::{Bursts, Cut, Ends, Fault, Pace, Schedule, Sent, Spot, Step, digest};
use blast_boundary::cut_into;
use proptest::prelude::*;

const SESSION: u32 = 0x000B_1A57;
const ALL: usize = 1 << 60;

struct Source(PathBuf, File);

impl Source {
    fn new(name: &str, content: &[u8]) -> Self {
        let path = env::temp_dir().join(format!("blast-bursts-{}-{name}", process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        file.write_all_at(content, 0).unwrap();
        Source(path, file)
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        fs::remove_file(&self.0).unwrap();
    }
}

fn content(size: usize) -> Vec<u8> {
    (0..size).map(|place| (place * 31 + place / 251) as u8).collect()
}

/// A sending socket, with segmentation by the kernel if possible, and a receiving one.
fn pair(cut: Cut) -> (UdpSocket, UdpSocket, bool) {
    let [sender, receiver] = [0; 2].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let offload = cut_into(sender.as_fd(), 16 + cut.segment_size as u16).is_ok();
    (sender, receiver, offload)
}

/// (segment, payload) of `count` datagrams.
fn received(receiver: &UdpSocket, count: u64) -> Vec<(u64, Vec<u8>)> {
    let mut room = vec![0; 1 << 16];
    let mut one = |_| {
        let length = receiver.recv(&mut room).unwrap();
        assert_eq!(room[..8], u64::from(SESSION).to_le_bytes());
        (u64::from_le_bytes(room[8..16].try_into().unwrap()), room[16..length].to_vec())
    };
    (0..count).map(&mut one).collect()
}

/// Return the segments of the file from block `first` up to block `stop`.
fn segments(cut: Cut, content: &[u8], first: u64, stop: u64) -> Vec<(u64, Vec<u8>)> {
    let from = first * cut.block_segments as u64;
    let count = (stop - first) as usize * cut.block_segments;
    let rest = &content[(from as usize * cut.segment_size).min(content.len())..];
    (from..).zip(rest.chunks(cut.segment_size).map(<[u8]>::to_vec)).take(count).collect()
}

/// A pace that permits a burst while at most `bytes` have left before it.
fn allowing(bytes: usize) -> Pace {
    Pace([Schedule { rate: 8.0, tolerance: f64::INFINITY, next: -(bytes as f64) }; 2])
}

/// A step without waiting.
fn at_once(bursts: usize) -> Step {
    Step { bursts, now: 0.0, until: 0.0 }
}

fn wire_bytes(segments: &[(u64, Vec<u8>)]) -> u64 {
    segments.iter().map(|(_, payload)| 58 + payload.len() as u64).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bursts_deliver_the_file_under_any_pattern_of_calls(
        size in 1..3000_usize,
        segment_size in 1..120_usize,
        block_segments in 1..9_usize,
        pieces in prop::collection::vec((1..10_usize, 0..4_usize, 0..2000_usize), 1..8),
    ) {
        let (content, cut) = (content(size), Cut { size: size as u64, segment_size, block_segments });
        let blocks = size.div_ceil(segment_size * block_segments) as u64;
        let source = Source::new("arrives", &content);
        let (sender, receiver, offload) = pair(cut);
        let mut bursts = Bursts::new(SESSION, cut, offload);
        let ends = Ends { light: sender.as_fd(), file: source.1.as_fd(), woken: receiver.as_fd() };
        let (mut spot, mut digests, mut found) = (Spot::default(), Vec::new(), Vec::new());
        let mut go_on = |run, max_bursts: usize, allowed: usize, spot: &mut Spot| {
            let (digested, mut pace) = ((digests.len() / 16) as u64, allowing(allowed));
            let sent = bursts.go_on(ends, spot, run, &mut pace, at_once(max_bursts), digested).unwrap();
            let datagrams = received(&receiver, sent.datagrams);
            assert_eq!(sent.wire_bytes, wire_bytes(&datagrams));
            assert!(sent.bursts <= max_bursts && sent.refused.is_none());
            // Bytes that left before the last burst was permitted.
            let largest = run.1.min(block_segments) * (58 + segment_size);
            assert!(sent.bursts == 0 || sent.wire_bytes <= (allowed + largest) as u64);
            if allowed < ALL {
                assert!((pace.0[0].next + allowed as f64 - sent.wire_bytes as f64).abs() < 1e-6);
            }
            found.extend(datagrams);
            digests.extend(sent.digests);
        };
        for (piece, max_bursts, bytes) in pieces {
            go_on((blocks, piece), max_bursts, bytes, &mut spot);
        }
        while spot.block < blocks {
            let before = spot;
            // A socket's capacity is bounded.
            go_on((blocks, 100), 20, ALL, &mut spot);
            prop_assert!(spot != before);
        }
        prop_assert_eq!(spot, Spot { block: blocks, segment: 0 });
        prop_assert_eq!(found, segments(cut, &content, 0, blocks));
        prop_assert_eq!(digests, content.chunks(segment_size * block_segments).flat_map(digest).collect::<Vec<_>>());
    }

    #[test]
    fn again_resends_the_requested_segments_in_few_bursts(
        size in 1..20_000_usize,
        segment_size in prop::sample::select(vec![7, 100, 1456]),
        retransmissions in prop::collection::vec((0..40_u64, any::<u64>()), 0..6),
    ) {
        let (content, cut) = (content(size), Cut { size: size as u64, segment_size, block_segments: 8 });
        let source = Source::new("again", &content);
        let (sender, receiver, offload) = pair(cut);
        let ends = Ends { light: sender.as_fd(), file: source.1.as_fd(), woken: sender.as_fd() };
        let sent = Bursts::new(SESSION, cut, offload).again(ends, &retransmissions).unwrap();
        let expected: Vec<_> = retransmissions
            .iter()
            .flat_map(|(block, mask)| {
                let all = segments(cut, &content, *block, block + 1).into_iter().enumerate();
                all.filter(move |(index, _)| mask >> index & 1 == 1).map(|(_, segment)| segment)
            })
            .collect();
        prop_assert_eq!(received(&receiver, sent.datagrams), expected.clone());
        prop_assert_eq!(sent.wire_bytes, wire_bytes(&expected));
        let short = expected.iter().filter(|(_, payload)| payload.len() < segment_size).count();
        prop_assert!(sent.bursts <= expected.len().div_ceil(cut.block_segments) + short);
    }
}

#[test]
fn refusal_is_returned_with_the_bursts_sent_before_it() {
    let (content, cut) = (content(1000), Cut { size: 1000, segment_size: 10, block_segments: 4 });
    let source = Source::new("refused", &content);
    let (sender, receiver, offload) = pair(cut);
    drop(receiver);
    let ends = Ends { light: sender.as_fd(), file: source.1.as_fd(), woken: sender.as_fd() };
    let (mut bursts, mut spot) = (Bursts::new(SESSION, cut, offload), Spot::default());
    let sent = bursts.go_on(ends, &mut spot, (25, 3), &mut allowing(ALL), at_once(ALL), 0).unwrap();
    assert_eq!((sent.bursts, sent.datagrams, spot), (1, 3, Spot { block: 0, segment: 3 }));
    assert_eq!(sent.digests, digest(&content[..40]));
    assert!(matches!(sent.refused, Some((error, 26)) if error.kind() == std::io::ErrorKind::ConnectionRefused));
    let again: Sent = bursts.go_on(ends, &mut spot, (1, 3), &mut allowing(ALL), at_once(ALL), 1).unwrap();
    assert_eq!((again.bursts, spot), (1, Spot { block: 1, segment: 0 }), "the refusal is reported once");
}

#[test]
fn truncated_file_fails_the_call_that_sends_nothing() {
    let cut = Cut { size: 1000, segment_size: 10, block_segments: 4 };
    let source = Source::new("shorter", &content(90));
    let (sender, receiver, offload) = pair(cut);
    let ends = Ends { light: sender.as_fd(), file: source.1.as_fd(), woken: sender.as_fd() };
    let (mut bursts, mut spot) = (Bursts::new(SESSION, cut, offload), Spot::default());
    assert_eq!(bursts.go_on(ends, &mut spot, (25, 4), &mut allowing(ALL), at_once(ALL), 0).unwrap().bursts, 2);
    for _ in 0..2 {
        assert!(matches!(
            bursts.go_on(ends, &mut spot, (25, 4), &mut allowing(ALL), at_once(ALL), 2),
            Err(Fault::Shorter(90))
        ));
    }
    assert!(matches!(bursts.again(ends, &[(3, 1)]), Err(Fault::Shorter(120))));
    assert_eq!(received(&receiver, 8), segments(cut, &content(90), 0, 2));
}

#[test]
fn go_on_rejects_invalid_positions() {
    let cut = Cut { size: 100, segment_size: 10, block_segments: 4 };
    let source = Source::new("cannot", &content(100));
    let (sender, _ear, offload) = pair(cut);
    let ends = Ends { light: sender.as_fd(), file: source.1.as_fd(), woken: sender.as_fd() };
    for (block, segment, piece) in [(3, 0, 4), (u64::MAX - 1, 0, 4), (2, 2, 4), (0, usize::MAX, 4), (0, 0, 0)] {
        let mut spot = Spot { block, segment };
        let refused = Bursts::new(SESSION, cut, offload).go_on(
            ends,
            &mut spot,
            (u64::MAX, piece),
            &mut allowing(ALL),
            at_once(ALL),
            0,
        );
        assert!(matches!(refused, Err(Fault::Program(_))), "{spot:?} in pieces of {piece}");
    }
}
