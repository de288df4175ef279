//! Reading of optical datagrams, for Python: one call reads available data without waiting.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;
use std::sync::Mutex;

use blast_blocks::{Cut, Expected, Fault, Groups, READS_FOR, Recovery, Run, Stay};
use blast_boundary::with_all_lent;
use pyo3::prelude::*;

use crate::assembly::Assembly;
use crate::errors::at_once;
use crate::link::{Lost, number_of};

/// Datagrams of one session from one address.
#[pyclass(frozen, module = "blast_engine_native")]
pub struct Light(Mutex<blast_blocks::Light>);

#[pymethods]
impl Light {
    /// Reader of datagrams from `source`, an IP address and a port; blocks have `segments` segments of `size` bytes;
    /// `joined` is that of `blast_blocks::Light`. `coding`: (bytes of the file, blocks of a coding group), if the sender
    /// sends parity segments.
    #[new]
    #[pyo3(signature = (source, session, *, segments, size, joined, coding))]
    fn new(
        source: (String, u16),
        session: u32,
        segments: usize,
        size: usize,
        joined: bool,
        coding: Option<(u64, usize)>,
    ) -> PyResult<Self> {
        at_once(|| {
            let (address, port) = source;
            let strange = |_| Fault::Program(format!("light from {address:?}"));
            let source = SocketAddr::new(address.parse::<IpAddr>().map_err(strange)?, port);
            let expected = Expected { source, session, segment_size: size };
            let recovery = coding.map(|(file_size, blocks)| {
                let cut = Cut { size: file_size, segment_size: size, block_segments: segments };
                Groups::new(cut, blocks).map(Recovery::new)
            });
            Ok(Light(Mutex::new(blast_blocks::Light::new(expected, segments, joined, recovery.transpose()?)?)))
        })
    }

    /// Read from this socket as `blast_blocks::Light` does, for (until, segments) and (`gathers`, `max_wait`) of a
    /// `blast_blocks::Stay`, while none of `woken` is readable; return the runs that have passed, the number of new
    /// segments, the bytes, whether that was all, the time of the last read, and the error of the socket.
    #[expect(clippy::too_many_arguments, reason = "one call for a whole read")]
    fn read(
        &self,
        py: Python<'_>,
        socket: RawFd,
        assembly: &Bound<'_, Assembly>,
        stop: u64,
        limits: (f64, u64),
        gathering: (f64, f64),
        woken: [RawFd; 2],
    ) -> PyResult<(Vec<Run>, u64, u64, bool, f64, Lost)> {
        let ((until, segments), (gathers, max_wait)) = (limits, gathering);
        let result = assembly.get().with(py, |assembly, store| {
            let broken = |_| Fault::Program("an earlier panic has left this light half read".to_owned());
            let mut light = self.0.lock().map_err(broken)?;
            with_all_lent([socket, woken[0], woken[1]], |[socket, woken @ ..]| {
                let stay = Stay { reads_for: READS_FOR, until, segments, gathers, max_wait, woken };
                light.read(socket, assembly, store, stop, stay)
            })?
        })?;
        Ok((result.runs, result.new, result.bytes, result.emptied, result.read_at, number_of(result.lost)))
    }
}
