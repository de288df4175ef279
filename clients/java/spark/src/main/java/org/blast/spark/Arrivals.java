package org.blast.spark;

import java.io.Closeable;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The broadcasts on their way to this executor: does what the driver says, and tells it what became of each. */
final class Arrivals implements Closeable {
  static final int MAX_AT_ONCE = 32;
  private static final long BEGIN_MILLIS = 200;
  private static final Logger LOG = LoggerFactory.getLogger(Arrivals.class);

  /** Takes what we have to say; several threads say it. */
  interface Driver {
    /** IOException where it has gone. */
    void tell(Message message) throws IOException;
  }

  private record Coming(Announcement announced, Arrival arrival) {}

  private final PieceStore spark;
  private final HostFolder folder;
  private final Driver driver;
  private final Map<Long, Coming> coming = new ConcurrentHashMap<>();
  private final Semaphore places = new Semaphore(MAX_AT_ONCE);
  private final CountDownLatch welcomed;

  /**
   * Begin without any. `welcomed` is counted down when the driver has announced all that is on its way; `folder` is
   * null where this host has no agent, so that each broadcast is relayed.
   */
  Arrivals(PieceStore spark, HostFolder folder, Driver driver, CountDownLatch welcomed) {
    this.welcomed = welcomed;
    this.spark = spark;
    this.folder = folder;
    this.driver = driver;
  }

  /**
   * What the driver says.
   *
   * @throws IOException where it has gone, or says what no driver of ours would
   */
  void hear(Message message) throws IOException {
    if (message.coming() != null) {
      begin(message.coming());
    } else if (message.welcome() != null) {
      begun();
    } else if (message.over() != null) {
      Coming over = coming.remove(message.over());
      if (over != null) {
        over.arrival().over();
        if (folder != null) {
          over.announced().files().forEach(file -> folder.remove(file.name()));
        }
      }
    }
    if (folder != null) {
      folder.removeUnwanted();
    }
  }

  /** Readers of all that is on its way are held back, or soon will be. */
  private void begun() {
    try {
      for (Coming one : coming.values()) {
        one.arrival().awaitBegin(BEGIN_MILLIS);
      }
      welcomed.countDown();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  /** How many the driver has announced, and has not said to be over. */
  int size() {
    return coming.size();
  }

  /** Readers wait for none of them any longer. */
  @Override
  public void close() {
    coming.values().forEach(one -> one.arrival().over());
    coming.clear();
  }

  private void begin(Announcement announced) throws IOException {
    if (!announced.relayed() && (folder == null || !folder.owns(announced.name()))) {
      throw new IOException(announced.name() + " is not of this application");
    }
    Arrival arrival = new Arrival(spark, folder, announced);
    coming.put(announced.broadcast(), new Coming(announced, arrival));
    if (!places.tryAcquire()) {
      driver.tell(Message.of(arrival.refused(MAX_AT_ONCE + " are on their way here")));
      return;
    }
    Daemon.start("blast-broadcast-" + announced.broadcast(), () -> {
      try {
        driver.tell(Message.of(arrival.take()));
      } catch (IOException error) {
        LOG.debug("the driver has gone", error);
      } finally {
        places.release();
      }
    });
  }
}
