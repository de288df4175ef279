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

/** What to tell people of an exception: the controller's answers, and with them their messages. */
public final class Sentences {
  private Sentences() {}

  /**
   * One sentence.
   *
   * @param error whatever a call of a client has thrown, or its future ended with
   * @return what is wrong, and what to do about it where there is something
   */
  public static String of(Throwable error) {
    if ((error instanceof ExecutionException || error instanceof CompletionException) && error.getCause() != null) {
      return of(error.getCause());
    }
    if (error instanceof Rejected rejected) {
      return rejected(rejected);
    }
    if (error instanceof TimedOut notYet) {
      return "not yet: " + notYet.message;
    }
    if (error instanceof Ended ended) {
      String reason = ended.reason == null || ended.reason.isEmpty() ? "no reason given" : ended.reason;
      return "the request has ended (" + String.valueOf(ended.state).toLowerCase(Locale.ROOT) + "): " + reason;
    }
    if (error instanceof UnknownRequest unknown) {
      return "the controller knows no request '" + unknown.key + "', or not any more: submit it anew";
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
      return "this controller is not the leader" + (other.address == null ? "" : ": ask " + other.address);
    }
    return error.getMessage() == null ? error.toString() : error.getMessage();
  }

  private static String rejected(Rejected answer) {
    boolean told = !answer.isSetMaxRacks() || answer.message.contains("" + answer.maxRacks);
    return told
        ? answer.message
        : answer.message.replaceFirst("\\.$", "") + " (at most " + answer.maxRacks + " racks)";
  }
}
