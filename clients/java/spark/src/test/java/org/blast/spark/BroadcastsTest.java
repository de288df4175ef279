package org.blast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests of the driver's broadcasts under events of executors, the sender and Spark. */
@Timeout(60)
class BroadcastsTest {
  private static final SparkInternals.Cut CUT = new SparkInternals.Cut(3, 100);

  /** A sender that records its commands. */
  private final class RecordingSender implements Sender {
    final BlockingQueue<String> commands = new LinkedBlockingQueue<>();
    volatile Path spool;
    volatile boolean exited;

    @Override
    public Path spool() {
      return spool;
    }

    @Override
    public void send(String send, Path file, String name, String folder, List<String> to) throws IOException {
      if (exited) {
        throw new IOException("the sender has exited");
      }
      commands.add("send " + send + " " + Files.size(file) + " " + folder + " " + to);
    }

    @Override
    public void stop(String send) {
      commands.add("stop " + send);
    }
  }

  @TempDir Path spool;
  private final RecordingSender sender = new RecordingSender();
  private final BlockingQueue<SparkListenerEvent> events = new LinkedBlockingQueue<>();
  private final ExecutorServer.Peer one = BroadcastTransferTest.peer("1", "h2");
  private final ExecutorServer.Peer two = BroadcastTransferTest.peer("2", "h2");
  private final ExecutorServer.Peer three = BroadcastTransferTest.peer("3", "h3");
  private final List<ExecutorServer.Peer> present = new ArrayList<>(List.of(one, two, three));
  private volatile Supplier<Collection<ExecutorServer.Peer>> peers = () -> present;
  private volatile CountDownLatch mayCopy = new CountDownLatch(0);
  private Broadcasts broadcasts;

  @BeforeEach
  void begin() {
    broadcasts = with(true, 1);
    sender.spool = spool;
  }

  private Broadcasts with(boolean hold, double linkRate) {
    PluginSettings settings = new PluginSettings("blast", List.of(), "spark", 200, linkRate, hold);
    Broadcasts made = new Broadcasts(settings, this::copy, "h1", events::add, new PluginMetrics());
    made.begin(() -> peers.get(), sender);
    made.setApplication("app");
    return made;
  }

  private void reopen(boolean hold, double linkRate) {
    broadcasts.close();
    broadcasts = with(hold, linkRate);
  }

  private Path spooled(Announcement coming) {
    return spool.resolve(coming.file(0).name().substring("app/".length()));
  }

  /** Return the broadcast and number of each file in the spool. */
  private List<String> filesLeft() {
    return Arrays.stream(spool.toFile().list()).map(name -> name.replaceFirst("-[0-9a-f]+", "")).sorted().toList();
  }

  private void copy(long broadcast, SparkInternals.Cut cut, PieceFile file, java.nio.channels.FileChannel to)
      throws IOException {
    try {
      mayCopy.await();
    } catch (InterruptedException error) {
      throw new IOException(error);
    }
    to.write(ByteBuffer.allocate(250));
  }

  @AfterEach
  void end() {
    broadcasts.close();
  }

  @Test
  void broadcastIsAnnouncedAndSent() throws Exception {
    broadcasts.created(7, CUT);
    Announcement coming = coming(one);
    assertEquals(coming, coming(two));
    assertEquals(coming, coming(three));
    assertTrue(coming.name().matches("app/7-[0-9a-f]{32}"), coming.name());
    assertEquals(new Announcement(7, coming.name(), 3, 100, coming.holdMillis(), 1, false), coming);
    assertTrue(coming.holds());
    assertSent(7);
    broadcasts.ended("7.0", end(List.of("h2", "h3"), Map.of()));
    BroadcastSent sent = (BroadcastSent) events.take();
    assertEquals(new BroadcastSent(7, 250, "optical", 2, sent.seconds(), ""), sent);
    broadcasts.taken(one, taken(7));
    checkNothing(one, two, three);
    // The last executor of its host has it.
    broadcasts.taken(two, taken(7));
    assertEquals(Message.over(7), one.outbox.remove());
    assertEquals(Message.over(7), two.outbox.remove());
    broadcasts.taken(three, taken(7));
    assertEquals(Message.over(7), three.outbox.remove());
    checkForgotten(7);
  }

