package org.blast.spark;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Threads that keep no process alive, and end none: Spark ends an executor for whatever a thread of it does not catch.
 */
final class Daemon {
  private static final Logger LOG = LoggerFactory.getLogger(Daemon.class);

  private Daemon() {}

  static Thread start(String name, Runnable work) {
    Thread thread = of(name, () -> {
      try {
        work.run();
      } catch (Throwable error) {
        LOG.warn("{} has ended, and Spark fetches broadcasts as always", name, error);
      }
    });
    thread.start();
    return thread;
  }

  /** One that is not started yet. */
  static Thread of(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    return thread;
  }
}
