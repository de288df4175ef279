package org.blast.spark;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * A broadcast that this executor expects. The first reader waits until the pieces are in the store, or the broadcast
 * ends. If readers do not wait, it stores the pieces that Spark has not fetched yet.
 */
final class IncomingBroadcast {
  private static final long POLL_MILLIS = 2;
  private static final long IDLE_POLL_MILLIS = 20;
  /** Longer, since each poll queries the driver. */
  private static final long RELAY_POLL_MILLIS = 50;
  private static final String LATE = "it did not arrive in time";
  private static final String ENDED = "it ended during the transfer";

  /** A condition to poll. */
  private interface Condition {
    boolean holds() throws IOException;
  }

  private final PieceStore spark;
  private final HostFolder folder;
  private final Announcement announcement;
  private final CountDownLatch begun = new CountDownLatch(1);
  private boolean ended;
  private int put;
  private long bytes;

  IncomingBroadcast(PieceStore spark, HostFolder folder, Announcement announcement) {
    this.spark = spark;
    this.folder = folder;
    this.announcement = announcement;
  }

  /** Stop blocking readers. */
  synchronized void end() {
    ended = true;
    notifyAll();
  }

  /** Wait up to `millis` until readers are blocked. If one reads already, none will be. */
  void awaitBegin(long millis) throws InterruptedException {
    begun.await(millis, TimeUnit.MILLISECONDS);
  }

  /** Block readers, wait for the pieces and store them. Never throws: the result contains the reason of a failure. */
  Message.Taken take() {
    Message.Taken[] taken = new Message.Taken[1];
    long began = System.nanoTime();
    try {
      if (announcement.holds()) {
        spark.blockReaders(announcement.broadcast(), () -> taken[0] = receive(System.nanoTime()));
      } else {
        taken[0] = receive(began);
      }
    } catch (RuntimeException error) {
      return taken(began, error.toString());
    }
    return taken[0];
  }

  /** Return the result for a broadcast that is not waited for. */
  Message.Taken refused(String reason) {
    return taken(System.nanoTime(), reason);
  }

  private Message.Taken receive(long began) {
    begun.countDown();
    try {
      long deadline = System.nanoTime() + announcement.timeoutMillis() * 1_000_000;
      return taken(began, announcement.relayed() ? fetchPieces(deadline) : takeFiles(deadline));
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      return taken(began, "the executor is shutting down");
    } catch (IOException | RuntimeException error) {
      return taken(began, error.toString());
    }
  }

  /** Store the pieces of each file as it arrives. Return the reason of a failure, or an empty string. */
  private String takeFiles(long deadline) throws IOException, InterruptedException {
    for (PieceFile file : announcement.files()) {
      // The agent cannot notify this process; a poll takes a few microseconds.
      if (!poll(() -> folder.has(file.name()), announcement.holds() ? POLL_MILLIS : IDLE_POLL_MILLIS, deadline)) {
        return LATE;
      }
      ByteBuffer[] pieces = folder.pieces(file);
      for (int piece = 0; piece < pieces.length; piece++) {
        if (isEnded()) {
          // Spark would never remove pieces that are stored after the end.
          return ENDED;
        }
        put(file.first() + piece, pieces[piece]);
      }
    }
    return "";
  }

  /** Fetch each piece as soon as another executor has it. Return the reason of a failure, or an empty string. */
  private String fetchPieces(long deadline) throws IOException, InterruptedException {
    for (int piece = 0; piece < announcement.pieces(); piece++) {
      int number = piece;
      if (isEnded()) {
        return ENDED;
      }
      if (!poll(() -> isFetched(number), RELAY_POLL_MILLIS, deadline)) {
        return LATE;
      }
    }
    return "";
  }

  private boolean isFetched(int piece) {
    if (spark.has(announcement.broadcast(), piece)) {
      return true;
    }
    ByteBuffer data = spark.fetch(announcement.broadcast(), piece);
    if (data != null && !isEnded()) {
      put(piece, data);
    }
    return data != null;
  }

  private void put(int piece, ByteBuffer data) {
    int size = data.remaining();
    if (!spark.has(announcement.broadcast(), piece) && spark.put(announcement.broadcast(), piece, data)) {
      put++;
      bytes += size;
    }
  }

  /** Poll every `millis` until the condition holds. Return false after the deadline or the end of the broadcast. */
  private boolean poll(Condition condition, long millis, long deadline) throws IOException, InterruptedException {
    while (!condition.holds()) {
      synchronized (this) {
        if (ended || System.nanoTime() - deadline > 0) {
          return false;
        }
        wait(millis);
      }
    }
    return true;
  }

  private synchronized boolean isEnded() {
    return ended;
  }

  private Message.Taken taken(long began, String reason) {
    return new Message.Taken(announcement.broadcast(), put, announcement.pieces() - put, bytes, heldMillis(began),
        reason);
  }

  private long heldMillis(long began) {
    return announcement.holds() ? (System.nanoTime() - began) / 1_000_000 : 0;
  }
}
