package org.blast.client;

/** As many calls as may are under way: nothing was asked of the controller, and later there may be room. */
public final class TooManyCalls extends BlastException {
  private static final long serialVersionUID = 1;

  TooManyCalls(int most) {
    super(most + " calls of this client are under way, and that is the most: wait for some of them to end");
  }
}
