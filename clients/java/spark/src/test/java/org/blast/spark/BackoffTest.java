package org.blast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class BackoffTest {
  private static final long FIRST = 5_000_000_000L;
  private final Backoff backoff = new Backoff(FIRST);

  @Test
  void consecutiveFailuresDoubleThePause() {
    long now = Long.MAX_VALUE - FIRST / 2;
    assertTrue(backoff.allows(now));
    for (long pause = FIRST; pause < Backoff.MAX_NANOS; pause *= 2) {
      assertTrue(backoff.failed(now, now));
      assertFalse(backoff.allows(now + pause - 1));
      now += pause;
      assertTrue(backoff.allows(now));
    }
    assertTrue(backoff.failed(now, now));
    assertTrue(backoff.failed(now + 1, now + 1));
    assertEquals(Backoff.MAX_NANOS / 1e9, backoff.seconds());
    assertTrue(backoff.allows(now + 1 + Backoff.MAX_NANOS));
  }

  @Test
  void successResetsThePause() {
    backoff.failed(0, 0);
    backoff.failed(1, 1);
    backoff.succeeded();
    assertTrue(backoff.allows(1));
    assertTrue(backoff.failed(2, 2));
    assertTrue(backoff.allows(2 + FIRST));
  }

  @Test
  void concurrentFailuresCountOnce() {
    assertTrue(backoff.failed(0, 100));
    assertFalse(backoff.failed(10, 110));
    assertFalse(backoff.failed(100, 160));
    assertEquals(FIRST / 1e9, backoff.seconds());
    assertTrue(backoff.allows(100 + FIRST));
    assertTrue(backoff.failed(100 + FIRST, 101 + FIRST));
    assertEquals(2 * FIRST / 1e9, backoff.seconds());
  }
}
