package org.blast.spark;

import org.apache.spark.scheduler.SparkListenerEvent;

/**
 * An event in Spark's event log: an executor's plugin has connected to the driver's.
 *
 * @param executor Spark's executor id
 * @param host name of its host at the controller
 * @param agent HOST:PORT of that host's agent; null if it has none, so that its executors fetch broadcasts from others
 */
public record ExecutorJoined(String executor, String host, String agent) implements SparkListenerEvent {
  @Override
  public boolean logEvent() {
    return true;
  }
}
