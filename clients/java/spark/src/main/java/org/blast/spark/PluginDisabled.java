package org.blast.spark;

/** A reason for which the plugin does nothing in this process. The message is one sentence for the log. */
final class PluginDisabled extends Exception {
  private static final long serialVersionUID = 1;

  PluginDisabled(String reason) {
    super(reason);
  }

  PluginDisabled(String reason, Throwable cause) {
    super(reason, cause);
  }
}
