package org.blast.client;

/**
 * A failure of a call other than an answer of the controller. The message states the failure and the remedy.
 *
 * <p>It is unchecked because callers can rarely recover from it. The controller's answers, {@link org.blast.Rejected},
 * {@link org.blast.TimedOut} and the other exceptions of the interface, are checked: they occur in normal operation,
 * and an application needs a fallback for a request without a grant.
 */
public class BlastException extends RuntimeException {
  private static final long serialVersionUID = 1;

  BlastException(String sentence) {
    super(sentence);
  }

  BlastException(String sentence, Throwable cause) {
    super(sentence, cause);
  }
}
