package org.blast.client;

/**
 * No answer from any controller; the message names every address and what was wrong there.
 *
 * <p>Whether the call was carried out is unknown for {@link ConnectionBroken}, {@link NoAnswerInTime} and {@link
 * ClientClosed}; otherwise it was not.
 */
public class ControllerUnreachable extends BlastException {
  private static final long serialVersionUID = 1;

  ControllerUnreachable(String sentence, Throwable cause) {
    super(sentence, cause);
  }
}
