package org.blast.client;

/**
 * The caller's fault: a certificate, key or token that cannot be used, must not be sent, or is not taken by the
 * controller (then the cause is its {@link org.blast.Denied}).
 */
public final class BadCredentials extends BlastException {
  private static final long serialVersionUID = 1;

  BadCredentials(String sentence) {
    super(sentence);
  }

  BadCredentials(String sentence, Throwable cause) {
    super(sentence, cause);
  }
}
