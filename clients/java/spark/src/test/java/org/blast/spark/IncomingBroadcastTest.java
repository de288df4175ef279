package org.blast.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests that arriving pieces are stored for Spark, and that readers wait no longer than the hold time. */
@Timeout(60)
class IncomingBroadcastTest {
  /** A store in memory. */
  private static class Store implements PieceStore {
    final Map<Integer, Integer> pieces = new ConcurrentHashMap<>();
    final CountDownLatch held = new CountDownLatch(1);
    volatile Runnable onPut = () -> {};
    final Map<Integer, Integer> elsewhere = new ConcurrentHashMap<>();
    volatile boolean room = true;

    @Override
    public void blockReaders(long broadcast, Runnable action) {
      held.countDown();
      action.run();
    }

    @Override
    public boolean has(long broadcast, int piece) {
      return pieces.containsKey(piece);
    }

    @Override
    public ByteBuffer fetch(long broadcast, int piece) {
      Integer size = elsewhere.get(piece);
      return size == null ? null : ByteBuffer.allocate(size);
    }

    @Override
    public boolean put(long broadcast, int piece, ByteBuffer data) {
      onPut.run();
      return room && pieces.put(piece, data.remaining()) == null;
    }

    boolean isHeld() {
      return held.getCount() == 0;
    }
  }

  @TempDir Path base;
  private final Store store = new Store();
  private HostFolder folder;

  @BeforeEach
  void make() throws PluginDisabled {
    folder = new HostFolder(base, "app");
  }

  @AfterEach
  void close() throws IOException {
    folder.close();
  }

  @Test
  void readersWaitUntilTheFileArrives() throws Exception {
    CompletableFuture<Message.Taken> taken = take(broadcast(60_000));
    assertTrue(store.held.await(50, TimeUnit.SECONDS));
    arrive(250);
    check(taken.get(), 3, 0, 250, "");
    assertEquals(Map.of(0, 100, 1, 100, 2, 50), store.pieces);
  }

  @Test
  void piecesThatSparkHasAreKept() throws Exception {
    store.pieces.put(1, 100);
    arrive(250);
    check(broadcast(60_000).take(), 2, 1, 150, "");
  }

  @Test
  void piecesThatTheStoreRejectsAreLate() throws Exception {
    store.room = false;
    arrive(250);
    check(broadcast(60_000).take(), 0, 3, 0, "");
  }

  @Test
  void endReleasesReaders() throws Exception {
    IncomingBroadcast broadcast = broadcast(60_000);
    CompletableFuture<Message.Taken> taken = take(broadcast);
    assertTrue(store.held.await(50, TimeUnit.SECONDS));
    broadcast.end();
    check(taken.get(), 0, 3, 0, "it did not arrive in time");
  }

  @Test
  void readersStopWaitingAfterTheHoldTime() {
    check(broadcast(1).take(), 0, 3, 0, "it did not arrive in time");
    assertTrue(store.isHeld());
  }

  @Test
  void latePiecesAreStoredWithoutBlockingReaders() throws Exception {
    store.pieces.put(0, 100);
    CompletableFuture<Message.Taken> taken = take(broadcast(0));
    assertFalse(taken.isDone());
    arrive(250);
    check(taken.get(), 2, 1, 150, "");
    assertFalse(store.isHeld());
    assertEquals(0, taken.get().heldMillis());
  }

  @Test
  void broadcastWithoutHoldStopsAtTheEnd() throws Exception {
    IncomingBroadcast broadcast = broadcast(0);
    CompletableFuture<Message.Taken> taken = take(broadcast);
    broadcast.end();
    check(taken.get(), 0, 3, 0, "it did not arrive in time");
    assertFalse(store.isHeld());
  }

  @Test
  void noPieceIsStoredAfterTheEnd() throws Exception {
    arrive(250);
    IncomingBroadcast broadcast = broadcast(60_000);
    store.onPut = broadcast::end;
    check(broadcast.take(), 1, 2, 100, "it ended during the transfer");
  }

