//! Resource usage of the calling thread.

use std::io;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// Until a moment: by the clock, seconds of the processor, how often it waited of its own, and was preempted.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    pub clock: Instant,
    pub processor: Duration,
    pub waits: i64,
    pub preemptions: i64,
}

impl Usage {
    pub fn now() -> io::Result<Self> {
        let mut found = MaybeUninit::<libc::rusage>::uninit();
        // SAFETY: there is room for what the call writes.
        if unsafe { libc::getrusage(libc::RUSAGE_THREAD, found.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has succeeded, and has initialized the value.
        let found = unsafe { found.assume_init() };
        let processor = spent(found.ru_utime) + spent(found.ru_stime);
        Ok(Usage { clock: Instant::now(), processor, waits: found.ru_nvcsw, preemptions: found.ru_nivcsw })
    }
}

fn spent(time: libc::timeval) -> Duration {
    let [seconds, micros] = [time.tv_sec, time.tv_usec].map(|part| u64::try_from(part).unwrap_or_default());
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}
