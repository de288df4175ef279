package org.blast.spark;

import org.apache.spark.scheduler.SparkListenerEvent;

/**
 * In Spark's event log: what became of one broadcast that was offered to Blast.
 *
 * @param broadcast Spark's number of it
 * @param bytes of all its pieces; where they were not copied, the most that they can have
 * @param way optical, pipeline, both with a plus between, or spark where it did not go by Blast
 * @param hosts that have it from the sender; others get it from their executors
 * @param seconds from its announcement to the last verified byte
 * @param reason why not all of it, or not all hosts; empty where all went well
 */
public record BroadcastSent(long broadcast, long bytes, String way, int hosts, double seconds, String reason)
    implements SparkListenerEvent {
  @Override
  public boolean logEvent() {
    return true;
  }
}
