package org.blast.spark;

import java.util.List;
import java.util.stream.IntStream;

/**
 * A broadcast that the driver sends by Blast, as it notifies an executor of it.
 *
 * @param broadcast Spark's number of it
 * @param name path of its files below the agents' folder, without the file's number; it cannot be guessed
 * @param pieces number of Spark's pieces
 * @param pieceBytes size of each piece; the last may be smaller
 * @param holdMillis maximum time that readers wait for it; 0: they do not wait
 * @param fileCount number of files that carry it, sent one after another
 * @param relayed whether the driver sends no file to this host: the executor fetches each piece from another executor
 */
record Announcement(
    long broadcast, String name, int pieces, int pieceBytes, long holdMillis, int fileCount, boolean relayed) {
  /** Maximum number of files of one broadcast: with k files a relayed host has it 1/k of a copy after the others. */
  static final int MAX_FILES = 4;
  private static final double MIN_FILE_SECONDS = 1;

  /** Reject values that no broadcast has, with IllegalArgumentException. */
  Announcement {
    if (name == null || name.isEmpty()) {
      throw new IllegalArgumentException("a broadcast needs a name");
    }
    if (pieces < 1 || pieceBytes < 1) {
      throw new IllegalArgumentException("no broadcast has " + pieces + " pieces of " + pieceBytes + " bytes");
    }
    if (holdMillis < 0 || holdMillis > HoldTime.MAX_MILLIS) {
      throw new IllegalArgumentException("readers cannot wait for " + holdMillis + " ms");
    }
    if (fileCount < 1 || fileCount > Math.min(pieces, MAX_FILES)) {
      throw new IllegalArgumentException(pieces + " pieces cannot come in " + fileCount + " files");
    }
  }

  /**
   * Return the number of files for a broadcast that some hosts get from other executors.
   *
   * <p>Those hosts fetch one file while the driver sends the next. Each file costs a request for light, so that each
   * must take a second of a link of `linkRate` bit/s.
   */
  static int relayedFiles(int pieces, int pieceBytes, double linkRate) {
    double seconds = 8.0 * pieces * pieceBytes / linkRate;
    return (int) Math.max(1, Math.min(seconds / MIN_FILE_SECONDS, Math.min(MAX_FILES, pieces)));
  }

  /** Return the same with readers that wait for `millis`. */
  Announcement held(long millis) {
    return new Announcement(broadcast, name, pieces, pieceBytes, millis, fileCount, relayed);
  }

  /** Return the same for an executor on a host to which no file is sent. */
  Announcement toRelay() {
    return new Announcement(broadcast, name, pieces, pieceBytes, holdMillis, fileCount, true);
  }

  /** Return the files in the order in which they are sent. */
  List<PieceFile> files() {
    return IntStream.range(0, fileCount).mapToObj(this::file).toList();
  }

  /** Return the file with this number, from 0 on. */
  PieceFile file(int number) {
    int first = firstPiece(number);
    return new PieceFile(name + "." + number, first, firstPiece(number + 1) - first, pieceBytes);
  }

  private int firstPiece(int number) {
    return (int) ((long) number * pieces / fileCount);
  }

  /** Return the size, at most: the last piece may be smaller. */
  long maxBytes() {
    return (long) pieces * pieceBytes;
  }

  /** Whether readers wait for it. */
  boolean holds() {
    return holdMillis > 0;
  }

  /** Return the time after which executors stop looking for it: late pieces help readers that do not wait. */
  long timeoutMillis() {
    return holds() ? holdMillis : HoldTime.MAX_MILLIS;
  }
}
