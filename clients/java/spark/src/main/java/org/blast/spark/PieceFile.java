package org.blast.spark;

/**
 * A file with consecutive pieces of a broadcast.
 *
 * @param name its path below the agents' folder
 * @param first number of its first piece
 * @param pieces number of its pieces
 * @param pieceBytes size of each piece; the last may be smaller
 */
record PieceFile(String name, int first, int pieces, int pieceBytes) {
  /** Return the size, at most. */
  long maxBytes() {
    return (long) pieces * pieceBytes;
  }

  /** Whether a file of this size can be it. */
  boolean fits(long bytes) {
    return bytes > maxBytes() - pieceBytes && bytes <= maxBytes();
  }
}
