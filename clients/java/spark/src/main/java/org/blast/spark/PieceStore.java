package org.blast.spark;

import java.nio.ByteBuffer;

/** Where Spark keeps the pieces of broadcasts in this process. */
interface PieceStore {
  /** Do something while whoever reads this broadcast for the first time in this process waits. */
  void holding(long broadcast, Runnable action);

  /** Whether a piece is here. */
  boolean has(long broadcast, int piece);

  /**
   * Fetch a piece from an executor that has it, by Spark's own block transfer.
   *
   * @return null where no other executor has it yet
   */
  ByteBuffer fetch(long broadcast, int piece);

  /** Put a piece where Spark looks first; false where it had no room for it. */
  boolean put(long broadcast, int piece, ByteBuffer data);
}
