package org.blast.client;

/** A connection that broke during a call that was not repeated. Whether the call was executed is unknown. */
public final class ConnectionBroken extends ControllerUnreachable {
  private static final long serialVersionUID = 1;

  ConnectionBroken(String sentence, Throwable cause) {
    super(sentence, cause);
  }
}
