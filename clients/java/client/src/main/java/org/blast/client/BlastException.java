package org.blast.client;

/**
 * Whatever goes wrong with a call, apart from the controller's answers; its message is a sentence that says what is
 * wrong and what to do about it.
 *
 * <p>It is unchecked, for a caller can seldom do more than give up. The controller's own answers, {@link
 * org.blast.Rejected}, {@link org.blast.TimedOut} and the others of the interface, are checked exceptions: they belong to
 * an ordinary day, and whoever asks for light must have something to do without it.
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
