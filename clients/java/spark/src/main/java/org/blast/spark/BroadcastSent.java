package org.blast.spark;

import org.apache.spark.scheduler.SparkListenerEvent;

/**
 * An event in Spark's event log: the result of a broadcast transfer by Blast.
 *
 * @param broadcast Spark's broadcast id
 * @param bytes size of all pieces; their maximum size if they were not copied
 * @param way transport: optical, pipeline, both joined by a plus sign, or spark if Blast did not transfer it
 * @param hosts number of hosts that received it from the sender; other hosts fetch it from executors
 * @param seconds time from its announcement to the last verified byte
 * @param reason why it is incomplete or hosts lack it; empty if there was no failure
 */
public record BroadcastSent(long broadcast, long bytes, String way, int hosts, double seconds, String reason)
    implements SparkListenerEvent {
  @Override
  public boolean logEvent() {
    return true;
  }
}
