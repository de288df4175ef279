package org.blast.spark;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Daemon threads that log uncaught exceptions. Spark ends an executor for an exception that a thread does not catch.
 */
final class Daemon {
  private static final Logger LOG = LoggerFactory.getLogger(Daemon.class);

  private Daemon() {}

  /** Start a thread. */
  static Thread start(String name, Runnable work) {
    Thread thread = of(name, () -> {
      try {
        work.run();
      } catch (Throwable error) {
        LOG.warn("thread {} has failed; Spark fetches broadcasts without Blast", name, error);
      }
    });
    thread.start();
    return thread;
  }

  /** Return a thread that is not started yet. */
  static Thread of(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    return thread;
  }
}
