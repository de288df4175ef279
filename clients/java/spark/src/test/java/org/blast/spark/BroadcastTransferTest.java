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

/** Tests of the state of a broadcast transfer and of the hold time. */
class BroadcastTransferTest {
  private static final long MILLI = 1_000_000;
  private final ExecutorServer.Peer one = peer("1", "h2");
  private final ExecutorServer.Peer two = peer("2", "h2");
  private final ExecutorServer.Peer three = peer("3", "h3");

  @Test
  void removeWaitingReportsTheLastExecutorOfAHost() {
    BroadcastTransfer transfer = transfer(1000, one, two, three);
    assertEquals(Set.of(one, two, three), transfer.notified());
    assertFalse(transfer.removeWaiting(one));
    assertFalse(transfer.removeWaiting(one));
    assertTrue(transfer.removeWaiting(two));
    assertEquals(Set.of(one, two), Set.copyOf(transfer.on("h2")));
    assertTrue(transfer.removeWaiting(three));
    assertFalse(transfer.removeWaiting(three));
    assertFalse(transfer.removeWaiting(peer("4", "h4")));
  }

  @Test
  void executorThatJoinsTwiceWaitsTwice() {
    ExecutorServer.Peer again = peer("1", "h2");
    BroadcastTransfer transfer = transfer(1000, one, again);
    assertFalse(transfer.removeWaiting(one));
    assertTrue(transfer.removeWaiting(again));
  }

  @Test
  void transferIsCompleteAfterSendingAndWaiting() {
    BroadcastTransfer transfer = transfer(1000, one);
    assertTrue(transfer.isInProgress());
    assertTrue(transfer.end());
    assertFalse(transfer.end());
    assertFalse(transfer.isInProgress());
    assertFalse(transfer.isComplete());
    transfer.removeWaiting(one);
    assertTrue(transfer.isComplete());
  }

  @ParameterizedTest
  // 1000 bytes in 1000 ms, estimated in the second half with a tolerance of 5%.
  @CsvSource({
    "499, 0, true", "500, 0, false", "500, 476, false", "500, 477, true", "900, 850, false", "900, 860, true",
    "1060, 1000, false",
  })
  void transferIsInTimeAtItsMeasuredRate(long millis, long bytes, boolean inTime) {
    BroadcastTransfer transfer = transfer(1000, one);
    transfer.start(0);
    transfer.progressed(bytes);
    assertEquals(inTime, transfer.isInTime(millis * MILLI));
  }

  @ParameterizedTest
  // Announced at 0; other broadcasts used the link for 600 of 1000 ms, so that 400 are left.
  @CsvSource({"600, 0, true", "799, 0, true", "800, 0, false", "800, 476, false", "800, 477, true"})
  void rateIsMeasuredFromTheStartOnTheLink(long millis, long bytes, boolean inTime) {
    BroadcastTransfer transfer = transfer(1000, one);
    assertTrue(transfer.isInTime(599 * MILLI));
    transfer.start(600 * MILLI);
    transfer.progressed(bytes);
    assertEquals(inTime, transfer.isInTime(millis * MILLI));
  }

  @Test
  void transfersAreSentInOrder() {
    BroadcastTransfer first = transfer(1000, one);
    BroadcastTransfer second = transfer(1000, one);
    BroadcastTransfer third = transfer(1000, one);
    List<BroadcastTransfer> all = List.of(first, second, third);
    assertEquals(Optional.empty(), BroadcastTransfer.next(all));
    third.ready(1);
    second.ready(1);
    assertEquals(Optional.empty(), BroadcastTransfer.next(all));
    first.ready(1);
    assertEquals(Optional.of(first), BroadcastTransfer.next(all));
    first.start(0);
    assertEquals(Optional.empty(), BroadcastTransfer.next(all));
    first.end();
    assertEquals(Optional.of(second), BroadcastTransfer.next(all));
    second.end();
    assertEquals(Optional.of(third), BroadcastTransfer.next(all));
  }

  @Test
  void hostThatMissesAFileReceivesNoFurtherFile() {
    Announcement announced = new Announcement(1, "a/1-x", 10, 100, 1000, 3, false);
    ExecutorServer.Peer four = peer("4", "h4");
    BroadcastTransfer transfer = new BroadcastTransfer(announced, List.of(one, three, four), Set.of(four), 0);
    assertEquals(Set.of("h2=127.0.0.1:9095", "h3=127.0.0.1:9095"), Set.copyOf(transfer.receivers()));
    assertFalse(transfer.announcementTo(one).relayed());
    assertTrue(transfer.announcementTo(four).relayed());
    transfer.start(0);
    transfer.progressed(150);
    assertEquals("1.0", transfer.send());
    assertEquals(850, transfer.bytesLeft());
    assertTrue(transfer.endFile(end(List.of("h2"), Map.of("h3", "it does not answer"))));
    assertEquals("1.1", transfer.send());
    assertEquals(700, transfer.bytesLeft());
    assertEquals(List.of("h2=127.0.0.1:9095"), transfer.receivers());
    assertTrue(transfer.endFile(end(List.of("h2"), Map.of())));
    assertEquals(List.of(), transfer.unsent());
    assertFalse(transfer.endFile(end(List.of("h2"), Map.of())));
    assertEquals(0, transfer.bytesLeft());
    BroadcastSent sent = transfer.outcome(2_000 * MILLI);
    assertEquals(1, sent.hosts());
    assertEquals("optical", sent.way());
    assertEquals(1000, sent.bytes());
    transfer.ready(930);
    assertEquals(930, transfer.outcome(2_000 * MILLI).bytes());
    assertTrue(sent.reason().startsWith("h3: it does not answer; h4: no agent, or one that failed recently"),
        sent.reason());
  }

