package org.blast.client;

/**
 * A certificate, key or token that is unusable, must not be sent, or that the controller refuses (then the cause is its
 * {@link org.blast.Denied}).
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
