package org.blast.spark;

import org.apache.spark.scheduler.SparkListenerEvent;

/**
 * An event in Spark's event log: the result of a broadcast at one executor.
 *
 * @param broadcast Spark's broadcast id
 * @param executor Spark's executor id
 * @param pieces number of pieces that Blast delivered, to this host or to an executor that relayed them
 * @param late number of pieces that Spark fetches itself
 * @param bytes size of the pieces that Blast delivered
 * @param heldMillis maximum time for which readers waited, in milliseconds
 * @param reason why the executor did not take it; empty if it did
 */
public record BroadcastTaken(
    long broadcast, String executor, int pieces, int late, long bytes, long heldMillis, String reason)
    implements SparkListenerEvent {
  @Override
  public boolean logEvent() {
    return true;
  }
}
