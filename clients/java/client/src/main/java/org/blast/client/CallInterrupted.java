package org.blast.client;

/**
 * An interrupt of a thread that waited for an answer; the thread's interrupt status stays set. Whether the controller
 * executed the call is unknown; the client withdraws a request that it was submitting.
 */
public final class CallInterrupted extends BlastException {
  private static final long serialVersionUID = 1;

  CallInterrupted(InterruptedException cause) {
    super("interrupted while the call was under way", cause);
  }
}
