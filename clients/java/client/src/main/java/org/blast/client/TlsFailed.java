package org.blast.client;

/** The two sides did not trust or understand each other; the message says what to look at. */
public final class TlsFailed extends ControllerUnreachable {
  private static final long serialVersionUID = 1;

  TlsFailed(String sentence, Throwable cause) {
    super(sentence, cause);
  }
}
