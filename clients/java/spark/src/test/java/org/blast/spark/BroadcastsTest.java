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

/** What the driver does with a broadcast, whatever executors, the sender and Spark do meanwhile. */
@Timeout(60)
class BroadcastsTest {
  private static final SparkInternals.Cut CUT = new SparkInternals.Cut(3, 100);

  /** Notes what it is asked. */
  private final class Asked implements Sender {
    final BlockingQueue<String> words = new LinkedBlockingQueue<>();
    volatile Path spool;
    volatile boolean gone;

    @Override
    public Path spool() {
      return spool;
    }

    @Override
    public void send(String send, Path file, String name, String folder, List<String> to) throws IOException {
      if (gone) {
        throw new IOException("the sender has gone");
      }
      words.add("send " + send + " " + Files.size(file) + " " + folder + " " + to);
    }

    @Override
    public void stop(String send) {
      words.add("stop " + send);
    }
  }

  @TempDir Path spool;
  private final Asked sender = new Asked();
  private final BlockingQueue<SparkListenerEvent> events = new LinkedBlockingQueue<>();
  private final Door.Guest one = CourseTest.guest("1", "h2");
  private final Door.Guest two = CourseTest.guest("2", "h2");
  private final Door.Guest three = CourseTest.guest("3", "h3");
  private final List<Door.Guest> present = new ArrayList<>(List.of(one, two, three));
  private volatile Supplier<Collection<Door.Guest>> guests = () -> present;
  private volatile CountDownLatch mayCopy = new CountDownLatch(0);
  private Broadcasts broadcasts;

  @BeforeEach
  void begin() {
    broadcasts = with(true, 1);
    sender.spool = spool;
  }

  private Broadcasts with(boolean hold, double linkRate) {
    PluginSettings settings = new PluginSettings("blast", List.of(), "spark", 200, linkRate, hold);
    Broadcasts made = new Broadcasts(settings, this::copy, "h1", events::add, new Figures());
    made.begin(() -> guests.get(), sender);
    made.name("app");
    return made;
  }

  private void reopen(boolean hold, double linkRate) {
    broadcasts.close();
    broadcasts = with(hold, linkRate);
  }

  private Path spooled(Announcement coming) {
    return spool.resolve(coming.file(0).name().substring("app/".length()));
  }

  /** The broadcast and number of each file in the spool. */
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
  void itIsAnnouncedAndSent() throws Exception {
    broadcasts.made(7, CUT);
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
    // The last of its host: the file there may go.
    broadcasts.taken(two, taken(7));
    assertEquals(Message.over(7), one.untold.remove());
    assertEquals(Message.over(7), two.untold.remove());
    broadcasts.taken(three, taken(7));
    assertEquals(Message.over(7), three.untold.remove());
    checkForgotten(7);
  }

  @Test
  void theNameIsNeverTheSame() {
    broadcasts.made(7, CUT);
    broadcasts.made(8, CUT);
    assertFalse(coming(one).name().substring(6).equals(coming(one).name().substring(6)));
  }

  @Test
  void whatIsSmallOrForNobodyIsLeftToSpark() {
    broadcasts.made(1, new SparkInternals.Cut(1, 1_000_000));
    broadcasts.made(2, new SparkInternals.Cut(2, 199));
    present.clear();
    broadcasts.made(3, CUT);
    present.add(CourseTest.guest("1", "h1"));
    broadcasts.made(4, CUT);
    present.add(one);
    sender.spool = null;
    broadcasts.made(5, CUT);
    checkNothing(one);
    broadcasts.made(6, new SparkInternals.Cut(Integer.MAX_VALUE, Integer.MAX_VALUE));
    checkNothing(one);
  }

  @Test
  void whatWasMadeBeforeThereWereExecutorsIsSentToAllWhoComeTogether() throws Exception {
    present.clear();
    broadcasts.made(7, CUT);
    broadcasts.made(8, CUT);
    broadcasts.unwanted(8);
    for (Door.Guest guest : List.of(one, three)) {
      present.add(guest);
      broadcasts.joined(guest);
    }
    Announcement coming = coming(one);
    assertEquals(7, coming.broadcast());
    assertTrue(coming.holds());
    assertEquals(Message.ofWelcome(), one.untold.remove());
    assertEquals(coming, coming(three));
    assertEquals(Message.ofWelcome(), three.untold.remove());
    assertSent(7);
    broadcasts.ended("7.0", end(List.of("h2", "h3"), Map.of()));
    events.removeIf(ExecutorJoined.class::isInstance);
    assertEquals(2, ((BroadcastSent) events.take()).hosts());
    // Who comes now finds it with the others.
    present.add(two);
    broadcasts.joined(two);
    assertEquals(Message.ofWelcome(), two.untold.remove());
  }

