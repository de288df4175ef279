//! Time of the next burst, by two schedules that must both permit it.
//!
//! `blast_transport/datagrams/pacing.py` is the reference, and has the reason for two.

/// A virtual clock that advances with every bit and never falls more than `tolerance` seconds behind.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Bits in a second.
    pub rate: f64,
    pub tolerance: f64,
    /// When the next burst may leave; of the clock that `blast_boundary::monotonic` reads, as every moment here.
    pub next: f64,
}

/// The average one, and that of the peak.
#[derive(Clone, Copy, Debug)]
pub struct Pace(pub [Schedule; 2]);

impl Pace {
    /// Return the seconds until the next burst may leave; 0: it may leave now.
    pub fn delay(&self, now: f64) -> f64 {
        self.0.iter().map(|schedule| schedule.next - now).fold(0.0, f64::max)
    }

    /// Record `wire_bytes` that left.
    pub fn sent(&mut self, wire_bytes: u64, now: f64) {
        for schedule in &mut self.0 {
            schedule.next = schedule.next.max(now - schedule.tolerance) + wire_bytes as f64 * 8.0 / schedule.rate;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Pace, Schedule};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sent_bits_never_exceed_either_schedule(
            rate in 1e6..1e11_f64,
            tolerances in (1e-4..1e-1_f64, 1e-4..1e-1_f64),
            bursts in prop::collection::vec((0.0..0.05_f64, 1..200_000_u64), 1..20),
        ) {
            let schedules = [(rate * 0.995, tolerances.0), (rate, tolerances.1)];
            let mut pace = Pace(schedules.map(|(rate, tolerance)| Schedule { rate, tolerance, next: 0.0 }));
            let (mut now, mut left) = (0.0, Vec::new());
            for (pause, size) in bursts {
                now += pause;
                for _ in 0..10 {
                    if pace.delay(now) > 0.0 {
                        break;
                    }
                    pace.sent(size, now);
                    left.push((now, size as f64 * 8.0));
                }
            }
            for begin in 0..left.len() {
                let mut bits = 0.0;
                for (at, size) in &left[begin..] {
                    // The last burst begins within the limit and may exceed it.
                    for (rate, tolerance) in schedules {
                        prop_assert!(bits <= rate * (at - left[begin].0 + tolerance) * (1.0 + 1e-9) + 1.0);
                    }
                    bits += size;
                }
            }
        }

        #[test]
        fn sender_that_waits_exactly_the_delay_reaches_the_lower_rate(rate in 1e6..1e11_f64, size in 100..70_000_u64) {
            let schedule = |rate| Schedule { rate, tolerance: 0.001, next: 0.0 };
            let (mut pace, mut now, count) = (Pace([schedule(rate / 2.0), schedule(rate)]), 0.0, 1000);
            for _ in 0..count {
                now += pace.delay(now);
                prop_assert!(pace.delay(now) <= 1e-12 * now.max(1.0));
                pace.sent(size, now);
            }
            let expected = f64::from(count) * size as f64 * 16.0 / rate;
            prop_assert!((pace.delay(0.0) - expected).abs() <= expected * 1e-6);
        }
    }
}
