package org.blast.spark;

/** Why a half of the plugin does nothing: one sentence for the log. */
final class SwitchedOff extends Exception {
  private static final long serialVersionUID = 1;

  SwitchedOff(String reason) {
    super(reason);
  }

  SwitchedOff(String reason, Throwable cause) {
    super(reason, cause);
  }
}
