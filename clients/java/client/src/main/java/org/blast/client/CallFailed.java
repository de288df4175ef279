package org.blast.client;

/**
 * The controller understood the call and failed at it, does not know it, or answered what cannot be read: its fault,
 * not the caller's.
 */
public final class CallFailed extends BlastException {
  private static final long serialVersionUID = 1;

  CallFailed(String sentence, Throwable cause) {
    super(sentence, cause);
  }

  CallFailed(Throwable answer) {
    super("the controller could not carry out the call: " + answer.getMessage(), answer);
  }
}
