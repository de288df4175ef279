package org.blast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What the driver announces is looked for until it is over, and then nothing is kept of it. */
@Timeout(60)
class ArrivalsTest implements PieceStore {
  @TempDir Path base;
  private final BlockingQueue<Message> told = new LinkedBlockingQueue<>();
  private final CountDownLatch welcomed = new CountDownLatch(1);
  private HostFolder folder;
  private Arrivals arrivals;

  @Override
  public void holding(long broadcast, Runnable action) {
    action.run();
  }

  @Override
  public boolean has(long broadcast, int piece) {
    return true;
  }

  @Override
  public ByteBuffer fetch(long broadcast, int piece) {
    throw new AssertionError("it is here");
  }

  @Override
  public boolean put(long broadcast, int piece, ByteBuffer data) {
    throw new AssertionError("it is here");
  }

  @BeforeEach
  void begin() throws SwitchedOff {
    folder = new HostFolder(base, "app");
    arrivals = new Arrivals(this, folder, told::add, welcomed);
  }

  @AfterEach
  void end() throws IOException {
    arrivals.close();
    folder.close();
  }

  @Test
  void whoHasComeIsWelcomeWhenReadersOfAllAreHeldBack() throws Exception {
    arrivals.hear(announced(7));
    assertEquals(1, welcomed.getCount());
    arrivals.hear(Message.ofWelcome());
    assertEquals(0, welcomed.getCount());
  }

  @Test
  void whatIsOverIsToldAndRemovedAlsoIfItComesLater() throws Exception {
    arrivals.hear(announced(7));
    assertEquals(1, arrivals.size());
    arrivals.hear(Message.over(7));
    check(7, "it did not come in time");
    assertEquals(0, arrivals.size());
    Path late = Files.write(base.resolve("app/7-x.0"), new byte[5]);
    arrivals.hear(Message.over(8));
    assertFalse(Files.exists(late));
  }

  @Test
  void moreThanThereArePlacesForAreLeftToSpark() throws Exception {
    for (long broadcast = 0; broadcast < Arrivals.MAX_AT_ONCE; broadcast++) {
      arrivals.hear(announced(broadcast));
    }
    assertTrue(told.isEmpty());
    arrivals.hear(announced(99));
    check(99, Arrivals.MAX_AT_ONCE + " are on their way here");
    arrivals.hear(Message.over(3));
    check(3, "it did not come in time");
    // The place is free a moment after that was told.
    Message refused;
    do {
      arrivals.hear(announced(100));
      refused = told.poll();
    } while (refused != null);
    arrivals.hear(Message.over(100));
    check(100, "it did not come in time");
  }

  @Test
  void whereTheConnectionEndsNobodyWaits() throws Exception {
    arrivals.hear(announced(7));
    arrivals.hear(announced(8));
    arrivals.close();
    assertEquals(15, told.take().taken().broadcast() + told.take().taken().broadcast());
    assertEquals(0, arrivals.size());
  }

  @Test
  void aNameOutsideOfTheApplicationEndsTheConnection() {
    for (String name : new String[] {"other/x", "app/../other/x", "/etc/passwd", "app/.claim"}) {
      Message wrong = Message.of(new Announcement(7, name, 1, 1, 1, 1, false));
      assertThrows(IOException.class, () -> arrivals.hear(wrong));
      assertEquals(0, arrivals.size());
    }
    assertTrue(told.isEmpty());
  }

  @Test
  void withoutAnAgentsFolderOnlyRelayedBroadcastsCome() throws Exception {
    Arrivals without = new Arrivals(this, null, told::add, welcomed);
    assertThrows(IOException.class, () -> without.hear(announced(7)));
    without.hear(Message.of(new Announcement(8, "app/8-x", 1, 5, 60_000, 1, true)));
    check(8, "");
    without.hear(Message.over(8));
    assertEquals(0, without.size());
  }

  private void check(long broadcast, String reason) throws InterruptedException {
    Message.Taken taken = told.take().taken();
    assertEquals(broadcast, taken.broadcast());
    assertEquals(reason, taken.reason());
  }

  private static Message announced(long broadcast) {
    return Message.of(new Announcement(broadcast, "app/" + broadcast + "-x", 1, 5, 60_000, 1, false));
  }
}
