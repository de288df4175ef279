package org.blast.spark;

import com.google.gson.Gson;
import com.google.gson.JsonParseException;
import java.io.IOException;

/**
 * What driver and executors tell each other. One of the fields is set.
 *
 * @param hello an executor is there
 * @param coming a broadcast is on its way
 * @param over readers of this broadcast wait no longer, and nothing is kept of it
 * @param taken an executor has the pieces of a broadcast, or has them no more to wait for
 */
record Message(Hello hello, Announcement coming, Long over, Taken taken) {
  private static final Gson GSON = new Gson();

  /**
   * An executor.
   *
   * @param executor Spark's name of it
   * @param host its host as the controller knows it
   * @param agent HOST:PORT of that host's agent
   */
  record Hello(String executor, String host, String agent) {}

  /**
   * What became of a broadcast in an executor.
   *
   * @param broadcast Spark's number of it
   * @param pieces those that came by Blast
   * @param late those that Spark had fetched before
   * @param bytes of the pieces that came by Blast
   * @param heldMillis how long readers were held back
   * @param reason why it was not taken; empty where it was
   */
  record Taken(long broadcast, int pieces, int late, long bytes, long heldMillis, String reason) {}

  static Message of(Hello hello) {
    return new Message(hello, null, null, null);
  }

  static Message of(Announcement coming) {
    return new Message(null, coming, null, null);
  }

  static Message over(long broadcast) {
    return new Message(null, null, broadcast, null);
  }

  static Message of(Taken taken) {
    return new Message(null, null, null, taken);
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
    } catch (JsonParseException error) {
      throw new IOException("what came is no message: " + error.getMessage(), error);
    }
    throw new IOException("what came is no message");
  }
}
