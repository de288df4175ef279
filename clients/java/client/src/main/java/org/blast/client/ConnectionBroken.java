package org.blast.client;

/** The connection ended under a call that was not repeated: whether it was carried out is unknown. */
public final class ConnectionBroken extends ControllerUnreachable {
  private static final long serialVersionUID = 1;

  ConnectionBroken(String sentence, Throwable cause) {
    super(sentence, cause);
  }
}