  @Test
  void everyBroadcastHasAUniqueName() {
    broadcasts.created(7, CUT);
    broadcasts.created(8, CUT);
    assertFalse(coming(one).name().substring(6).equals(coming(one).name().substring(6)));
  }

  @Test
  void sparkSendsSmallBroadcastsAndThoseWithoutReceivers() {
    broadcasts.created(1, new SparkInternals.Cut(1, 1_000_000));
    broadcasts.created(2, new SparkInternals.Cut(2, 199));
    present.clear();
    broadcasts.created(3, CUT);
    present.add(BroadcastTransferTest.peer("1", "h1"));
    broadcasts.created(4, CUT);
    present.add(one);
    sender.spool = null;
    broadcasts.created(5, CUT);
    checkNothing(one);
    broadcasts.created(6, new SparkInternals.Cut(Integer.MAX_VALUE, Integer.MAX_VALUE));
    checkNothing(one);
  }

  @Test
  void earlyBroadcastIsSentToExecutorsThatJoinTogether() throws Exception {
    present.clear();
    broadcasts.created(7, CUT);
    broadcasts.created(8, CUT);
    broadcasts.removed(8);
    for (ExecutorServer.Peer peer : List.of(one, three)) {
      present.add(peer);
      broadcasts.joined(peer);
    }
    Announcement coming = coming(one);
    assertEquals(7, coming.broadcast());
    assertTrue(coming.holds());
    assertEquals(Message.ofWelcome(), one.outbox.remove());
    assertEquals(coming, coming(three));
    assertEquals(Message.ofWelcome(), three.outbox.remove());
    assertSent(7);
    broadcasts.ended("7.0", end(List.of("h2", "h3"), Map.of()));
    events.removeIf(ExecutorJoined.class::isInstance);
    assertEquals(2, ((BroadcastSent) events.take()).hosts());
    // An executor that joins now fetches it from other executors.
    present.add(two);
    broadcasts.joined(two);
    assertEquals(Message.ofWelcome(), two.outbox.remove());
  }

  @Test
  void executorThatJoinsDuringATransferReceivesItAfterwards() throws Exception {
    present.remove(three);
    broadcasts.created(7, CUT);
    Announcement first = coming(one);
    assertSent(7);
    present.add(three);
    broadcasts.joined(three);
    assertEquals(first.name(), coming(three).name());
    Files.delete(spooled(first));
    broadcasts.ended("7.0", end(List.of("h2"), Map.of()));
    assertEquals("send 7.0 250 spark [h3=127.0.0.1:9095]", sender.commands.take());
  }

  @Test
  void executorThatFindsTheFileOnItsHostReceivesNoSecondCopy() throws Exception {
    present.remove(two);
    broadcasts.created(7, CUT);
    coming(one);
    assertSent(7);
    present.add(two);
    broadcasts.joined(two);
    coming(two);
    broadcasts.taken(two, taken(7));
    broadcasts.ended("7.0", end(List.of("h2", "h3"), Map.of()));
    assertEquals(null, sender.commands.poll(2 * JoinBatch.millis(), TimeUnit.MILLISECONDS));
    assertEquals(Message.ofWelcome(), two.outbox.remove());
    checkNothing(two);
  }

  @Test
  void broadcastThatReachesNoHostPausesThePlugin() throws Exception {
    broadcasts.created(7, CUT);
    assertSent(7);
    broadcasts.ended("7.0", end(List.of(), Map.of("h2", "it does not answer", "h3", "it does not answer")));
    for (ExecutorServer.Peer peer : present) {
      coming(peer);
      assertEquals(Message.over(7), peer.outbox.remove());
    }
    broadcasts.created(8, CUT);
    checkNothing(one, two, three);
  }

