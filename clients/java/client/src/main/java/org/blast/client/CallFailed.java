package org.blast.client;

/** A failure of the controller: it cannot execute the call, does not know it, or sends an unreadable answer. */
public final class CallFailed extends BlastException {
  private static final long serialVersionUID = 1;

  CallFailed(String sentence, Throwable cause) {
    super(sentence, cause);
  }

  CallFailed(Throwable answer) {
    super("the controller failed to execute the call: " + answer.getMessage(), answer);
  }
}
