package org.blast.spark;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;

/**
 * The state of a broadcast that Blast transfers, in the driver: the notified and the waiting executors, the receiving
 * hosts, and whether the transfer can complete in time. It performs no input or output. Not thread-safe.
 *
 * <p>All broadcasts share the driver's link. Two concurrent ones would each take as long as both together, and delay
 * the readers of the first: the driver sends one after another ({@link #next}).
 */
final class BroadcastTransfer {
  final Announcement announcement;
  private final Map<String, Set<ExecutorServer.Peer>> waiting = new HashMap<>();
  private final Set<ExecutorServer.Peer> notified = new HashSet<>();
  private final Map<String, String> receivers = new LinkedHashMap<>();
  private final Set<ExecutorServer.Peer> relayed;
  private final Map<String, String> failed = new TreeMap<>();
  private final Set<String> transports = new LinkedHashSet<>();
  private final long announced;
  private String noOptical;
  private boolean ready;
  private boolean started;
  private boolean ended;
  private long startedAt;
  private int file;
  private long sentBefore;
  /** Size of its files in the spool. */
  private long bytes;
  private long sent;

  /** Announce at `now`, in nanoseconds. The `relayed` executors fetch the pieces from other executors. */
  BroadcastTransfer(Announcement announcement, List<ExecutorServer.Peer> peers, Set<ExecutorServer.Peer> relayed,
      long now) {
    this.announcement = announcement;
    this.relayed = Set.copyOf(relayed);
    announced = now;
    for (ExecutorServer.Peer peer : peers) {
      String host = peer.hello.host();
      notified.add(peer);
      waiting.computeIfAbsent(host, any -> new HashSet<>()).add(peer);
      if (!relayed.contains(peer)) {
        receivers.put(host, host + "=" + peer.hello.agent());
      }
    }
    for (ExecutorServer.Peer peer : relayed) {
      if (!receivers.containsKey(peer.hello.host())) {
        failed.put(peer.hello.host(), "no agent, or one that failed recently: its executors fetch from other "
            + "executors");
      }
    }
  }

  /**
   * Return the broadcast to send next: the first in progress, unless it is being sent or is not in the spool yet.
   * Another one must not overtake it, since the hold time of its readers is shorter.
   */
  static Optional<BroadcastTransfer> next(Collection<BroadcastTransfer> transfers) {
    return transfers.stream().filter(BroadcastTransfer::isInProgress).findFirst()
        .filter(first -> first.ready && !first.started);
  }

  /** Return the notified executors. */
  Set<ExecutorServer.Peer> notified() {
    return notified;
  }

  /** Return the notified executors on this host. */
  List<ExecutorServer.Peer> on(String host) {
    return notified.stream().filter(peer -> peer.hello.host().equals(host)).toList();
  }

  /** Return the announcement for one of the executors. */
  Announcement announcementTo(ExecutorServer.Peer peer) {
    return relayed.contains(peer) ? announcement.toRelay() : announcement;
  }

  /** Note that an executor waits no longer. Return true if it was the last on its host, which may remove the file. */
  boolean removeWaiting(ExecutorServer.Peer peer) {
    Set<ExecutorServer.Peer> others = waiting.get(peer.hello.host());
    return others != null && others.remove(peer) && others.isEmpty();
  }

  /** Note that its files, with `total` bytes, are in the spool. */
  void ready(long total) {
    ready = true;
    bytes = total;
  }

  /** Note that the sender starts the first file at `now`, in nanoseconds. */
  void start(long now) {
    started = true;
    startedAt = now;
  }

  /** Return the number of the file that is being sent. */
  int file() {
    return file;
  }

  /** Return HOST=AGENT of each host that receives the file. */
  List<String> receivers() {
    return List.copyOf(receivers.values());
  }

  /** Return the name of the current transfer at the sender. */
  String send() {
    return announcement.broadcast() + "." + file;
  }

  /** Return the files that were not passed to the sender. */
  List<PieceFile> unsent() {
    return announcement.files().subList(started ? file + 1 : 0, announcement.fileCount());
  }

  /**
   * Note the end of the current file. Hosts that did not receive it receive no further file.
   *
   * @return true if a further file and a host to receive it are left
   */
  boolean endFile(SenderProcess.End end) {
    failed.putAll(end.failed());
    receivers.keySet().retainAll(end.delivered());
    transports.addAll(end.transports());
    noOptical = end.noOpticalPath() == null ? noOptical : end.noOpticalPath();
    sentBefore += announcement.file(file).maxBytes();
    sent = 0;
    if (file + 1 == announcement.fileCount() || receivers.isEmpty()) {
      return false;
    }
    file++;
    return true;
  }

  /** End the transfer. Return false if it had ended. */
  boolean end() {
    boolean first = !ended;
    ended = true;
    return first;
  }

  /** Note that the transfer is aborted: no host has received the broadcast. */
  void abandon(String reason) {
    receivers.clear();
    failed.clear();
    failed.put("", reason);
  }

  /** Return true if the transfer has ended and no executor waits. */
  boolean isComplete() {
    return ended && waiting.values().stream().allMatch(Set::isEmpty);
  }

  /** Return true until the transfer has ended. */
  boolean isInProgress() {
    return !ended;
  }

  long announcedAt() {
    return announced;
  }

  /** Note that the median receiver has `bytes` bytes of the current file. */
  void progressed(long bytes) {
    sent = Math.min(bytes, announcement.file(file).maxBytes());
  }

  /** Return the bytes left to send. */
  long bytesLeft() {
    return announcement.maxBytes() - sentBefore - sent;
  }

  /**
   * Estimate at `now`, in nanoseconds, whether the transfer completes within the hold time. In the first half of the
   * time that was left at its start, the rate is not representative yet, and the result is true.
   */
  boolean isInTime(long now) {
    if (!announcement.holds() || !started) {
      return true;
    }
    double allowed = announcement.holdMillis() - (startedAt - announced) / 1e6;
    double passed = (now - startedAt) / 1e6;
    double done = announcement.maxBytes() - bytesLeft();
    return passed < allowed / 2 || done > 0 && passed * announcement.maxBytes() / done <= allowed * 1.05;
  }

  /** Return the result for Spark's event log. */
  BroadcastSent outcome(long now) {
    List<String> reasons = new ArrayList<>();
    if (noOptical != null) {
      reasons.add("not optical: " + noOptical);
    }
    failed.forEach((host, reason) -> reasons.add(host.isEmpty() ? reason : host + ": " + reason));
    String way = transports.isEmpty() || receivers.isEmpty() ? "spark" : String.join("+", transports);
    return new BroadcastSent(
        announcement.broadcast(), ready ? bytes : announcement.maxBytes(), way, receivers.size(),
            (now - announced) / 1e9,
        String.join("; ", reasons));
  }
}
