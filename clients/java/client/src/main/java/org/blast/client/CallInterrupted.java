package org.blast.client;

/**
 * The thread was interrupted while it waited for an answer; it still is. Whether the call was carried out is unknown,
 * but light that was asked for is given back.
 */
public final class CallInterrupted extends BlastException {
  private static final long serialVersionUID = 1;

  CallInterrupted(InterruptedException cause) {
    super("interrupted while the call was under way", cause);
  }
}
