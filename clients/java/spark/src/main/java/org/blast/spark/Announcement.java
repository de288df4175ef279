package org.blast.spark;

/**
 * A broadcast that comes by Blast.
 *
 * @param broadcast Spark's number of it
 * @param name what its file is called below the agents' folder; nobody can guess it
 * @param pieces how many pieces Spark has cut it into
 * @param pieceBytes bytes of each, but the last, which may have fewer
 * @param holdMillis how long readers wait for it at most; 0 where they do not
 */
record Announcement(long broadcast, String name, int pieces, int pieceBytes, long holdMillis) {
  /** IllegalArgumentException where no broadcast can be like this. */
  Announcement {
    if (name == null || name.isEmpty()) {
      throw new IllegalArgumentException("a broadcast needs a name");
    }
    if (pieces < 1 || pieceBytes < 1) {
      throw new IllegalArgumentException("no broadcast has " + pieces + " pieces of " + pieceBytes + " bytes");
    }
    if (holdMillis < 0 || holdMillis > HoldTime.MOST_MILLIS) {
      throw new IllegalArgumentException("nobody waits for " + holdMillis + " ms");
    }
  }

  /** The same, with readers that wait for so long. */
  Announcement held(long millis) {
    return new Announcement(broadcast, name, pieces, pieceBytes, millis);
  }

  /** Bytes at most. */
  long mostBytes() {
    return (long) pieces * pieceBytes;
  }

  /** Whether a file of so many bytes can be this. */
  boolean fits(long bytes) {
    return bytes > mostBytes() - pieceBytes && bytes <= mostBytes();
  }

  /** Whether readers wait for it. */
  boolean holds() {
    return holdMillis > 0;
  }

  /** How long it is looked for. Where nobody waits, what comes late may still be of use. */
  long patienceMillis() {
    return holds() ? holdMillis : HoldTime.MOST_MILLIS;
  }
}
