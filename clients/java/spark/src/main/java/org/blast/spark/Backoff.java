package org.blast.spark;

/**
 * What keeps failing is tried less and less often, so that a job loses little by it: each failure in a row doubles the time
 * in which Spark is left alone. Whoever has it guards it.
 */
final class Backoff {
  static final long FIRST_NANOS = 5_000_000_000L;
  static final long LONGEST_NANOS = 600_000_000_000L;

  private long pause;
  private long until;

  /** Whether to try at this number of nanoseconds. */
  boolean allows(long now) {
    return pause == 0 || now - until >= 0;
  }

  /** It went well. */
  void succeeded() {
    pause = 0;
  }

  /** It did not, and has cost readers time. */
  void failed(long now) {
    pause = Math.min(LONGEST_NANOS, Math.max(FIRST_NANOS, 2 * pause));
    until = now + pause;
  }

  /** For so long from the last failure on, in seconds. */
  double seconds() {
    return pause / 1e9;
  }
}
