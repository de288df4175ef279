package org.blast.spark;

/**
 * A broadcast that comes by Blast.
 *
 * @param broadcast Spark's number of it
 * @param name what its file is called below the agents' folder; nobody can guess it
 * @param pieces how many pieces Spark has cut it into
 * @param pieceBytes bytes of each, but the last, which may have fewer
 * @param holdMillis how long readers wait for it at most
 */
record Announcement(long broadcast, String name, int pieces, int pieceBytes, long holdMillis) {
  /** Bytes at most. */
  long mostBytes() {
    return (long) pieces * pieceBytes;
  }

  /** Whether a file of so many bytes can be this. */
  boolean fits(long bytes) {
    return bytes > mostBytes() - pieceBytes && bytes <= mostBytes();
  }
}
