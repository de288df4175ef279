package org.blast.spark;

import com.google.gson.Gson;
import java.io.IOException;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * A message between the driver's plugin and an executor's. Exactly one field is set.
 *
 * @param hello first message of an executor
 * @param coming announcement of a broadcast
 * @param over id of a broadcast that has ended: readers stop waiting, and executors remove its files
 * @param taken result of a broadcast at an executor
 * @param welcome the driver has announced all current broadcasts to a new executor
 */
record Message(Hello hello, Announcement coming, Long over, Taken taken, Boolean welcome) {
  private static final Gson GSON = new Gson();

  /** Throws IllegalArgumentException unless exactly one field is set. */
  Message {
    if (Stream.of(hello, coming, over, taken, welcome).filter(Objects::nonNull).count() != 1) {
      throw new IllegalArgumentException("exactly one field must be set");
    }
  }

  /**
   * The identity of an executor.
   *
   * @param executor Spark's executor id
   * @param host name of its host at the controller
   * @param agent HOST or HOST:PORT of that host's agent; null if the executor cannot use one
   */
  record Hello(String executor, String host, String agent) {
    private static final Pattern EXECUTOR = Pattern.compile("[!-~]{1,128}");
    private static final Pattern HOST = Pattern.compile("[A-Za-z0-9\\[][A-Za-z0-9._:\\]-]{0,254}");
    private static final Pattern AGENT = Pattern.compile(
        "[A-Za-z0-9][A-Za-z0-9._-]{0,254}|[A-Za-z0-9\\[][A-Za-z0-9._:%\\]-]{0,254}:(?<port>[0-9]{1,5})");
    private static final int PORTS = 1 << 16;

    /** Throws IllegalArgumentException for names with characters that are special to the sender or in the log. */
    Hello {
      match(EXECUTOR, executor, "name");
      match(HOST, host, "host");
      String port = agent == null ? null : match(AGENT, agent, "agent").group("port");
      if (port != null && (Integer.parseInt(port) < 1 || Integer.parseInt(port) >= PORTS)) {
        throw new IllegalArgumentException("invalid port of the agent " + agent);
      }
    }

    private static Matcher match(Pattern pattern, String text, String field) {
      Matcher found = pattern.matcher(text == null ? "" : text);
      if (!found.matches()) {
        throw new IllegalArgumentException("invalid " + field + " of an executor: " + text);
      }
      return found;
    }
  }

  /**
   * The result of a broadcast at an executor.
   *
   * @param broadcast Spark's broadcast id
   * @param pieces number of pieces that Blast delivered, to this host or to an executor that relayed them
   * @param late number of pieces that Spark fetches itself
   * @param bytes size of the pieces that Blast delivered
   * @param heldMillis time for which readers waited, in milliseconds
   * @param reason why the executor did not take it; empty if it did
   */
  record Taken(long broadcast, int pieces, int late, long bytes, long heldMillis, String reason) {
    private static final int MAX_REASON = 500;

    /** Truncates a long reason. Throws IllegalArgumentException for invalid values. */
    Taken {
      if (pieces < 0 || late < 0 || bytes < 0 || heldMillis < 0 || reason == null) {
        throw new IllegalArgumentException("invalid result of a broadcast");
      }
      reason = reason.substring(0, Math.min(reason.length(), MAX_REASON));
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
   * Parse a message.
   *
   * @throws IOException if the text is not a message
   */
  static Message read(String text) throws IOException {
    try {
      Message message = GSON.fromJson(text, Message.class);
      if (message != null) {
        return message;
      }
    } catch (RuntimeException error) {
      // Thrown by Gson, or by the constructor of a record.
      throw new IOException("invalid message: " + error.getMessage(), error);
    }
    throw new IOException("invalid message: empty");
  }
}
