//! Light as Python sees it: one call takes what has come, as far as it goes without waiting.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::RawFd;
use std::sync::Mutex;

use blast_blocks::{Expected, Fault, READS_FOR, Run, Stay};
use blast_boundary::with_all_lent;
use pyo3::prelude::*;

use crate::assembly::Assembly;
use crate::errors::at_once;
use crate::link::{Lost, number_of};

/// What comes from one address for one session.
#[pyclass(frozen, module = "blast_engine_native")]
pub struct Light(Mutex<blast_blocks::Light>);

#[pymethods]
impl Light {
    /// From `source`, an address of IPv4 and a port; blocks have so many `segments` of `size` bytes; `joined` as of
    /// `blast_blocks::Light`.
    #[new]
    #[pyo3(signature = (source, session, *, segments, size, joined))]
    fn new(source: (String, u16), session: u32, segments: usize, size: usize, joined: bool) -> PyResult<Self> {
        at_once(|| {
            let (address, port) = source;
            let strange = |_| Fault::Program(format!("light from {address:?}"));
            let source = SocketAddrV4::new(address.parse::<Ipv4Addr>().map_err(strange)?, port);
            let expected = Expected { source, session, segment_size: size };
            Ok(Light(Mutex::new(blast_blocks::Light::new(expected, segments, joined)?)))
        })
    }

    /// As of `blast_blocks::Light`, from this socket, as long as (until, segments) and (gathers, most) of a
    /// `blast_blocks::Stay` let it, and nothing can be read at the descriptors `woken`: the runs that have passed, how
    /// many segments were new, bytes that came, whether that was all, when it was read last, and what is wrong with the
    /// socket.
    #[expect(clippy::too_many_arguments, reason = "one call for a whole turn")]
    fn read(
        &self,
        py: Python<'_>,
        socket: RawFd,
        assembly: &Bound<'_, Assembly>,
        stop: u64,
        turn: (f64, u64),
        gathering: (f64, f64),
        woken: [RawFd; 2],
    ) -> PyResult<(Vec<Run>, u64, u64, bool, f64, Lost)> {
        let ((until, segments), (gathers, most)) = (turn, gathering);
        let came = assembly.get().with(py, |assembly, store| {
            let broken = |_| Fault::Program("an earlier panic has left this light half read".to_owned());
            let mut light = self.0.lock().map_err(broken)?;
            with_all_lent([socket, woken[0], woken[1]], |[socket, woken @ ..]| {
                let stay = Stay { reads_for: READS_FOR, until, segments, gathers, most, woken };
                light.read(socket, assembly, store, stop, stay)
            })?
        })?;
        Ok((came.runs, came.new, came.bytes, came.emptied, came.read_at, number_of(came.lost)))
    }
}
