//! Sending of optical bursts, for Python: calls that send within given limits.

use std::os::fd::RawFd;
use std::sync::Mutex;

use blast_blocks::{
    Cut, Ends, Fault, Groups, LARGEST_SEGMENT, MAX_BLOCKS, MAX_SEGMENTS, Pace, Schedule, Sent, Spot, Step,
};
use blast_boundary::with_all_lent;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{at_once, waiting};

/// (block, segment), as in `blast_blocks::Spot`.
type InFile = (u64, usize);

/// (bursts, datagrams, bytes on the wire) that were sent.
type SentCounts = (usize, u64, u64);

/// (bursts, now, until), as in `blast_blocks::Step`.
type InTime = (usize, f64, f64);

/// Of both schedules of a `blast_blocks::Pace`: (rate, tolerance, next).
type Schedules = [(f64, f64, f64); 2];

/// Error number of the socket, and the bytes of the rejected datagrams.
type Refused = Option<(i32, usize)>;

/// `blast_blocks::Bursts` of a `session` and a file of (size, segment size, segments of a block).
///
/// `ends` are descriptors of a socket that is connected to the group, of the file, and of one that is readable when a
/// call has to end; the caller keeps them open.
#[pyclass(frozen, module = "blast_engine_native")]
pub struct Bursts(Cut, Mutex<blast_blocks::Bursts>);

#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
#[pymethods]
impl Bursts {
    #[new]
    fn new(session: u32, cut: (u64, usize, usize), offload: bool) -> PyResult<Self> {
        at_once(|| {
            let (size, segment_size, block_segments) = cut;
            let possible =
                (1..=LARGEST_SEGMENT).contains(&segment_size) && (1..=MAX_SEGMENTS as usize).contains(&block_segments);
            if !possible || size > MAX_BLOCKS * (segment_size * block_segments) as u64 {
                return Err(Fault::Program(format!("{size} bytes in {block_segments} segments of {segment_size}")));
            }
            let cut = Cut { size, segment_size, block_segments };
            Ok(Bursts(cut, Mutex::new(blast_blocks::Bursts::new(session, cut, offload))))
        })
    }

    #[getter]
    fn offload(&self) -> PyResult<bool> {
        at_once(|| self.locked(|bursts| Ok(bursts.offload())))
    }

    /// Send from `spot` on, within `run`, (stop, piece), `step` and `schedules`; return the next spot, the counts, the
    /// time of the next burst by each schedule, the digests of the blocks read from `digested` on, and the error of the
    /// socket.
    ///
    /// Raises `EOFError` with the end of the file, if it became shorter.
    #[expect(clippy::too_many_arguments, reason = "one call for a whole step")]
    #[expect(clippy::type_complexity, reason = "a tuple of what is named above")]
    fn go_on<'py>(
        &self,
        py: Python<'py>,
        ends: (RawFd, RawFd, RawFd),
        spot: InFile,
        run: (u64, usize),
        step: InTime,
        schedules: Schedules,
        digested: u64,
    ) -> PyResult<(InFile, SentCounts, (f64, f64), Bound<'py, PyBytes>, Refused)> {
        let mut spot = Spot { block: spot.0, segment: spot.1 };
        let step = Step { bursts: step.0, now: step.1, until: step.2 };
        let mut pace = Pace(schedules.map(|(rate, tolerance, next)| Schedule { rate, tolerance, next }));
        let sent =
            self.sending(py, ends, |bursts, ends| bursts.go_on(ends, &mut spot, run, &mut pace, step, digested))?;
        let digests = PyBytes::new(py, &sent.digests);
        let [average, peak] = pace.0.map(|schedule| schedule.next);
        Ok(((spot.block, spot.segment), sent_counts(&sent), (average, peak), digests, refused(&sent)))
    }

    /// Retransmit the segments of each (block, mask); return the counts, and the error of the socket.
    fn again(
        &self,
        py: Python<'_>,
        ends: (RawFd, RawFd, RawFd),
        retransmissions: Vec<(u64, u64)>,
    ) -> PyResult<(SentCounts, Refused)> {
        let sent = self.sending(py, ends, |bursts, ends| bursts.again(ends, &retransmissions))?;
        Ok((sent_counts(&sent), refused(&sent)))
    }

    /// Send parity segments of a group of `blocks` blocks, (group, first, behind the last); return as `again` does.
    fn parity(
        &self,
        py: Python<'_>,
        ends: (RawFd, RawFd, RawFd),
        blocks: usize,
        parity: (u64, usize, usize),
    ) -> PyResult<(SentCounts, Refused)> {
        let (group, first, stop) = parity;
        let groups = at_once(|| Groups::new(self.0, blocks))?;
        let sent = self.sending(py, ends, |bursts, ends| bursts.parity(ends, groups, group, (first, stop)))?;
        Ok((sent_counts(&sent), refused(&sent)))
    }
}

impl Bursts {
    fn sending(
        &self,
        py: Python<'_>,
        (light, file, woken): (RawFd, RawFd, RawFd),
        work: impl FnOnce(&mut blast_blocks::Bursts, Ends<'_>) -> Result<Sent, Fault> + Send,
    ) -> PyResult<Sent> {
        waiting(py, || {
            self.locked(|bursts| {
                with_all_lent([light, file, woken], |[light, file, woken]| work(bursts, Ends { light, file, woken }))?
            })
        })
    }

    fn locked<T>(&self, work: impl FnOnce(&mut blast_blocks::Bursts) -> Result<T, Fault>) -> Result<T, Fault> {
        let broken = |_| Fault::Program("an earlier panic has left these bursts half sent".to_owned());
        work(&mut *self.1.lock().map_err(broken)?)
    }
}

fn sent_counts(sent: &Sent) -> SentCounts {
    (sent.bursts, sent.datagrams, sent.wire_bytes)
}

fn refused(sent: &Sent) -> Refused {
    sent.refused.as_ref().map(|(error, size)| (error.raw_os_error().unwrap_or_default(), *size))
}