  @Test
  void partlyDeliveredBroadcastIsNoFailure() throws Exception {
    broadcasts.created(7, CUT);
    assertSent(7);
    broadcasts.ended("7.0", end(List.of("h2"), Map.of("h3", "it does not answer")));
    assertEquals(0, broadcasts.pauseSeconds());
    List.of(one, two, three).forEach(peer -> peer.outbox.clear());
    broadcasts.created(8, CUT);
    assertEquals(8, coming(one).broadcast());
  }

  @Test
  void executorStopsWaitingIfTheBroadcastCannotBeSent() throws Exception {
    present.clear();
    broadcasts.created(7, CUT);
    present.add(one);
    sender.spool = null;
    broadcasts.joined(one);
    coming(one);
    assertEquals(Message.ofWelcome(), one.outbox.remove());
    assertEquals(Message.over(7), one.outbox.poll(30, TimeUnit.SECONDS));
  }

  @Test
  void broadcastWithoutDiskSpaceIsAbandoned() throws Exception {
    broadcasts.created(7, new SparkInternals.Cut(Integer.MAX_VALUE, Integer.MAX_VALUE));
    checkGivenUp("java.io.IOException: not enough room in " + spool);
    assertEquals(0, spool.toFile().list().length);
  }

  @Test
  void readersStopWaitingAfterTheSenderExits() throws Exception {
    sender.exited = true;
    broadcasts.created(7, CUT);
    checkGivenUp("java.io.IOException: the sender has exited");
    assertEquals(0, spool.toFile().list().length);
    // The sender exits during a transfer.
    sender.exited = false;
    broadcasts.created(8, CUT);
    one.outbox.clear();
    assertSent(8);
    broadcasts.senderExited("killed");
    assertEquals(Message.over(8), one.outbox.take());
    checkReason("the sender has exited");
  }

  @Test
  void broadcastRemovedDuringItsCopyIsNotSent() throws Exception {
    mayCopy = new CountDownLatch(1);
    broadcasts.created(7, CUT);
    Announcement coming = coming(one);
    broadcasts.removed(7);
    assertEquals("stop 7.0", sender.commands.take());
    mayCopy.countDown();
    broadcasts.created(8, CUT);
    assertSent(8);
    while (Files.exists(spooled(coming))) {
      Thread.onSpinWait();
    }
    assertTrue(sender.commands.isEmpty());
  }

  @Test
  void removedBroadcastIsRemovedOnItsReceivers() throws Exception {
    broadcasts.created(7, CUT);
    assertSent(7);
    broadcasts.ended("7.0", end(List.of("h2", "h3"), Map.of()));
    coming(one);
    broadcasts.removed(7);
    assertEquals(Message.over(7), one.outbox.remove());
    checkForgotten(7);
  }

  @Test
  void readersOfAFailedHostStopWaiting() throws Exception {
    broadcasts.created(7, CUT);
    assertSent(7);
    coming(one);
    coming(three);
    broadcasts.ended("7.0", end(List.of("h2"), Map.of("h3", "no agent")));
    assertEquals(Message.over(7), three.outbox.remove());
    checkNothing(one);
    BroadcastSent sent = (BroadcastSent) events.take();
    assertEquals("h3: no agent", sent.reason());
    assertEquals(1, sent.hosts());
  }

  @Test
  void broadcastEndsWhenItsExecutorsLeave() throws Exception {
    broadcasts.created(7, CUT);
    assertSent(7);
    broadcasts.ended("7.0", end(List.of("h2", "h3"), Map.of()));
    List.of(one, two, three).forEach(broadcasts::left);
    checkForgotten(7);
  }

  @Test
  void executorThatLeavesDuringTheAnnouncementIsNotAwaited() throws Exception {
    List<ExecutorServer.Peer> first = List.of(one);
    CountDownLatch asked = new CountDownLatch(1);
    peers = () -> {
      boolean before = asked.getCount() > 0;
      asked.countDown();
      return before ? first : List.of();
    };
    broadcasts.created(7, CUT);
    assertSent(7);
    broadcasts.ended("7.0", end(List.of("h2"), Map.of()));
    checkForgotten(7);
  }

