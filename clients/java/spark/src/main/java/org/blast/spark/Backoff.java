package org.blast.spark;

/**
 * Exponential backoff: each consecutive failure doubles the pause, so that failures cost a job little. Concurrent
 * broadcasts usually fail for the same reason and count as one failure. Not thread-safe.
 */
final class Backoff {
  static final long MAX_NANOS = 600_000_000_000L;

  private final long firstNanos;
  private long pause;
  private long failedAt;

  /** Set the first pause to `firstNanos` nanoseconds. */
  Backoff(long firstNanos) {
    this.firstNanos = firstNanos;
  }

  /** Return true if no pause is in effect at `now`, in nanoseconds. */
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
   * @return false if it was in progress at the last failure, which counts for both
   */
  boolean failed(long announced, long now) {
    if (pause > 0 && announced - failedAt <= 0) {
      return false;
    }
    pause = Math.min(MAX_NANOS, Math.max(firstNanos, 2 * pause));
    failedAt = now;
    return true;
  }

  /** Return the seconds of the pause after the last failure. */
  double seconds() {
    return pause / 1e9;
  }
}
