package org.blast.spark;

/**
 * Pauses after failures, so that a job loses little by them: each failure in a row doubles the pause. Broadcasts that
 * were under way at the same time fail for the same reason, and count as one failure. The owner guards it.
 */
final class Backoff {
  static final long LONGEST_NANOS = 600_000_000_000L;

  private final long firstNanos;
  private long pause;
  private long failedAt;

  /** Create one whose first pause takes `firstNanos` nanoseconds. */
  Backoff(long firstNanos) {
    this.firstNanos = firstNanos;
  }

  /** Whether a broadcast may be tried at `now`, in nanoseconds. */
  boolean allows(long now) {
    return pause == 0 || now - failedAt >= pause;
  }

  /** Note a success. */
  void succeeded() {
    pause = 0;
  }

  /**
   * Note the failure at `now` of a broadcast that was announced at `announced`.
   *
   * @return false where it was under way at the last failure, which counts for both
   */
  boolean failed(long announced, long now) {
    if (pause > 0 && announced - failedAt <= 0) {
      return false;
    }
    pause = Math.min(LONGEST_NANOS, Math.max(firstNanos, 2 * pause));
    failedAt = now;
    return true;
  }

  /** Return the seconds of the pause after the last failure. */
  double seconds() {
    return pause / 1e9;
  }
}