  @Test
  void concurrentBroadcastsAreLimited() throws Exception {
    mayCopy = new CountDownLatch(1);
    for (long broadcast = 0; broadcast < 20; broadcast++) {
      broadcasts.created(broadcast, CUT);
    }
    assertEquals(16, one.outbox.size());
    mayCopy.countDown();
    for (int number = 0; number < 16; number++) {
      // JUnit removes the spool after the test, so that all copies must have ended.
      String sent = sender.commands.take().split(" ")[1];
      broadcasts.ended(sent, end(List.of("h2", "h3"), Map.of()));
    }
  }

  @Test
  void broadcastsAreSentInSequenceAndHeldForTheirSum() throws Exception {
    reopen(true, 1e3);
    for (long broadcast = 1; broadcast <= 3; broadcast++) {
      broadcasts.created(broadcast, CUT);
    }
    // log2(3) copies of 300 bytes to two hosts take 3.8 s over this link.
    assertEquals(3803, coming(one).holdMillis());
    assertEquals(2 * 3803 + 1, coming(one).holdMillis());
    assertEquals(3 * 3803 + 2, coming(one).holdMillis());
    for (int number = 1; number <= 3; number++) {
      String sent = sender.commands.take();
      assertEquals(null, sender.commands.poll(50, TimeUnit.MILLISECONDS),
          "a transfer starts after the end of the previous one");
      broadcasts.ended(sent.split(" ")[1], end(List.of("h2", "h3"), Map.of()));
    }
  }

  @Test
  void sparkSendsASmallBroadcastBehindALargeOne() {
    reopen(true, 1e3);
    broadcasts.created(1, new SparkInternals.Cut(30, 100));
    List.of(one, two, three).forEach(BroadcastsTest::coming);
    broadcasts.created(2, CUT);
    checkNothing(one, two, three);
  }

  @Test
  void concurrentFailuresPauseThePluginOnce() throws Exception {
    for (long broadcast = 1; broadcast <= 4; broadcast++) {
      broadcasts.created(broadcast, CUT);
    }
    for (int number = 1; number <= 4; number++) {
      broadcasts.ended(sender.commands.take().split(" ")[1], end(List.of(), Map.of("", "refused")));
    }
    assertEquals(5, broadcasts.pauseSeconds());
  }

  @Test
  void executorsOfAHostWithAFailedAgentGetRelayedBroadcasts() throws Exception {
    // The broadcast takes 3 s: one file for each piece.
    reopen(true, 800);
    broadcasts.created(7, CUT);
    assertSent(7);
    broadcasts.ended("7.0", end(List.of("h2"), Map.of("h3", "no agent")));
    List.of(one, two, three).forEach(peer -> peer.outbox.clear());
    broadcasts.created(8, CUT);
    Announcement coming = coming(one);
    assertEquals(3, coming.fileCount());
    assertFalse(coming.relayed());
    assertEquals(coming, coming(two));
    assertEquals(coming.toRelay(), coming(three));
    for (int file = 0; file < 3; file++) {
      assertEquals("send 8." + file + " 250 spark [h2=127.0.0.1:9095]", sender.commands.take());
      broadcasts.ended("8." + file, end(List.of("h2"), Map.of()));
    }
    events.take();
    BroadcastSent sent = (BroadcastSent) events.take();
    assertEquals(1, sent.hosts());
    assertTrue(sent.reason().startsWith("h3: no agent, or one that failed recently"), sent.reason());
    checkNothing(one, two, three);
    // An executor that joins there gets no announcement of files that do not arrive.
    broadcasts.created(9, CUT);
    three.outbox.clear();
    broadcasts.joined(three);
    assertEquals(Message.ofWelcome(), three.outbox.remove());
  }

  @Test
  void executorWithoutAnAgentGetsRelayedBroadcasts() throws Exception {
    present.remove(three);
    present.remove(two);
    ExecutorServer.Peer without = BroadcastTransferTest.peer("3", "h3", null);
    present.add(without);
    broadcasts.created(7, CUT);
    assertEquals(coming(one).toRelay(), coming(without));
    assertEquals("send 7.0 250 spark [h2=127.0.0.1:9095]", sender.commands.take());
    // Without any agent, Spark fetches.
    broadcasts.ended("7.0", end(List.of("h2"), Map.of()));
    present.remove(one);
    broadcasts.created(8, CUT);
    checkNothing(without);
  }

