package org.blast.client;

/** What the caller gave cannot be sent: the caller's mistake, and nothing was asked of the controller. */
public final class WrongArgument extends BlastException {
  private static final long serialVersionUID = 1;

  WrongArgument(String sentence) {
    super(sentence);
  }
}
