package org.blast.client;

/**
 * A call without an answer from any controller. The message names every address and its failure.
 *
 * <p>For {@link ConnectionBroken}, {@link NoAnswerInTime} and {@link ClientClosed} it is unknown whether the call was
 * executed; otherwise it was not.
 */
public class ControllerUnreachable extends BlastException {
  private static final long serialVersionUID = 1;

  ControllerUnreachable(String sentence, Throwable cause) {
    super(sentence, cause);
  }
}
