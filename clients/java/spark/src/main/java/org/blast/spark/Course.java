package org.blast.spark;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * One broadcast that goes by Blast, as the driver sees it: who was told, who still waits, and whether it is worth going
 * on. Decides, and does nothing; whoever has it guards it.
 */
final class Course {
  final Announcement announcement;
  private final Map<String, Set<Door.Guest>> waiting = new HashMap<>();
  private final Set<Door.Guest> told = new HashSet<>();
  private final long began;
  private boolean ended;

  /** It begins now, at this number of nanoseconds. */
  Course(Announcement announcement, List<Door.Guest> guests, long now) {
    this.announcement = announcement;
    began = now;
    for (Door.Guest guest : guests) {
      told.add(guest);
      waiting.computeIfAbsent(guest.hello.host(), host -> new HashSet<>()).add(guest);
    }
  }

  /** Everybody who was told. */
  Set<Door.Guest> told() {
    return told;
  }

  /** Those that were told on this host. */
  List<Door.Guest> on(String host) {
    return told.stream().filter(guest -> guest.hello.host().equals(host)).toList();
  }

  /** This one waits no longer; whether nobody on its host does any more, so that the file there may go. */
  boolean isLast(Door.Guest guest) {
    Set<Door.Guest> others = waiting.get(guest.hello.host());
    return others != null && others.remove(guest) && others.isEmpty();
  }

  /** The sender has ended with it; false where it had before. */
  boolean end() {
    boolean first = !ended;
    ended = true;
    return first;
  }

  /** Nothing is sent any more, and nobody waits. */
  boolean isOver() {
    return ended && waiting.values().stream().allMatch(Set::isEmpty);
  }

  boolean isSending() {
    return !ended;
  }

  double secondsSince(long now) {
    return (now - began) / 1e9;
  }

  /**
   * Whether it will be there before readers go their own way, with so many bytes there at this time. Judged from half
   * of that time on: before that a transfer that begins says little of how it will go.
   */
  boolean isInTime(long bytes, long now) {
    double passed = secondsSince(now) * 1000;
    if (!announcement.holds() || passed < announcement.holdMillis() / 2.0) {
      return true;
    }
    return bytes > 0 && passed * announcement.mostBytes() / bytes <= announcement.holdMillis() * 1.05;
  }
}