  @Test
  void transferEndsWhenNoHostReceivesAFile() {
    BroadcastTransfer transfer =
        new BroadcastTransfer(new Announcement(1, "a/1-x", 10, 100, 1000, 2, false), List.of(one), Set.of(), 0);
    transfer.start(0);
    assertFalse(transfer.endFile(end(List.of(), Map.of("", "refused"))));
    assertEquals(List.of("a/1-x.1"), transfer.unsent().stream().map(PieceFile::name).toList());
    assertEquals("spark", transfer.outcome(0).way());
  }

  @ParameterizedTest
  // Pieces of 4 MB; each file takes a second of the link or more.
  @CsvSource({"8, 40e6, 4", "8, 80e6, 3", "8, 200e6, 1", "8, 1e10, 1", "3, 1e6, 3", "1, 1, 1"})
  void relayedBroadcastIsSplitIntoFilesOfASecond(int pieces, double rate, int files) {
    assertEquals(files, Announcement.relayedFiles(pieces, 4_000_000, rate));
  }

  @Test
  void filesContainAllPiecesInOrder() {
    List<PieceFile> files = new Announcement(1, "a/1-x", 10, 100, 0, 3, false).files();
    assertEquals(List.of(0, 3, 6), files.stream().map(PieceFile::first).toList());
    assertEquals(List.of(3, 3, 4), files.stream().map(PieceFile::pieces).toList());
    assertEquals(List.of("a/1-x.0", "a/1-x.1", "a/1-x.2"), files.stream().map(PieceFile::name).toList());
  }

  @Test
  void transferWithoutHoldIsAlwaysInTime() {
    BroadcastTransfer transfer = transfer(0, one);
    transfer.start(0);
    assertTrue(transfer.isInTime(10_000 * MILLI));
  }

  @ParameterizedTest
  // log2(hosts + 1) copies over the link.
  @CsvSource({
    "125000000, 1, 1e9, 1000", "125000000, 3, 1e9, 2000", "125000000, 7, 1e9, 3000", "125000000, 7, 1e10, 300",
    "1, 1, 1e12, 0", "1000000000, 1000, 1, 600000", "9223372036854775807, 2147483647, 1e-9, 600000",
  })
  void holdTimeIsTheTransferTimeOfSpark(long bytes, int hosts, double rate, long millis) {
    assertEquals(millis, HoldTime.millis(bytes, List.of(), hosts, rate));
  }

  @Test
  void holdTimeIncludesTransfersInProgress() {
    // Four broadcasts of the same size for three hosts, each 1 s of the link.
    List<Long> before = new ArrayList<>();
    for (long seconds = 2; seconds <= 8; seconds += 2) {
      assertEquals(1000 * seconds, HoldTime.millis(125_000_000, before, 3, 1e9));
      assertEquals(500 * seconds, HoldTime.sendMillis(125_000_000, before, 1e9));
      before.add(125_000_000L);
    }
  }

  @Test
  void holdTimeOfASmallBroadcastAssumesASharedLink() {
    List<Long> large = List.of(1_250_000_000L);
    assertEquals(4000, HoldTime.millis(125_000_000, large, 3, 1e9));
    assertEquals(11_000, HoldTime.sendMillis(125_000_000, large, 1e9));
    // A broadcast that is nearly sent.
    assertEquals(2200, HoldTime.millis(125_000_000, List.of(12_500_000L), 3, 1e9));
  }

  @ParameterizedTest
  @CsvSource({
    "3, 10, 20, false", "3, 10, 21, true", "3, 10, 30, true", "3, 10, 31, false", "3, 10, 0, false", "1, 10, 0, false",
    "1, 10, 1, true", "2147483647, 2147483647, 4611686014132420609, true", "2147483647, 2147483647, 1, false",
    "2147483647, 2147483647, -1, false",
  })
  void fileFitsIfItHasAllPieces(int pieces, int pieceBytes, long bytes, boolean fits) {
    assertEquals(fits, new PieceFile("a/b", 0, pieces, pieceBytes).fits(bytes));
  }

  private static BroadcastTransfer transfer(long holdMillis, ExecutorServer.Peer... peers) {
    return new BroadcastTransfer(new Announcement(1, "a/1-x", 10, 100, holdMillis, 1, false), List.of(peers), Set.of(),
        0);
  }

  private static SenderProcess.End end(List<String> delivered, Map<String, String> failed) {
    return new SenderProcess.End(delivered, failed, List.of("optical"), 1, null);
  }

  static ExecutorServer.Peer peer(String executor, String host) {
    return peer(executor, host, "127.0.0.1:9095");
  }

  static ExecutorServer.Peer peer(String executor, String host, String agent) {
    return new ExecutorServer.Peer(new Message.Hello(executor, host, agent), new java.net.Socket());
  }
}
