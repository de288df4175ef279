package org.blast.spark;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * One broadcast on its way to this executor. Its first reader waits until it is here, or is over; without waiting
 * readers, it brings the pieces that Spark has not fetched by then.
 */
final class Arrival {
  private static final long LOOK_MILLIS = 2;
  private static final long IDLE_LOOK_MILLIS = 20;
  /** Longer: each look asks the driver. */
  private static final long RELAY_LOOK_MILLIS = 50;
  private static final String LATE = "it did not come in time";
  private static final String OVER = "it was over meanwhile";

  /** Whether something has come. */
  private interface Look {
    boolean succeeds() throws IOException;
  }

  private final PieceStore spark;
  private final HostFolder folder;
  private final Announcement coming;
  private final CountDownLatch begun = new CountDownLatch(1);
  private boolean over;
  private int put;
  private long bytes;

  Arrival(PieceStore spark, HostFolder folder, Announcement coming) {
    this.spark = spark;
    this.folder = folder;
    this.coming = coming;
  }

  /** Readers wait no longer. */
  synchronized void over() {
    over = true;
    notifyAll();
  }

  /** Wait until readers are held back, for so long at most: where one is reading already, none is. */
  void awaitBegin(long millis) throws InterruptedException {
    begun.await(millis, TimeUnit.MILLISECONDS);
  }

  /** Hold readers back, wait, and hand over what has come. Never throws: what is wrong is told as the reason. */
  Message.Taken take() {
    Message.Taken[] taken = new Message.Taken[1];
    long began = System.nanoTime();
    try {
      if (coming.holds()) {
        spark.holding(coming.broadcast(), () -> taken[0] = arrived(System.nanoTime()));
      } else {
        taken[0] = arrived(began);
      }
    } catch (RuntimeException error) {
      return taken(began, error.toString());
    }
    return taken[0];
  }

  /** What is told where it is not looked for at all. */
  Message.Taken refused(String reason) {
    return taken(System.nanoTime(), reason);
  }

  private Message.Taken arrived(long began) {
    begun.countDown();
    try {
      long deadline = System.nanoTime() + coming.timeoutMillis() * 1_000_000;
      return taken(began, coming.relayed() ? fetchPieces(deadline) : takeFiles(deadline));
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      return taken(began, "the executor is ending");
    } catch (IOException | RuntimeException error) {
      return taken(began, error.toString());
    }
  }

  /** Put the pieces of each file as it comes; return why not, empty where all came. */
  private String takeFiles(long deadline) throws IOException, InterruptedException {
    for (PieceFile file : coming.files()) {
      // The agent has no connection to us, and a look costs a few microseconds.
      if (!comes(() -> folder.has(file.name()), coming.holds() ? LOOK_MILLIS : IDLE_LOOK_MILLIS, deadline)) {
        return LATE;
      }
      ByteBuffer[] pieces = folder.pieces(file);
      for (int piece = 0; piece < pieces.length; piece++) {
        if (isOver()) {
          // Nothing would remove what is put after that.
          return OVER;
        }
        put(file.first() + piece, pieces[piece]);
      }
    }
    return "";
  }

  /** Fetch each piece as soon as another executor has it; return why not, empty where all came. */
  private String fetchPieces(long deadline) throws IOException, InterruptedException {
    for (int piece = 0; piece < coming.pieces(); piece++) {
      int number = piece;
      if (isOver()) {
        return OVER;
      }
      if (!comes(() -> isFetched(number), RELAY_LOOK_MILLIS, deadline)) {
        return LATE;
      }
    }
    return "";
  }

  private boolean isFetched(int piece) {
    if (spark.has(coming.broadcast(), piece)) {
      return true;
    }
    ByteBuffer data = spark.fetch(coming.broadcast(), piece);
    if (data != null && !isOver()) {
      put(piece, data);
    }
    return data != null;
  }

  private void put(int piece, ByteBuffer data) {
    int size = data.remaining();
    if (!spark.has(coming.broadcast(), piece) && spark.put(coming.broadcast(), piece, data)) {
      put++;
      bytes += size;
    }
  }

  /** Look every `millis` until it succeeds; false after the deadline, or when it is over. */
  private boolean comes(Look look, long millis, long deadline) throws IOException, InterruptedException {
    while (!look.succeeds()) {
      synchronized (this) {
        if (over || System.nanoTime() - deadline > 0) {
          return false;
        }
        wait(millis);
      }
    }
    return true;
  }

  private synchronized boolean isOver() {
    return over;
  }

  private Message.Taken taken(long began, String reason) {
    return new Message.Taken(coming.broadcast(), put, coming.pieces() - put, bytes, heldMillis(began), reason);
  }

  private long heldMillis(long began) {
    return coming.holds() ? (System.nanoTime() - began) / 1_000_000 : 0;
  }
}