  @Test
  void whoComesWhileItIsSentGetsItAfterTheOthers() throws Exception {
    present.remove(three);
    broadcasts.made(7, CUT);
    Announcement first = coming(one);
    assertSent(7);
    present.add(three);
    broadcasts.joined(three);
    assertEquals(first.name(), coming(three).name());
    Files.delete(spooled(first));
    broadcasts.ended("7.0", end(List.of("h2"), Map.of()));
    assertEquals("send 7.0 250 spark [h3=127.0.0.1:9095]", sender.words.take());
  }

  @Test
  void whoFindsItOnItsHostIsNotSentItAgain() throws Exception {
    present.remove(two);
    broadcasts.made(7, CUT);
    coming(one);
    assertSent(7);
    present.add(two);
    broadcasts.joined(two);
    coming(two);
    broadcasts.taken(two, taken(7));
    broadcasts.ended("7.0", end(List.of("h2", "h3"), Map.of()));
    assertEquals(null, sender.words.poll(2 * Gathering.millis(), TimeUnit.MILLISECONDS));
    assertEquals(Message.ofWelcome(), two.untold.remove());
    checkNothing(two);
  }

  @Test
  void afterABroadcastThatReachedNobodySparkIsLeftAlone() throws Exception {
    broadcasts.made(7, CUT);
    assertSent(7);
    broadcasts.ended("7.0", end(List.of(), Map.of("h2", "it does not answer", "h3", "it does not answer")));
    for (Door.Guest guest : present) {
      coming(guest);
      assertEquals(Message.over(7), guest.untold.remove());
    }
    broadcasts.made(8, CUT);
    checkNothing(one, two, three);
  }

  @Test
  void oneThatReachedSomebodyIsNoFailure() throws Exception {
    broadcasts.made(7, CUT);
    assertSent(7);
    broadcasts.ended("7.0", end(List.of("h2"), Map.of("h3", "it does not answer")));
    assertEquals(0, broadcasts.pauseSeconds());
    List.of(one, two, three).forEach(guest -> guest.untold.clear());
    broadcasts.made(8, CUT);
    assertEquals(8, coming(one).broadcast());
  }

  @Test
  void whoComesInVainWaitsForNothing() throws Exception {
    present.clear();
    broadcasts.made(7, CUT);
    present.add(one);
    sender.spool = null;
    broadcasts.joined(one);
    coming(one);
    assertEquals(Message.ofWelcome(), one.untold.remove());
    assertEquals(Message.over(7), one.untold.poll(30, TimeUnit.SECONDS));
  }

  @Test
  void whatHasNoRoomIsGivenUp() throws Exception {
    broadcasts.made(7, new SparkInternals.Cut(Integer.MAX_VALUE, Integer.MAX_VALUE));
    checkGivenUp("java.io.IOException: there is no room for it in " + spool);
    assertEquals(0, spool.toFile().list().length);
  }

  @Test
  void whereTheSenderHasGoneReadersGoTheirWay() throws Exception {
    sender.gone = true;
    broadcasts.made(7, CUT);
    checkGivenUp("java.io.IOException: the sender has gone");
    assertEquals(0, spool.toFile().list().length);
    // And one that goes in the middle.
    sender.gone = false;
    broadcasts.made(8, CUT);
    one.untold.clear();
    assertSent(8);
    broadcasts.gone("killed");
    assertEquals(Message.over(8), one.untold.take());
    checkReason("the sender is gone");
  }

  @Test
  void whatIsGivenUpBeforeItWasAskedForIsNeverSent() throws Exception {
    mayCopy = new CountDownLatch(1);
    broadcasts.made(7, CUT);
    Announcement coming = coming(one);
    broadcasts.unwanted(7);
    assertEquals("stop 7.0", sender.words.take());
    mayCopy.countDown();
    broadcasts.made(8, CUT);
    assertSent(8);
    while (Files.exists(spooled(coming))) {
      Thread.onSpinWait();
    }
    assertTrue(sender.words.isEmpty());
  }

  @Test
  void whatNobodyWantsGoesAlsoWhereItHasBeenSent() throws Exception {
    broadcasts.made(7, CUT);
    assertSent(7);
    broadcasts.ended("7.0", end(List.of("h2", "h3"), Map.of()));
    coming(one);
    broadcasts.unwanted(7);
    assertEquals(Message.over(7), one.untold.remove());
    checkForgotten(7);
  }

