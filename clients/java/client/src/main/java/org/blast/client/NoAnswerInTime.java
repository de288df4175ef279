package org.blast.client;

/** Nothing came within the time that the client gives; whether the controller does what was asked is unknown. */
public final class NoAnswerInTime extends ControllerUnreachable {
  private static final long serialVersionUID = 1;

  NoAnswerInTime(String where, double seconds) {
    super(
        String.format(
            java.util.Locale.ROOT,
            "nothing came within %.3g s from the controller at %s: whether it does what was asked is unknown, `blast"
                + " status` tells",
            seconds,
            where),
        null);
  }
}
