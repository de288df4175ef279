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

/** Tests that executors wait for announced broadcasts until their end, and then remove their files. */
@Timeout(60)
class IncomingBroadcastsTest implements PieceStore {
  @TempDir Path base;
  private final BlockingQueue<Message> sent = new LinkedBlockingQueue<>();
  private final CountDownLatch welcomed = new CountDownLatch(1);
  private HostFolder folder;
  private IncomingBroadcasts incoming;

  @Override
  public void blockReaders(long broadcast, Runnable action) {
    action.run();
  }

  @Override
  public boolean has(long broadcast, int piece) {
    return true;
  }

  @Override
  public ByteBuffer fetch(long broadcast, int piece) {
    throw new AssertionError("the piece is in the store");
  }

  @Override
  public boolean put(long broadcast, int piece, ByteBuffer data) {
    throw new AssertionError("the piece is in the store");
  }

  @BeforeEach
  void begin() throws PluginDisabled {
    folder = new HostFolder(base, "app");
    incoming = new IncomingBroadcasts(this, folder, sent::add, welcomed);
  }

  @AfterEach
  void end() throws IOException {
    incoming.close();
    folder.close();
  }

  @Test
  void welcomeIsSignaledAfterTheAnnouncements() throws Exception {
    incoming.handle(announced(7));
    assertEquals(1, welcomed.getCount());
    incoming.handle(Message.ofWelcome());
    assertEquals(0, welcomed.getCount());
  }

  @Test
  void endedBroadcastIsReportedAndItsLateFileRemoved() throws Exception {
    incoming.handle(announced(7));
    assertEquals(1, incoming.size());
    incoming.handle(Message.over(7));
    check(7, "it did not arrive in time");
    assertEquals(0, incoming.size());
    Path late = Files.write(base.resolve("app/7-x.0"), new byte[5]);
    incoming.handle(Message.over(8));
    assertFalse(Files.exists(late));
  }

  @Test
  void broadcastsBeyondTheLimitAreRejected() throws Exception {
    for (long broadcast = 0; broadcast < IncomingBroadcasts.MAX_AT_ONCE; broadcast++) {
      incoming.handle(announced(broadcast));
    }
    assertTrue(sent.isEmpty());
    incoming.handle(announced(99));
    check(99, "this executor already expects " + IncomingBroadcasts.MAX_AT_ONCE + " broadcasts");
    incoming.handle(Message.over(3));
    check(3, "it did not arrive in time");
    // The permit is free shortly after the result was sent.
    Message refused;
    do {
      incoming.handle(announced(100));
      refused = sent.poll();
    } while (refused != null);
    incoming.handle(Message.over(100));
    check(100, "it did not arrive in time");
  }

  @Test
  void closeEndsAllBroadcasts() throws Exception {
    incoming.handle(announced(7));
    incoming.handle(announced(8));
    incoming.close();
    assertEquals(15, sent.take().taken().broadcast() + sent.take().taken().broadcast());
    assertEquals(0, incoming.size());
  }

  @Test
  void nameOutsideOfTheApplicationIsRejected() {
    for (String name : new String[] {"other/x", "app/../other/x", "/etc/passwd", "app/.claim"}) {
      Message wrong = Message.of(new Announcement(7, name, 1, 1, 1, 1, false));
      assertThrows(IOException.class, () -> incoming.handle(wrong));
      assertEquals(0, incoming.size());
    }
    assertTrue(sent.isEmpty());
  }

  @Test
  void executorWithoutAFolderAcceptsOnlyRelayedBroadcasts() throws Exception {
    IncomingBroadcasts without = new IncomingBroadcasts(this, null, sent::add, welcomed);
    assertThrows(IOException.class, () -> without.handle(announced(7)));
    without.handle(Message.of(new Announcement(8, "app/8-x", 1, 5, 60_000, 1, true)));
    check(8, "");
    without.handle(Message.over(8));
    assertEquals(0, without.size());
  }

  private void check(long broadcast, String reason) throws InterruptedException {
    Message.Taken taken = sent.take().taken();
    assertEquals(broadcast, taken.broadcast());
    assertEquals(reason, taken.reason());
  }

  private static Message announced(long broadcast) {
    return Message.of(new Announcement(broadcast, "app/" + broadcast + "-x", 1, 5, 60_000, 1, false));
  }
}
