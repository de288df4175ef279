package org.blast.client;

/** An argument that cannot be sent. The client did not contact the controller. */
public final class WrongArgument extends BlastException {
  private static final long serialVersionUID = 1;

  WrongArgument(String sentence) {
    super(sentence);
  }
}