  @Test
  void aHostThatHasItNotWaitsNoLonger() throws Exception {
    broadcasts.made(7, CUT);
    assertSent(7);
    coming(one);
    coming(three);
    broadcasts.ended("7.0", end(List.of("h2"), Map.of("h3", "no agent")));
    assertEquals(Message.over(7), three.untold.remove());
    checkNothing(one);
    BroadcastSent sent = (BroadcastSent) events.take();
    assertEquals("h3: no agent", sent.reason());
    assertEquals(1, sent.hosts());
  }

  @Test
  void whoLeavesWaitsNoLonger() throws Exception {
    broadcasts.made(7, CUT);
    assertSent(7);
    broadcasts.ended("7.0", end(List.of("h2", "h3"), Map.of()));
    List.of(one, two, three).forEach(broadcasts::left);
    checkForgotten(7);
  }

  @Test
  void whoLeftWhileItWasAnnouncedIsNotWaitedFor() throws Exception {
    List<Door.Guest> first = List.of(one);
    CountDownLatch asked = new CountDownLatch(1);
    guests = () -> {
      boolean before = asked.getCount() > 0;
      asked.countDown();
      return before ? first : List.of();
    };
    broadcasts.made(7, CUT);
    assertSent(7);
    broadcasts.ended("7.0", end(List.of("h2"), Map.of()));
    checkForgotten(7);
  }

  @Test
  void onlySoManyAtOnce() throws Exception {
    mayCopy = new CountDownLatch(1);
    for (long broadcast = 0; broadcast < 20; broadcast++) {
      broadcasts.made(broadcast, CUT);
    }
    assertEquals(16, one.untold.size());
    mayCopy.countDown();
    for (int number = 0; number < 16; number++) {
      // The folder goes with the test: a copy that still goes on would be in its way.
      String sent = sender.words.take().split(" ")[1];
      broadcasts.ended(sent, end(List.of("h2", "h3"), Map.of()));
    }
  }

  @Test
  void broadcastsAreSentOneAfterAnotherAndHeldForTheirSum() throws Exception {
    reopen(true, 1e3);
    for (long broadcast = 1; broadcast <= 3; broadcast++) {
      broadcasts.made(broadcast, CUT);
    }
    // log2(3) copies of 300 bytes to two hosts take 3.8 s by this link.
    assertEquals(3803, coming(one).holdMillis());
    assertEquals(2 * 3803 + 1, coming(one).holdMillis());
    assertEquals(3 * 3803 + 2, coming(one).holdMillis());
    for (int number = 1; number <= 3; number++) {
      String sent = sender.words.take();
      assertEquals(null, sender.words.poll(50, TimeUnit.MILLISECONDS), "it waits for the end of the one before");
      broadcasts.ended(sent.split(" ")[1], end(List.of("h2", "h3"), Map.of()));
    }
  }

  @Test
  void aSmallBroadcastBehindALargeOneIsLeftToSparkAtOnce() {
    reopen(true, 1e3);
    broadcasts.made(1, new SparkInternals.Cut(30, 100));
    List.of(one, two, three).forEach(BroadcastsTest::coming);
    broadcasts.made(2, CUT);
    checkNothing(one, two, three);
  }

  @Test
  void failuresOfBroadcastsUnderWayAtTheSameTimeCountOnce() throws Exception {
    for (long broadcast = 1; broadcast <= 4; broadcast++) {
      broadcasts.made(broadcast, CUT);
    }
    for (int number = 1; number <= 4; number++) {
      broadcasts.ended(sender.words.take().split(" ")[1], end(List.of(), Map.of("", "refused")));
    }
    assertEquals(5, broadcasts.pauseSeconds());
  }

  @Test
  void executorsOfAHostWhoseAgentFailedGetTheNextBroadcastFromOtherExecutors() throws Exception {
    // Of 3 s: a file of a second for each piece.
    reopen(true, 800);
    broadcasts.made(7, CUT);
    assertSent(7);
    broadcasts.ended("7.0", end(List.of("h2"), Map.of("h3", "no agent")));
    List.of(one, two, three).forEach(guest -> guest.untold.clear());
    broadcasts.made(8, CUT);
    Announcement coming = coming(one);
    assertEquals(3, coming.fileCount());
    assertFalse(coming.relayed());
    assertEquals(coming, coming(two));
    assertEquals(coming.toRelay(), coming(three));
    for (int file = 0; file < 3; file++) {
      assertEquals("send 8." + file + " 250 spark [h2=127.0.0.1:9095]", sender.words.take());
      broadcasts.ended("8." + file, end(List.of("h2"), Map.of()));
    }
    events.take();
    BroadcastSent sent = (BroadcastSent) events.take();
    assertEquals(1, sent.hosts());
    assertTrue(sent.reason().startsWith("h3: it has no agent, or a failed one"), sent.reason());
    checkNothing(one, two, three);
    // An executor that joins there is not notified of files that do not come.
    broadcasts.made(9, CUT);
    three.untold.clear();
    broadcasts.joined(three);
    assertEquals(Message.ofWelcome(), three.untold.remove());
  }

