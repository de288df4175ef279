package org.blast.client;

/** A call beyond the limit of concurrent calls, which was not sent. A later call may succeed. */
public final class TooManyCalls extends BlastException {
  private static final long serialVersionUID = 1;

  TooManyCalls(int maxCalls) {
    super("the client already has " + maxCalls + " pending calls, its limit: wait for some to end, or raise maxCalls");
  }
}
