package org.blast.spark;

import java.io.Closeable;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The broadcasts that this executor expects: handles the driver's messages, and reports the result of each broadcast.
 */
final class IncomingBroadcasts implements Closeable {
  static final int MAX_AT_ONCE = 32;
  private static final long BEGIN_MILLIS = 200;
  private static final Logger LOG = LoggerFactory.getLogger(IncomingBroadcasts.class);

  /** The connection to the driver. Thread-safe. */
  interface Driver {
    /** Send a message. Throws IOException if the connection has ended. */
    void send(Message message) throws IOException;
  }

  private record Expected(Announcement announced, IncomingBroadcast broadcast) {}

  private final PieceStore spark;
  private final HostFolder folder;
  private final Driver driver;
  private final Map<Long, Expected> expected = new ConcurrentHashMap<>();
  private final Semaphore permits = new Semaphore(MAX_AT_ONCE);
  private final CountDownLatch welcomed;

  /**
   * Expect no broadcast yet. Counts `welcomed` down when the driver has announced all current broadcasts. `folder` is
   * null if this host has no agent, so that each broadcast is relayed.
   */
  IncomingBroadcasts(PieceStore spark, HostFolder folder, Driver driver, CountDownLatch welcomed) {
    this.welcomed = welcomed;
    this.spark = spark;
    this.folder = folder;
    this.driver = driver;
  }

  /**
   * Handle a message of the driver.
   *
   * @throws IOException if the connection has ended, or the message is invalid
   */
  void handle(Message message) throws IOException {
    if (message.coming() != null) {
      begin(message.coming());
    } else if (message.welcome() != null) {
      awaitBlocked();
    } else if (message.over() != null) {
      Expected ended = expected.remove(message.over());
      if (ended != null) {
        ended.broadcast().end();
        if (folder != null) {
          ended.announced().files().forEach(file -> folder.remove(file.name()));
        }
      }
    }
    if (folder != null) {
      folder.removeStale();
    }
  }

  /** Wait until readers of all announced broadcasts are blocked, up to BEGIN_MILLIS for each. */
  private void awaitBlocked() {
    try {
      for (Expected one : expected.values()) {
        one.broadcast().awaitBegin(BEGIN_MILLIS);
      }
      welcomed.countDown();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  /** Return the number of announced broadcasts that have not ended. */
  int size() {
    return expected.size();
  }

  /** Stop blocking readers. */
  @Override
  public void close() {
    expected.values().forEach(one -> one.broadcast().end());
    expected.clear();
  }

  private void begin(Announcement announced) throws IOException {
    if (!announced.relayed() && (folder == null || !folder.owns(announced.name()))) {
      throw new IOException(announced.name() + " does not belong to this application");
    }
    IncomingBroadcast broadcast = new IncomingBroadcast(spark, folder, announced);
    expected.put(announced.broadcast(), new Expected(announced, broadcast));
    if (!permits.tryAcquire()) {
      driver.send(Message.of(broadcast.refused("this executor already expects " + MAX_AT_ONCE + " broadcasts")));
      return;
    }
    Daemon.start("blast-broadcast-" + announced.broadcast(), () -> {
      try {
        driver.send(Message.of(broadcast.take()));
      } catch (IOException error) {
        LOG.debug("the driver has closed the connection", error);
      } finally {
        permits.release();
      }
    });
  }
}
