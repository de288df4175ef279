//! Quantized congestion notification: feedback of a buffer to a flow, and the flow's rate recovery.
//!
//! IEEE 802.1Qau; Alizadeh and others: Data center transport mechanisms: congestion control theory and IEEE
//! standardization. Allerton 2008. Section 4.2 of the paper changes the congestion points and the choice of the
//! notified flow.

use crate::scenario::Qcn;

/// Steps of the feedback.
const STEPS: f64 = 64.0;

/// Samples are taken more often under congestion: share of the bytes between two of them, by eighths of the feedback.
const MORE_OFTEN: [f64; 8] = [1.0, 1.0 / 2.0, 1.0 / 3.0, 1.0 / 4.0, 1.0 / 5.0, 1.0 / 6.0, 1.0 / 7.0, 1.0 / 8.0];

/// A buffer whose occupancy is sampled.
#[derive(Clone, Debug)]
pub struct CongestionPoint {
    equilibrium: f64,
    weight: f64,
    sample: f64,
    until_sample: f64,
    before: f64,
}

impl CongestionPoint {
    /// Create a congestion point for a buffer with this equilibrium.
    pub fn new(qcn: &Qcn, equilibrium_bytes: u64) -> Self {
        let sample = qcn.sample_bytes as f64;
        Self { equilibrium: equilibrium_bytes as f64, weight: qcn.weight, sample, until_sample: sample, before: 0.0 }
    }

    /// Count arrived bytes, with `held` bytes now in the buffer; return the feedback for a flow, 1 to 63, if it is due.
    pub fn arrive(&mut self, bytes: u32, held: u64) -> Option<u32> {
        self.until_sample -= f64::from(bytes);
        if self.until_sample > 0.0 {
            return None;
        }
        let held = held as f64;
        let excess = (held - self.equilibrium) + self.weight * (held - self.before);
        self.before = held;
        let max_excess = self.equilibrium * (1.0 + 2.0 * self.weight);
        let step = if excess > 0.0 { (excess / max_excess * STEPS).min(STEPS - 1.0) as u32 } else { 0 };
        self.until_sample += self.sample * MORE_OFTEN[step as usize / 8];
        (step > 0).then_some(step)
    }
}

/// The rate limiter of a flow at its source, in Gb/s.
#[derive(Clone, Debug)]
pub struct RateLimiter {
    line: f64,
    target: f64,
    current: f64,
    until_cycle: f64,
    byte_cycles: u32,
    timer_cycles: u32,
    active: bool,
}

impl RateLimiter {
    /// Create the limiter of a flow that only its line limits.
    pub fn new(line_gbps: f64) -> Self {
        Self {
            line: line_gbps,
            target: line_gbps,
            current: line_gbps,
            until_cycle: 0.0,
            byte_cycles: 0,
            timer_cycles: 0,
            active: false,
        }
    }

    /// Return the permitted rate.
    pub fn rate(&self) -> f64 {
        self.current
    }

    /// Return whether the flow is limited below its line rate, so that the timer runs.
    pub fn active(&self) -> bool {
        self.active
    }

    /// Reduce the rate after feedback.
    ///
    /// Until a cycle of bytes is over, the recovery target is the rate before the last feedback (as in 802.1Qau):
    /// otherwise a flow with several notifications at once would never recover.
    pub fn notify(&mut self, feedback: u32, qcn: &Qcn) {
        if !self.active || self.byte_cycles > 0 {
            self.target = self.current;
            self.until_cycle = qcn.byte_counter_bytes as f64;
        }
        self.current = (self.current * (1.0 - qcn.decrease_gain * f64::from(feedback))).max(qcn.min_gbps);
        self.byte_cycles = 0;
        self.timer_cycles = 0;
        self.active = true;
    }

    /// Count sent bytes.
    pub fn sent(&mut self, bytes: u32, qcn: &Qcn) {
        if !self.active {
            return;
        }
        self.until_cycle -= f64::from(bytes);
        if self.until_cycle <= 0.0 {
            self.byte_cycles += 1;
            let share = if self.byte_cycles < qcn.fast_recovery_cycles { 1.0 } else { 0.5 };
            self.until_cycle += qcn.byte_counter_bytes as f64 * share;
            self.recover(qcn);
        }
    }

    /// Record that the timer has expired; return the nanoseconds until it expires again.
    pub fn tick(&mut self, qcn: &Qcn) -> u64 {
        self.timer_cycles += 1;
        self.recover(qcn);
        if self.timer_cycles < qcn.fast_recovery_cycles { qcn.timer_ns } else { qcn.timer_ns / 2 }
    }

    fn recover(&mut self, qcn: &Qcn) {
        let min_cycles = self.byte_cycles.min(self.timer_cycles);
        if min_cycles >= qcn.fast_recovery_cycles {
            self.target += qcn.hyper_increase_gbps * f64::from(min_cycles - qcn.fast_recovery_cycles + 1);
        } else if self.byte_cycles.max(self.timer_cycles) >= qcn.fast_recovery_cycles {
            self.target += qcn.increase_gbps;
        }
        self.target = self.target.min(self.line);
        self.current = f64::midpoint(self.current, self.target);
        // The remaining difference is not worth a limiter.
        if self.current >= self.line * 0.9999 {
            *self = Self::new(self.line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_grows_with_buffer_occupancy_and_its_growth() {
        let qcn = Qcn::default();
        let mut point = CongestionPoint::new(&qcn, 1000);
        let mut next = |held| {
            point.until_sample = 1.0;
            point.arrive(1, held)
        };
        assert_eq!(next(900), Some(21), "900 - 1000 + 2 * 900 = 1700, of 5000");
        assert_eq!(next(900), None, "it does not grow, and is below its equilibrium");
        assert_eq!(next(1500), Some(21), "500 + 2 * 600");
        assert_eq!(next(100_000), Some(63));
        assert_eq!(point.arrive(1, 100_000), None, "no sample is due");
    }

    #[test]
    fn rate_drops_on_notification_and_recovers_by_halves() {
        let qcn = Qcn::default();
        let mut limiter = RateLimiter::new(100.0);
        limiter.notify(63, &qcn);
        assert!((limiter.rate() - 100.0 * (1.0 - 63.0 / 128.0)).abs() < 1e-9);
        let low = limiter.rate();
        limiter.sent(qcn.byte_counter_bytes as u32, &qcn);
        assert!((limiter.rate() - f64::midpoint(low, 100.0)).abs() < 1e-9);
        for _ in 0..4 {
            limiter.tick(&qcn);
        }
        assert!(limiter.rate() > 98.0 && limiter.active());
        for _ in 0..20 {
            limiter.tick(&qcn);
        }
        assert!(!limiter.active());
        assert!((limiter.rate() - 100.0).abs() < 1e-9);
    }

    #[test]
    fn two_simultaneous_notifications_keep_the_first_recovery_target() {
        let qcn = Qcn::default();
        let mut limiter = RateLimiter::new(100.0);
        limiter.notify(63, &qcn);
        limiter.notify(63, &qcn);
        assert!(limiter.rate() < 26.0);
        for _ in 0..4 {
            limiter.tick(&qcn);
        }
        assert!(limiter.rate() > 95.0);
        let before = limiter.rate();
        limiter.sent(qcn.byte_counter_bytes as u32, &qcn);
        limiter.notify(63, &qcn);
        for _ in 0..4 {
            limiter.tick(&qcn);
        }
        assert!(
            limiter.rate() < before + (100.0 - before) / 2.0,
            "a cycle is over: the recovery target is the rate at its end"
        );
    }
}
