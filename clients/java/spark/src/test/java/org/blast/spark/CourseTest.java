package org.blast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Who waits for a broadcast, and for how long. */
class CourseTest {
  private static final long MILLI = 1_000_000;
  private final Door.Guest one = guest("1", "h2");
  private final Door.Guest two = guest("2", "h2");
  private final Door.Guest three = guest("3", "h3");

  @Test
  void theLastOfAHostIsTheLastWhoWaitsThere() {
    Course course = course(1000, one, two, three);
    assertEquals(Set.of(one, two, three), course.told());
    assertFalse(course.isLast(one));
    assertFalse(course.isLast(one));
    assertTrue(course.isLast(two));
    assertEquals(Set.of(one, two), Set.copyOf(course.on("h2")));
    assertTrue(course.isLast(three));
    assertFalse(course.isLast(three));
    assertFalse(course.isLast(guest("4", "h4")));
  }

  @Test
  void anExecutorThatJoinsTwiceIsTwoWhoWait() {
    Door.Guest again = guest("1", "h2");
    Course course = course(1000, one, again);
    assertFalse(course.isLast(one));
    assertTrue(course.isLast(again));
  }

  @Test
  void itIsOverWhenNothingIsSentAndNobodyWaits() {
    Course course = course(1000, one);
    assertTrue(course.isSending());
    assertTrue(course.end());
    assertFalse(course.end());
    assertFalse(course.isSending());
    assertFalse(course.isOver());
    course.isLast(one);
    assertTrue(course.isOver());
  }

  @ParameterizedTest
  // 1000 bytes in 1000 ms: judged from the half on, with a twentieth of mercy.
  @CsvSource({
    "499, 0, true", "500, 0, false", "500, 476, false", "500, 477, true", "900, 850, false", "900, 860, true",
    "1060, 1000, false",
  })
  void itIsWorthGoingOnOnlyIfItComesInTime(long millis, long bytes, boolean inTime) {
    assertEquals(inTime, course(1000, one).isInTime(bytes, millis * MILLI));
  }

  @Test
  void whereNobodyWaitsItIsAlwaysInTime() {
    assertTrue(course(0, one).isInTime(0, 10_000 * MILLI));
  }

  @ParameterizedTest
  // log2(hosts + 1) copies by the link.
  @CsvSource({
    "125000000, 1, 1e9, 1000", "125000000, 3, 1e9, 2000", "125000000, 7, 1e9, 3000", "125000000, 7, 1e10, 300",
    "1, 1, 1e12, 0", "1000000000, 1000, 1, 600000", "9223372036854775807, 2147483647, 1e-9, 600000",
  })
  void aTaskIsHeldNoLongerThanSparkWouldTake(long bytes, int hosts, double rate, long millis) {
    assertEquals(millis, HoldTime.millis(bytes, hosts, rate));
  }

  @ParameterizedTest
  @CsvSource({
    "3, 10, 20, false", "3, 10, 21, true", "3, 10, 30, true", "3, 10, 31, false", "3, 10, 0, false", "1, 10, 0, false",
    "1, 10, 1, true", "2147483647, 2147483647, 4611686014132420609, true", "2147483647, 2147483647, 1, false",
    "2147483647, 2147483647, -1, false",
  })
  void aFileFitsWhichHasAllPieces(int pieces, int pieceBytes, long bytes, boolean fits) {
    assertEquals(fits, new Announcement(1, "a/b", pieces, pieceBytes, 0).fits(bytes));
  }

  private static Course course(long holdMillis, Door.Guest... guests) {
    return new Course(new Announcement(1, "a/1-x", 10, 100, holdMillis), List.of(guests), 0);
  }

  static Door.Guest guest(String executor, String host) {
    return new Door.Guest(new Message.Hello(executor, host, "127.0.0.1:9095"), new java.net.Socket());
  }
}