  @Test
  void piecesAreStoredWhileTheNextFileIsTransferred() throws Exception {
    CountDownLatch hasFirst = new CountDownLatch(1);
    store.onPut = hasFirst::countDown;
    CompletableFuture<Message.Taken> taken = take(new IncomingBroadcast(store, folder, coming(60_000, 2, false)));
    arrive("app/7-x.0", 100);
    assertTrue(hasFirst.await(50, TimeUnit.SECONDS));
    assertFalse(taken.isDone());
    arrive("app/7-x.1", 150);
    check(taken.get(), 3, 0, 250, "");
    assertEquals(Map.of(0, 100, 1, 100, 2, 50), store.pieces);
  }

  @Test
  void relayedPiecesAreFetchedFromOtherExecutors() throws Exception {
    CountDownLatch hasFirst = new CountDownLatch(1);
    store.onPut = hasFirst::countDown;
    store.elsewhere.put(0, 100);
    store.pieces.put(1, 100);
    CompletableFuture<Message.Taken> taken = take(new IncomingBroadcast(store, folder, coming(60_000, 2, true)));
    assertTrue(hasFirst.await(50, TimeUnit.SECONDS));
    assertFalse(taken.isDone());
    assertTrue(store.isHeld());
    store.elsewhere.put(2, 50);
    check(taken.get(), 2, 1, 150, "");
    assertEquals(Map.of(0, 100, 1, 100, 2, 50), store.pieces);
  }

  @Test
  void readersOfRelayedPiecesStopWaitingAtTheHoldTimeAndTheEnd() throws Exception {
    check(new IncomingBroadcast(store, folder, coming(1, 1, true)).take(), 0, 3, 0, "it did not arrive in time");
    store.elsewhere.putAll(Map.of(0, 100, 1, 100, 2, 50));
    IncomingBroadcast broadcast = new IncomingBroadcast(store, folder, coming(60_000, 1, true));
    store.onPut = broadcast::end;
    check(broadcast.take(), 1, 2, 100, "it ended during the transfer");
  }

  @Test
  void fileOfWrongSizeIsRejectedWithAReason() throws Exception {
    arrive(251 + 100);
    check(broadcast(60_000).take(), 0, 3, 0, "java.io.IOException: received 351 bytes, but 300 were announced");
  }

  @Test
  void errorOfSparkIsReportedAsTheReason() throws Exception {
    store.onPut = () -> {
      throw new IllegalStateException("stopped");
    };
    arrive(250);
    check(broadcast(60_000).take(), 0, 3, 0, "java.lang.IllegalStateException: stopped");
    PieceStore ended = new Store() {
      @Override
      public void blockReaders(long broadcast, Runnable action) {
        throw new NullPointerException("no SparkEnv");
      }
    };
    check(new IncomingBroadcast(ended, folder, coming(60_000)).take(), 0, 3, 0,
        "java.lang.NullPointerException: no SparkEnv");
  }

  private static void check(Message.Taken taken, int put, int late, long bytes, String reason) {
    assertEquals(new Message.Taken(7, put, late, bytes, taken.heldMillis(), reason), taken);
  }

  private IncomingBroadcast broadcast(long holdMillis) {
    return new IncomingBroadcast(store, folder, coming(holdMillis));
  }

  private static Announcement coming(long holdMillis) {
    return coming(holdMillis, 1, false);
  }

  private static Announcement coming(long holdMillis, int files, boolean relayed) {
    return new Announcement(7, "app/7-x", 3, 100, holdMillis, files, relayed);
  }

  private static CompletableFuture<Message.Taken> take(IncomingBroadcast broadcast) {
    return CompletableFuture.supplyAsync(broadcast::take);
  }

  /** Create a file in one step, as an agent does. */
  private void arrive(int bytes) throws IOException {
    arrive("app/7-x.0", bytes);
  }

  private void arrive(String name, int bytes) throws IOException {
    Path part = Files.write(base.resolve("app/part"), new byte[bytes]);
    Files.setPosixFilePermissions(part, PosixFilePermissions.fromString("rw-------"));
    Files.move(part, base.resolve(name), StandardCopyOption.ATOMIC_MOVE);
  }
}
