package org.blast.spark;

/**
 * A file with consecutive pieces of a broadcast.
 *
 * @param name path below the agents' directory
 * @param first number of its first piece
 * @param pieces number of its pieces
 * @param pieceBytes size of each piece; the last may be smaller
 */
record PieceFile(String name, int first, int pieces, int pieceBytes) {
  /** Return the maximum size: the last piece may be smaller. */
  long maxBytes() {
    return (long) pieces * pieceBytes;
  }

  /** Return true if a file with these pieces can have this size. */
  boolean fits(long bytes) {
    return bytes > maxBytes() - pieceBytes && bytes <= maxBytes();
  }
}
