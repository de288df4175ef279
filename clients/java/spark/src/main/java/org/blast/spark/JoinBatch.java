package org.blast.spark;

import java.util.ArrayList;
import java.util.List;

/**
 * The executors that join after a broadcast was created. The driver announces the broadcast to each at once, and sends
 * it to all that join together in one transfer. Not thread-safe.
 */
final class JoinBatch {
  private static final long NANOS = 300_000_000;

  final Announcement announcement;
  private final List<ExecutorServer.Peer> peers = new ArrayList<>();
  private long last;

  JoinBatch(Announcement announcement) {
    this.announcement = announcement;
  }

  /** Return the time between the last join and the transfer, in milliseconds. */
  static long millis() {
    return NANOS / 1_000_000;
  }

  /** Add an executor that joined at `now`, in nanoseconds. */
  void add(ExecutorServer.Peer peer, long now) {
    peers.add(peer);
    last = now;
  }

  /** Remove an executor. Return false if it is not in the batch. */
  boolean remove(ExecutorServer.Peer peer) {
    return peers.remove(peer);
  }

  List<ExecutorServer.Peer> peers() {
    return List.copyOf(peers);
  }

  /** Return true if the batch has executors and the last one joined long enough ago. */
  boolean isComplete(long now) {
    return !peers.isEmpty() && now - last >= NANOS;
  }
}
