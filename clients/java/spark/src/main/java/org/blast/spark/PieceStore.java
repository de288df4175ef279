package org.blast.spark;

import java.nio.ByteBuffer;

/** Spark's store of broadcast pieces in this process. */
interface PieceStore {
  /** Run an action while the first readers of this broadcast in this process wait. */
  void blockReaders(long broadcast, Runnable action);

  /** Return true if the store has this piece. */
  boolean has(long broadcast, int piece);

  /**
   * Fetch a piece from an executor that has it, by Spark's own block transfer.
   *
   * @return the piece; null if no other executor has it yet
   */
  ByteBuffer fetch(long broadcast, int piece);

  /** Store a piece where Spark looks first. Return false if there is no room. */
  boolean put(long broadcast, int piece, ByteBuffer data);
}
