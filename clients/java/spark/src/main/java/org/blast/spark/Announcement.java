package org.blast.spark;

import java.util.List;
import java.util.stream.IntStream;

/**
 * The driver's announcement to an executor of a broadcast that Blast transfers.
 *
 * @param broadcast Spark's broadcast id
 * @param name path of its files below the agents' directory, without the file number; unguessable
 * @param pieces number of Spark's pieces
 * @param pieceBytes size of each piece; the last may be smaller
 * @param holdMillis maximum time for which readers wait; 0 if they do not wait
 * @param fileCount number of files that carry it, sent one after another
 * @param relayed whether the driver sends no file to this host: the executor fetches each piece from another executor
 */
record Announcement(
    long broadcast, String name, int pieces, int pieceBytes, long holdMillis, int fileCount, boolean relayed) {
  /** Maximum number of files of one broadcast. With k files, a relayed host lags by 1/k of a copy. */
  static final int MAX_FILES = 4;
  private static final double MIN_FILE_SECONDS = 1;

  /** Throws IllegalArgumentException for invalid values. */
  Announcement {
    if (name == null || name.isEmpty()) {
      throw new IllegalArgumentException("the name of a broadcast is missing");
    }
    if (pieces < 1 || pieceBytes < 1) {
      throw new IllegalArgumentException("invalid size of a broadcast: " + pieces + " pieces of " + pieceBytes
          + " bytes");
    }
    if (holdMillis < 0 || holdMillis > HoldTime.MAX_MILLIS) {
      throw new IllegalArgumentException("invalid hold time: " + holdMillis + " ms");
    }
    if (fileCount < 1 || fileCount > Math.min(pieces, MAX_FILES)) {
      throw new IllegalArgumentException("invalid number of files for " + pieces + " pieces: " + fileCount);
    }
  }

  /**
   * Return the number of files for a broadcast that some hosts get from other executors.
   *
   * <p>Those hosts fetch one file while the driver sends the next. Each file costs a request to the controller, so each
   * must take a second or more of a link of `linkRate` bit/s.
   */
  static int relayedFiles(int pieces, int pieceBytes, double linkRate) {
    double seconds = 8.0 * pieces * pieceBytes / linkRate;
    return (int) Math.max(1, Math.min(seconds / MIN_FILE_SECONDS, Math.min(MAX_FILES, pieces)));
  }

  /** Return a copy with a hold time of `millis`. */
  Announcement held(long millis) {
    return new Announcement(broadcast, name, pieces, pieceBytes, millis, fileCount, relayed);
  }

  /** Return a copy for an executor on a host that receives no files. */
  Announcement toRelay() {
    return new Announcement(broadcast, name, pieces, pieceBytes, holdMillis, fileCount, true);
  }

  /** Return the files in sending order. */
  List<PieceFile> files() {
    return IntStream.range(0, fileCount).mapToObj(this::file).toList();
  }

  /** Return the file with this number, starting at 0. */
  PieceFile file(int number) {
    int first = firstPiece(number);
    return new PieceFile(name + "." + number, first, firstPiece(number + 1) - first, pieceBytes);
  }

  private int firstPiece(int number) {
    return (int) ((long) number * pieces / fileCount);
  }

  /** Return the maximum size: the last piece may be smaller. */
  long maxBytes() {
    return (long) pieces * pieceBytes;
  }

  /** Return true if readers wait for it. */
  boolean holds() {
    return holdMillis > 0;
  }

  /** Return the time after which executors stop looking for it. Late pieces still help readers that do not wait. */
  long timeoutMillis() {
    return holds() ? holdMillis : HoldTime.MAX_MILLIS;
  }
}
