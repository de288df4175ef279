package org.blast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
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
    assertTrue(course.isUnderWay());
    assertTrue(course.end());
    assertFalse(course.end());
    assertFalse(course.isUnderWay());
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
    Course course = course(1000, one);
    course.start(0);
    course.progressed(bytes);
    assertEquals(inTime, course.isInTime(millis * MILLI));
  }

  @ParameterizedTest
  // It was announced at 0, and others had the link for 600 of 1000 ms: 400 are left.
  @CsvSource({"600, 0, true", "799, 0, true", "800, 0, false", "800, 476, false", "800, 477, true"})
  void aBroadcastThatWaitsForTheLinkIsJudgedFromWhenItHasIt(long millis, long bytes, boolean inTime) {
    Course course = course(1000, one);
    assertTrue(course.isInTime(599 * MILLI));
    course.start(600 * MILLI);
    course.progressed(bytes);
    assertEquals(inTime, course.isInTime(millis * MILLI));
  }

  @Test
  void oneIsSentAfterAnotherInTheirOrder() {
    Course first = course(1000, one);
    Course second = course(1000, one);
    Course third = course(1000, one);
    List<Course> all = List.of(first, second, third);
    assertEquals(Optional.empty(), Course.next(all));
    third.ready(1);
    second.ready(1);
    assertEquals(Optional.empty(), Course.next(all));
    first.ready(1);
    assertEquals(Optional.of(first), Course.next(all));
    first.start(0);
    assertEquals(Optional.empty(), Course.next(all));
    first.end();
    assertEquals(Optional.of(second), Course.next(all));
    second.end();
    assertEquals(Optional.of(third), Course.next(all));
  }

  @Test
  void aHostWithoutAFileReceivesNoOtherFile() {
    Announcement announced = new Announcement(1, "a/1-x", 10, 100, 1000, 3, false);
    Door.Guest four = guest("4", "h4");
    Course course = new Course(announced, List.of(one, three, four), Set.of(four), 0);
    assertEquals(Set.of("h2=127.0.0.1:9095", "h3=127.0.0.1:9095"), Set.copyOf(course.receivers()));
    assertFalse(course.announcementTo(one).relayed());
    assertTrue(course.announcementTo(four).relayed());
    course.start(0);
    course.progressed(150);
    assertEquals("1.0", course.send());
    assertEquals(850, course.bytesLeft());
    assertTrue(course.endFile(end(List.of("h2"), Map.of("h3", "it does not answer"))));
    assertEquals("1.1", course.send());
    assertEquals(700, course.bytesLeft());
    assertEquals(List.of("h2=127.0.0.1:9095"), course.receivers());
    assertTrue(course.endFile(end(List.of("h2"), Map.of())));
    assertEquals(List.of(), course.unsent());
    assertFalse(course.endFile(end(List.of("h2"), Map.of())));
    assertEquals(0, course.bytesLeft());
    BroadcastSent sent = course.outcome(2_000 * MILLI);
    assertEquals(1, sent.hosts());
    assertEquals("optical", sent.way());
    assertEquals(1000, sent.bytes());
    course.ready(930);
    assertEquals(930, course.outcome(2_000 * MILLI).bytes());
    assertTrue(sent.reason().startsWith("h3: it does not answer; h4: it has no agent, or a failed one"), sent.reason());
  }

  @Test
  void withoutAHostToReceiveItNoOtherFileIsSent() {
    Course course =
        new Course(new Announcement(1, "a/1-x", 10, 100, 1000, 2, false), List.of(one), Set.of(), 0);
    course.start(0);
    assertFalse(course.endFile(end(List.of(), Map.of("", "refused"))));
    assertEquals(List.of("a/1-x.1"), course.unsent().stream().map(PieceFile::name).toList());
    assertEquals("spark", course.outcome(0).way());
  }

  @ParameterizedTest
  // 4 MB pieces; each file takes a second of the link or more.
  @CsvSource({"8, 40e6, 4", "8, 80e6, 3", "8, 200e6, 1", "8, 1e10, 1", "3, 1e6, 3", "1, 1, 1"})
  void aRelayedBroadcastGoesInFilesOfASecond(int pieces, double rate, int files) {
    assertEquals(files, Announcement.relayedFiles(pieces, 4_000_000, rate));
  }

  @Test
  void filesHaveAllPiecesInOrder() {
    List<PieceFile> files = new Announcement(1, "a/1-x", 10, 100, 0, 3, false).files();
    assertEquals(List.of(0, 3, 6), files.stream().map(PieceFile::first).toList());
    assertEquals(List.of(3, 3, 4), files.stream().map(PieceFile::pieces).toList());
    assertEquals(List.of("a/1-x.0", "a/1-x.1", "a/1-x.2"), files.stream().map(PieceFile::name).toList());
  }

  @Test
  void whereNobodyWaitsItIsAlwaysInTime() {
    Course course = course(0, one);
    course.start(0);
    assertTrue(course.isInTime(10_000 * MILLI));
  }

  @ParameterizedTest
  // log2(hosts + 1) copies by the link.
  @CsvSource({
    "125000000, 1, 1e9, 1000", "125000000, 3, 1e9, 2000", "125000000, 7, 1e9, 3000", "125000000, 7, 1e10, 300",
    "1, 1, 1e12, 0", "1000000000, 1000, 1, 600000", "9223372036854775807, 2147483647, 1e-9, 600000",
  })
  void aTaskIsHeldNoLongerThanSparkWouldTake(long bytes, int hosts, double rate, long millis) {
    assertEquals(millis, HoldTime.millis(bytes, List.of(), hosts, rate));
  }

  @Test
  void readersAreHeldForTheSumOfWhatIsUnderWay() {
    // Four of the same size, 1 s of the link each, to three hosts.
    List<Long> before = new ArrayList<>();
    for (long seconds = 2; seconds <= 8; seconds += 2) {
      assertEquals(1000 * seconds, HoldTime.millis(125_000_000, before, 3, 1e9));
      assertEquals(500 * seconds, HoldTime.sendMillis(125_000_000, before, 1e9));
      before.add(125_000_000L);
    }
  }

  @Test
  void aSmallBroadcastSharesTheLinkWithALargeOneAndDoesNotWaitForItsEnd() {
    List<Long> large = List.of(1_250_000_000L);
    assertEquals(4000, HoldTime.millis(125_000_000, large, 3, 1e9));
    assertEquals(11_000, HoldTime.sendMillis(125_000_000, large, 1e9));
    // What is left of one that is nearly sent.
    assertEquals(2200, HoldTime.millis(125_000_000, List.of(12_500_000L), 3, 1e9));
  }

  @ParameterizedTest
  @CsvSource({
    "3, 10, 20, false", "3, 10, 21, true", "3, 10, 30, true", "3, 10, 31, false", "3, 10, 0, false", "1, 10, 0, false",
    "1, 10, 1, true", "2147483647, 2147483647, 4611686014132420609, true", "2147483647, 2147483647, 1, false",
    "2147483647, 2147483647, -1, false",
  })
  void aFileFitsWhichHasAllPieces(int pieces, int pieceBytes, long bytes, boolean fits) {
    assertEquals(fits, new PieceFile("a/b", 0, pieces, pieceBytes).fits(bytes));
  }

  private static Course course(long holdMillis, Door.Guest... guests) {
    return new Course(new Announcement(1, "a/1-x", 10, 100, holdMillis, 1, false), List.of(guests), Set.of(), 0);
  }

  private static SenderProcess.End end(List<String> delivered, Map<String, String> failed) {
    return new SenderProcess.End(delivered, failed, List.of("optical"), 1, null);
  }

  static Door.Guest guest(String executor, String host) {
    return guest(executor, host, "127.0.0.1:9095");
  }

  static Door.Guest guest(String executor, String host, String agent) {
    return new Door.Guest(new Message.Hello(executor, host, agent), new java.net.Socket());
  }
}
