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
 * One broadcast that goes by Blast, in the driver: which executors were notified, which still wait, which hosts receive
 * its files, and whether it is worth going on. Decides, and does nothing; the owner guards it.
 *
 * <p>All broadcasts leave by the driver's one link. Two at once would each take as long as both, so that readers of the
 * first would wait for the second: the driver sends one after another ({@link #next}).
 */
final class Course {
  final Announcement announcement;
  private final Map<String, Set<Door.Guest>> waiting = new HashMap<>();
  private final Set<Door.Guest> told = new HashSet<>();
  private final Map<String, String> receivers = new LinkedHashMap<>();
  private final Set<Door.Guest> relayed;
  private final Map<String, String> failed = new TreeMap<>();
  private final Set<String> transports = new LinkedHashSet<>();
  private final long announced;
  private String noLight;
  private boolean ready;
  private boolean started;
  private boolean ended;
  private long startedAt;
  private int file;
  private long sentBefore;
  /** Of its files in the spool; its last piece may be shorter than the others. */
  private long bytes;
  private long sent;

  /** Begin at `now`, in nanoseconds; the `relayed` executors get the pieces from other executors. */
  Course(Announcement announcement, List<Door.Guest> guests, Set<Door.Guest> relayed, long now) {
    this.announcement = announcement;
    this.relayed = Set.copyOf(relayed);
    announced = now;
    for (Door.Guest guest : guests) {
      String host = guest.hello.host();
      told.add(guest);
      waiting.computeIfAbsent(host, any -> new HashSet<>()).add(guest);
      if (!relayed.contains(guest)) {
        receivers.put(host, host + "=" + guest.hello.agent());
      }
    }
    for (Door.Guest guest : relayed) {
      if (!receivers.containsKey(guest.hello.host())) {
        failed.put(guest.hello.host(), "it has no agent, or a failed one: its executors fetch from other executors");
      }
    }
  }

  /**
   * Return the broadcast to send now, if there is one: the first under way, unless it is being sent or not in the spool
   * yet. Another one may not overtake it, as its readers are held for a shorter time.
   */
  static Optional<Course> next(Collection<Course> inOrder) {
    return inOrder.stream().filter(Course::isUnderWay).findFirst().filter(first -> first.ready && !first.started);
  }

  /** Return all executors that were notified. */
  Set<Door.Guest> told() {
    return told;
  }

  /** Return the notified executors on this host. */
  List<Door.Guest> on(String host) {
    return told.stream().filter(guest -> guest.hello.host().equals(host)).toList();
  }

  /** Return the announcement for one of the executors. */
  Announcement announcementTo(Door.Guest guest) {
    return relayed.contains(guest) ? announcement.toRelay() : announcement;
  }

  /** Note that this one waits no longer; return whether it was the last on its host, so that the file there may go. */
  boolean isLast(Door.Guest guest) {
    Set<Door.Guest> others = waiting.get(guest.hello.host());
    return others != null && others.remove(guest) && others.isEmpty();
  }

  /** Note that its files, of so many bytes, are in the spool. */
  void ready(long all) {
    ready = true;
    bytes = all;
  }

  /** Note that the sender gets the first file at `now`, in nanoseconds. */
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

  /** Return the sender's name of what it is being sent. */
  String send() {
    return announcement.broadcast() + "." + file;
  }

  /** Return the files that the sender has not got. */
  List<PieceFile> unsent() {
    return announcement.files().subList(started ? file + 1 : 0, announcement.fileCount());
  }

  /**
   * Note the end of the file that is being sent: hosts that did not receive it receive no other.
   *
   * @return whether there is another one to send, and a host to receive it
   */
  boolean endFile(SenderProcess.End end) {
    failed.putAll(end.failed());
    receivers.keySet().retainAll(end.delivered());
    transports.addAll(end.transports());
    noLight = end.noLight() == null ? noLight : end.noLight();
    sentBefore += announcement.file(file).maxBytes();
    sent = 0;
    if (file + 1 == announcement.fileCount() || receivers.isEmpty()) {
      return false;
    }
    file++;
    return true;
  }

  /** End it; return false where it had ended before. */
  boolean end() {
    boolean first = !ended;
    ended = true;
    return first;
  }

  /** Note that it ends before all is sent: no host has it. */
  void abandon(String reason) {
    receivers.clear();
    failed.clear();
    failed.put("", reason);
  }

  /** Whether nothing is sent any more, and no reader waits. */
  boolean isOver() {
    return ended && waiting.values().stream().allMatch(Set::isEmpty);
  }

  /** Whether it is sent, or waits for that. */
  boolean isUnderWay() {
    return !ended;
  }

  long announcedAt() {
    return announced;
  }

  /** Note that the median receiver has so many bytes of the file that is being sent. */
  void progressed(long bytes) {
    sent = Math.min(bytes, announcement.file(file).maxBytes());
  }

  /** Return the bytes that are still to be sent. */
  long bytesLeft() {
    return announcement.maxBytes() - sentBefore - sent;
  }

  /**
   * Whether it will be there before readers stop waiting, judged at `now`, in nanoseconds. Judged from half of the time
   * on that was left when its first file was sent: before that, a transfer that begins says little of how it will go.
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

  /** Return what became of it, for Spark's event log. */
  BroadcastSent outcome(long now) {
    List<String> reasons = new ArrayList<>();
    if (noLight != null) {
      reasons.add("no light: " + noLight);
    }
    failed.forEach((host, why) -> reasons.add(host.isEmpty() ? why : host + ": " + why));
    String way = transports.isEmpty() || receivers.isEmpty() ? "spark" : String.join("+", transports);
    return new BroadcastSent(
        announcement.broadcast(), ready ? bytes : announcement.maxBytes(), way, receivers.size(), (now - announced) / 1e9,
        String.join("; ", reasons));
  }
}