  @Test
  void readersOfAllHostsStopWaitingAfterAFailedFile() throws Exception {
    reopen(true, 800);
    broadcasts.created(7, CUT);
    assertSent(7);
    broadcasts.ended("7.0", end(List.of("h2"), Map.of("h3", "no agent")));
    broadcasts.created(8, CUT);
    sender.commands.take();
    List.of(one, two, three).forEach(peer -> peer.outbox.clear());
    broadcasts.ended("8.0", end(List.of(), Map.of("h2", "no agent")));
    for (ExecutorServer.Peer peer : List.of(one, two, three)) {
      assertEquals(Message.over(8), peer.outbox.remove());
    }
    assertEquals(List.of("7.0", "8.0"), filesLeft(), "the sender removes the files that it has received");
  }

  @Test
  void lateTransferIsStopped() throws Exception {
    // A link over which Spark would take 5 ms.
    reopen(true, 1e6);
    broadcasts.created(7, CUT);
    assertTrue(coming(one).holdMillis() < 10);
    assertEquals(Message.over(7), one.outbox.take());
    BroadcastSent sent = (BroadcastSent) events.take();
    assertEquals("spark", sent.way());
  }

  @Test
  void transferWithoutHoldIsNotStopped() throws Exception {
    reopen(false, 1e12);
    broadcasts.created(7, CUT);
    assertFalse(coming(one).holds());
    assertSent(7);
    broadcasts.progress("7.0", 0);
    checkNothing(one);
    assertTrue(events.isEmpty());
  }

  @Test
  void eventsAfterCloseHaveNoEffect() {
    broadcasts.created(7, CUT);
    broadcasts.close();
    broadcasts.senderExited("ended");
    broadcasts.created(8, CUT);
    broadcasts.removed(8);
    broadcasts.ended("9.0", end(List.of(), Map.of()));
    broadcasts.progress("9.0", 1);
    broadcasts.taken(one, taken(9));
  }

  private void assertSent(long broadcast) throws InterruptedException {
    String asked = sender.commands.take();
    String start = "send " + broadcast + ".0 250 spark [";
    assertTrue(asked.startsWith(start), asked);
    if (peers.get().size() == 3) {
      assertTrue(asked.contains("h2=127.0.0.1:9095") && asked.contains("h3=127.0.0.1:9095"), asked);
      assertEquals(2, asked.split("=").length - 1);
    }
  }

  private void checkGivenUp(String reason) throws InterruptedException {
    for (ExecutorServer.Peer peer : List.of(one, two, three)) {
      assertNotNull(peer.outbox.take().coming());
      assertEquals(7, peer.outbox.take().over());
    }
    checkReason(reason);
    assertEquals("stop 7.0", sender.commands.take());
  }

  private void checkReason(String reason) throws InterruptedException {
    BroadcastSent sent = (BroadcastSent) events.take();
    assertTrue(sent.reason().startsWith(reason), sent.reason());
    assertEquals("spark", sent.way());
  }

  /** Check that events of an ended broadcast have no effect. */
  private void checkForgotten(long broadcast) {
    List.of(one, two, three).forEach(peer -> peer.outbox.clear());
    events.clear();
    broadcasts.removed(broadcast);
    broadcasts.left(one);
    checkNothing(one, two, three);
    assertTrue(events.isEmpty());
  }

  private static void checkNothing(ExecutorServer.Peer... all) {
    for (ExecutorServer.Peer peer : all) {
      assertEquals(List.of(), List.copyOf(peer.outbox));
    }
  }

  private static Announcement coming(ExecutorServer.Peer peer) {
    return peer.outbox.remove().coming();
  }

  private static SenderProcess.End end(List<String> delivered, Map<String, String> failed) {
    return new SenderProcess.End(delivered, failed, List.of("optical"), 1, null);
  }

  private static Message.Taken taken(long broadcast) {
    return new Message.Taken(broadcast, 3, 0, 250, 1, "");
  }
}
