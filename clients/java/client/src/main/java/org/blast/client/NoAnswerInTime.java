package org.blast.client;

/** A call without an answer within its timeout. Whether the controller executes the call is unknown. */
public final class NoAnswerInTime extends ControllerUnreachable {
  private static final long serialVersionUID = 1;

  NoAnswerInTime(String where, double seconds) {
    super(
        String.format(
            java.util.Locale.ROOT,
            "no answer within %.3g s from the controller at %s; it may still execute the call: check with `blast"
                + " status`",
            seconds,
            where),
        null);
  }
}
