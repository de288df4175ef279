package org.blast.client;

/** A TLS handshake that failed. The message lists the settings to check. */
public final class TlsFailed extends ControllerUnreachable {
  private static final long serialVersionUID = 1;

  TlsFailed(String sentence, Throwable cause) {
    super(sentence, cause);
  }
}
