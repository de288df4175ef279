package org.blast.spark;

import java.io.IOException;
import java.nio.ByteBuffer;

/** One broadcast on its way to this executor: whoever reads it first waits until it is here, or is over. */
final class Arrival {
  private static final long LOOK_MILLIS = 2;

  private final SparkInternals spark;
  private final HostFolder folder;
  private final Announcement coming;
  private boolean over;

  Arrival(SparkInternals spark, HostFolder folder, Announcement coming) {
    this.spark = spark;
    this.folder = folder;
    this.coming = coming;
  }

  /** Readers wait no longer. */
  synchronized void over() {
    over = true;
    notifyAll();
  }

  /** Hold readers back, wait, and hand over what has come. */
  Message.Taken take() {
    Message.Taken[] taken = new Message.Taken[1];
    spark.holding(coming.broadcast(), () -> taken[0] = held());
    return taken[0];
  }

  private Message.Taken held() {
    long began = System.nanoTime();
    try {
      if (!arrives()) {
        return taken(0, began, "it did not come in time");
      }
      return handedOver(began);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      return taken(0, began, "the executor is ending");
    } catch (IOException | RuntimeException error) {
      return taken(0, began, error.toString());
    }
  }

  /** Looked for, and not told: the agent has no connection to us, and a look costs a few microseconds. */
  private synchronized boolean arrives() throws InterruptedException {
    long deadline = System.nanoTime() + coming.holdMillis() * 1_000_000;
    while (!folder.has(coming.name())) {
      if (over || System.nanoTime() - deadline > 0) {
        return false;
      }
      wait(LOOK_MILLIS);
    }
    return true;
  }

  private Message.Taken handedOver(long began) throws IOException {
    int put = 0;
    int late = 0;
    long bytes = 0;
    ByteBuffer[] pieces = folder.pieces(coming);
    for (int piece = 0; piece < pieces.length; piece++) {
      int size = pieces[piece].remaining();
      if (spark.has(coming.broadcast(), piece)) {
        late++;
      } else if (spark.put(coming.broadcast(), piece, pieces[piece])) {
        put++;
        bytes += size;
      }
    }
    return new Message.Taken(coming.broadcast(), put, late, bytes, millisSince(began), "");
  }

  private Message.Taken taken(int put, long began, String reason) {
    return new Message.Taken(coming.broadcast(), put, coming.pieces(), 0, millisSince(began), reason);
  }

  private static long millisSince(long began) {
    return (System.nanoTime() - began) / 1_000_000;
  }
}
