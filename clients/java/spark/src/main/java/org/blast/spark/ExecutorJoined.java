package org.blast.spark;

import org.apache.spark.scheduler.SparkListenerEvent;

/**
 * In Spark's event log: the plugin is connected to an executor.
 *
 * @param executor Spark's name of it
 * @param host its host as the controller knows it
 * @param agent HOST:PORT of that host's agent; null where it has none, and gets broadcasts from other executors
 */
public record ExecutorJoined(String executor, String host, String agent) implements SparkListenerEvent {
  @Override
  public boolean logEvent() {
    return true;
  }
}
