package org.blast.spark;

import java.util.ArrayList;
import java.util.List;

/**
 * A broadcast that waits for executors: one that was made before there were any, or is being sent to others. Whoever comes
 * is told of it at once, and all who came together are sent it together. Whoever has it guards it.
 */
final class Gathering {
  private static final long NANOS = 300_000_000;

  final Announcement announcement;
  private final List<Door.Guest> guests = new ArrayList<>();
  private long last;

  Gathering(Announcement announcement) {
    this.announcement = announcement;
  }

  /** How long after the last who came it is sent, in milliseconds. */
  static long millis() {
    return NANOS / 1_000_000;
  }

  /** One has come, at this number of nanoseconds. */
  void add(Door.Guest guest, long now) {
    guests.add(guest);
    last = now;
  }

  /** Whether it was among them. */
  boolean remove(Door.Guest guest) {
    return guests.remove(guest);
  }

  List<Door.Guest> guests() {
    return List.copyOf(guests);
  }

  /** Whether some are there, and the last of them has been for so long that nobody else comes with them. */
  boolean isComplete(long now) {
    return !guests.isEmpty() && now - last >= NANOS;
  }
}