  @Test
  void anExecutorWithoutAnAgentGetsBroadcastsFromOtherExecutors() throws Exception {
    present.remove(three);
    present.remove(two);
    Door.Guest without = CourseTest.guest("3", "h3", null);
    present.add(without);
    broadcasts.made(7, CUT);
    assertEquals(coming(one).toRelay(), coming(without));
    assertEquals("send 7.0 250 spark [h2=127.0.0.1:9095]", sender.words.take());
    // And without any agent Spark fetches.
    broadcasts.ended("7.0", end(List.of("h2"), Map.of()));
    present.remove(one);
    broadcasts.made(8, CUT);
    checkNothing(without);
  }

  @Test
  void whereTheFilesOfABroadcastEndWithAFailureReadersOfAllHostsStopWaiting() throws Exception {
    reopen(true, 800);
    broadcasts.made(7, CUT);
    assertSent(7);
    broadcasts.ended("7.0", end(List.of("h2"), Map.of("h3", "no agent")));
    broadcasts.made(8, CUT);
    sender.words.take();
    List.of(one, two, three).forEach(guest -> guest.untold.clear());
    broadcasts.ended("8.0", end(List.of(), Map.of("h2", "no agent")));
    for (Door.Guest guest : List.of(one, two, three)) {
      assertEquals(Message.over(8), guest.untold.remove());
    }
    assertEquals(List.of("7.0", "8.0"), filesLeft(), "the sender removes the files that it got");
  }

  @Test
  void whatWouldComeTooLateIsStopped() throws Exception {
    // A link by which Spark would take 5 ms.
    reopen(true, 1e6);
    broadcasts.made(7, CUT);
    assertTrue(coming(one).holdMillis() < 10);
    assertEquals(Message.over(7), one.untold.take());
    BroadcastSent sent = (BroadcastSent) events.take();
    assertEquals("spark", sent.way());
  }

  @Test
  void withoutHoldNothingIsTooLate() throws Exception {
    reopen(false, 1e12);
    broadcasts.made(7, CUT);
    assertFalse(coming(one).holds());
    assertSent(7);
    broadcasts.progress("7.0", 0);
    checkNothing(one);
    assertTrue(events.isEmpty());
  }

  @Test
  void nobodyFeelsWhatComesAfterTheEnd() {
    broadcasts.made(7, CUT);
    broadcasts.close();
    broadcasts.gone("ended");
    broadcasts.made(8, CUT);
    broadcasts.unwanted(8);
    broadcasts.ended("9.0", end(List.of(), Map.of()));
    broadcasts.progress("9.0", 1);
    broadcasts.taken(one, taken(9));
  }

  private void assertSent(long broadcast) throws InterruptedException {
    String asked = sender.words.take();
    String start = "send " + broadcast + ".0 250 spark [";
    assertTrue(asked.startsWith(start), asked);
    if (guests.get().size() == 3) {
      assertTrue(asked.contains("h2=127.0.0.1:9095") && asked.contains("h3=127.0.0.1:9095"), asked);
      assertEquals(2, asked.split("=").length - 1);
    }
  }

  private void checkGivenUp(String reason) throws InterruptedException {
    for (Door.Guest guest : List.of(one, two, three)) {
      assertNotNull(guest.untold.take().coming());
      assertEquals(7, guest.untold.take().over());
    }
    checkReason(reason);
    assertEquals("stop 7.0", sender.words.take());
  }

  private void checkReason(String reason) throws InterruptedException {
    BroadcastSent sent = (BroadcastSent) events.take();
    assertTrue(sent.reason().startsWith(reason), sent.reason());
    assertEquals("spark", sent.way());
  }

  /** Nothing is done of it any more, and nothing said. */
  private void checkForgotten(long broadcast) {
    List.of(one, two, three).forEach(guest -> guest.untold.clear());
    events.clear();
    broadcasts.unwanted(broadcast);
    broadcasts.left(one);
    checkNothing(one, two, three);
    assertTrue(events.isEmpty());
  }

  private static void checkNothing(Door.Guest... all) {
    for (Door.Guest guest : all) {
      assertEquals(List.of(), List.copyOf(guest.untold));
    }
  }

  private static Announcement coming(Door.Guest guest) {
    return guest.untold.remove().coming();
  }

  private static SenderProcess.End end(List<String> delivered, Map<String, String> failed) {
    return new SenderProcess.End(delivered, failed, List.of("optical"), 1, null);
  }

  private static Message.Taken taken(long broadcast) {
    return new Message.Taken(broadcast, 3, 0, 250, 1, "");
  }
}
