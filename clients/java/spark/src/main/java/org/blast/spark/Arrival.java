package org.blast.spark;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * One broadcast on its way to this executor. Whoever reads it first waits until it is here, or is over; where nobody is
 * to wait, what Spark has not fetched by then is taken from it.
 */
final class Arrival {
  private static final long LOOK_MILLIS = 2;
  private static final long IDLE_LOOK_MILLIS = 20;

  private final PieceStore spark;
  private final HostFolder folder;
  private final Announcement coming;
  private final CountDownLatch begun = new CountDownLatch(1);
  private boolean over;

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
      return nothing(began, error.toString());
    }
    return taken[0];
  }

  /** What is told where it is not looked for at all. */
  Message.Taken refused(String reason) {
    return nothing(System.nanoTime(), reason);
  }

  private Message.Taken arrived(long began) {
    begun.countDown();
    try {
      return arrives() ? handedOver(began) : nothing(began, "it did not come in time");
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      return nothing(began, "the executor is ending");
    } catch (IOException | RuntimeException error) {
      return nothing(began, error.toString());
    }
  }

  /** Looked for, and not told: the agent has no connection to us, and a look costs a few microseconds. */
  private synchronized boolean arrives() throws InterruptedException {
    long deadline = System.nanoTime() + coming.patienceMillis() * 1_000_000;
    while (!folder.has(coming.name())) {
      if (over || System.nanoTime() - deadline > 0) {
        return false;
      }
      wait(coming.holds() ? LOOK_MILLIS : IDLE_LOOK_MILLIS);
    }
    return true;
  }

  private synchronized boolean isOver() {
    return over;
  }

  private Message.Taken handedOver(long began) throws IOException {
    int put = 0;
    int late = 0;
    long bytes = 0;
    ByteBuffer[] pieces = folder.pieces(coming);
    for (int piece = 0; piece < pieces.length; piece++) {
      if (isOver()) {
        // Nobody would remove what is put after that.
        return new Message.Taken(coming.broadcast(), put, late, bytes, heldMillis(began), "it was over meanwhile");
      }
      int size = pieces[piece].remaining();
      if (spark.has(coming.broadcast(), piece)) {
        late++;
      } else if (spark.put(coming.broadcast(), piece, pieces[piece])) {
        put++;
        bytes += size;
      }
    }
    return new Message.Taken(coming.broadcast(), put, late, bytes, heldMillis(began), "");
  }

  private Message.Taken nothing(long began, String reason) {
    return new Message.Taken(coming.broadcast(), 0, coming.pieces(), 0, heldMillis(began), reason);
  }

  private long heldMillis(long began) {
    return coming.holds() ? (System.nanoTime() - began) / 1_000_000 : 0;
  }
}
