package org.blast.spark;

import org.apache.spark.scheduler.SparkListenerEvent;

/**
 * In Spark's event log: what became of one broadcast at one executor.
 *
 * @param broadcast Spark's number of it
 * @param executor Spark's name of it
 * @param pieces that came by Blast, to this host or to an executor that handed them over
 * @param late pieces that Spark had fetched, or will
 * @param bytes of those pieces
 * @param heldMillis how long readers were held back at most
 * @param reason why it was not taken; empty where it was
 */
public record BroadcastTaken(
    long broadcast, String executor, int pieces, int late, long bytes, long heldMillis, String reason)
    implements SparkListenerEvent {
  @Override
  public boolean logEvent() {
    return true;
  }
}
