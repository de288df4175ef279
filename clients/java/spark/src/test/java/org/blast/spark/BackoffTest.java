package org.blast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class BackoffTest {
  private final Backoff backoff = new Backoff();

  @Test
  void eachFailureInARowDoublesThePause() {
    long now = Long.MAX_VALUE - Backoff.FIRST_NANOS / 2;
    assertTrue(backoff.allows(now));
    for (long pause = Backoff.FIRST_NANOS; pause < Backoff.LONGEST_NANOS; pause *= 2) {
      backoff.failed(now);
      assertFalse(backoff.allows(now + pause - 1));
      now += pause;
      assertTrue(backoff.allows(now));
    }
    backoff.failed(now);
    backoff.failed(now);
    assertEquals(Backoff.LONGEST_NANOS / 1e9, backoff.seconds());
    assertTrue(backoff.allows(now + Backoff.LONGEST_NANOS));
  }

  @Test
  void oneSuccessEndsIt() {
    backoff.failed(0);
    backoff.failed(0);
    backoff.succeeded();
    assertTrue(backoff.allows(0));
    backoff.failed(0);
    assertTrue(backoff.allows(Backoff.FIRST_NANOS));
  }
}
