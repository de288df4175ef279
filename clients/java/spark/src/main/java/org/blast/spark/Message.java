package org.blast.spark;

import com.google.gson.Gson;
import java.io.IOException;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * What driver and executors tell each other. One of the fields is set.
 *
 * @param hello an executor is there
 * @param coming a broadcast is on its way
 * @param over readers of this broadcast wait no longer, and nothing is kept of it
 * @param taken an executor has the pieces of a broadcast, or has them no more to wait for
 * @param welcome an executor that has just come has heard of all that is on its way
 */
record Message(Hello hello, Announcement coming, Long over, Taken taken, Boolean welcome) {
  private static final Gson GSON = new Gson();

  /** IllegalArgumentException where not one of them is set. */
  Message {
    if (Stream.of(hello, coming, over, taken, welcome).filter(Objects::nonNull).count() != 1) {
      throw new IllegalArgumentException("it says not one thing");
    }
  }

  /**
   * An executor.
   *
   * @param executor Spark's name of it
   * @param host its host as the controller knows it
   * @param agent HOST or HOST:PORT of that host's agent; null where the executor has no agent's folder
   */
  record Hello(String executor, String host, String agent) {
    private static final Pattern EXECUTOR = Pattern.compile("[!-~]{1,128}");
    private static final Pattern HOST = Pattern.compile("[A-Za-z0-9\\[][A-Za-z0-9._:\\]-]{0,254}");
    private static final Pattern AGENT = Pattern.compile(
        "[A-Za-z0-9][A-Za-z0-9._-]{0,254}|[A-Za-z0-9\\[][A-Za-z0-9._:%\\]-]{0,254}:(?<port>[0-9]{1,5})");
    private static final int PORTS = 1 << 16;

    /** IllegalArgumentException for names that would mean something else where the sender, or people, read them. */
    Hello {
      refuseUnless(EXECUTOR, executor, "name");
      refuseUnless(HOST, host, "host");
      String port = agent == null ? null : refuseUnless(AGENT, agent, "agent").group("port");
      if (port != null && (Integer.parseInt(port) < 1 || Integer.parseInt(port) >= PORTS)) {
        throw new IllegalArgumentException("the agent " + agent + " has no such port");
      }
    }

    private static Matcher refuseUnless(Pattern pattern, String text, String what) {
      Matcher found = pattern.matcher(text == null ? "" : text);
      if (!found.matches()) {
        throw new IllegalArgumentException("as " + what + " an executor cannot have " + text);
      }
      return found;
    }
  }

  /**
   * What became of a broadcast in an executor.
   *
   * @param broadcast Spark's number of it
   * @param pieces those that came by Blast, to this host or to an executor that handed them over
   * @param late those that Spark had fetched before, or will
   * @param bytes of the pieces that came by Blast
   * @param heldMillis how long readers were held back
   * @param reason why it was not taken; empty where it was
   */
  record Taken(long broadcast, int pieces, int late, long bytes, long heldMillis, String reason) {
    private static final int LONGEST_REASON = 500;

    /** IllegalArgumentException where that cannot be; a long reason is cut. */
    Taken {
      if (pieces < 0 || late < 0 || bytes < 0 || heldMillis < 0 || reason == null) {
        throw new IllegalArgumentException("no executor can have taken that");
      }
      reason = reason.substring(0, Math.min(reason.length(), LONGEST_REASON));
    }
  }

  static Message of(Hello hello) {
    return new Message(hello, null, null, null, null);
  }

  static Message of(Announcement coming) {
    return new Message(null, coming, null, null, null);
  }

  static Message over(long broadcast) {
    return new Message(null, null, broadcast, null, null);
  }

  static Message of(Taken taken) {
    return new Message(null, null, null, taken, null);
  }

  static Message ofWelcome() {
    return new Message(null, null, null, null, true);
  }

  String text() {
    return GSON.toJson(this);
  }

  /**
   * Read one.
   *
   * @throws IOException where it is none
   */
  static Message read(String text) throws IOException {
    try {
      Message message = GSON.fromJson(text, Message.class);
      if (message != null) {
        return message;
      }
    } catch (RuntimeException error) {
      // Gson's own, or that of a record that could not be like this.
      throw new IOException("what came is no message: " + error.getMessage(), error);
    }
    throw new IOException("what came is no message");
  }
}
