package org.blast.client;

import java.util.Locale;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.blast.Denied;
import org.blast.Ended;
import org.blast.KeyReused;
import org.blast.NotLeader;
import org.blast.TimedOut;
import org.blast.Rejected;
import org.blast.UnknownRequest;
import org.blast.Unsupported;

/** Messages for users, from the exceptions of the interface and of the client. */
public final class ErrorMessages {
  private ErrorMessages() {}

  /**
   * Returns the message of an exception.
   *
   * @param error an exception that a call has thrown, or with which its future has completed
   * @return one sentence with the failure and, where there is one, the remedy
   */
  public static String of(Throwable error) {
    if ((error instanceof ExecutionException || error instanceof CompletionException) && error.getCause() != null) {
      return of(error.getCause());
    }
    if (error instanceof Rejected rejected) {
      return rejected(rejected);
    }
    if (error instanceof TimedOut timedOut) {
      return "not yet: " + timedOut.message;
    }
    if (error instanceof Ended ended) {
      String reason = ended.reason == null || ended.reason.isEmpty() ? "no reason given" : ended.reason;
      return "the request has ended (" + String.valueOf(ended.state).toLowerCase(Locale.ROOT) + "): " + reason;
    }
    if (error instanceof UnknownRequest unknown) {
      return "the controller does not know request '" + unknown.key + "', or has forgotten it: submit it again";
    }
    if (error instanceof KeyReused reused) {
      return "the key '" + reused.key + "' is in use by a request with other content: choose another key";
    }
    if (error instanceof Denied denied) {
      return "denied: " + denied.message;
    }
    if (error instanceof Unsupported unsupported) {
      return "this controller does not serve " + unsupported.feature + ": " + unsupported.message;
    }
    if (error instanceof NotLeader other) {
      return "this controller is not the leader" + (other.address == null ? "" : ": connect to " + other.address);
    }
    return error.getMessage() == null ? error.toString() : error.getMessage();
  }

  private static String rejected(Rejected answer) {
    boolean complete = !answer.isSetMaxRacks() || answer.message.contains("" + answer.maxRacks);
    return complete
        ? answer.message
        : answer.message.replaceFirst("\\.$", "") + " (at most " + answer.maxRacks + " racks)";
  }
}
