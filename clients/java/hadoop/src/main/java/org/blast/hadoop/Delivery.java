package org.blast.hadoop;

import com.google.gson.Gson;
import com.google.gson.JsonParseException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The result of a push: the hosts that have a verified copy, and the hosts without one. */
public final class Delivery {
  private static final Gson GSON = new Gson();

  private final List<String> delivered;
  private final Map<String, String> failed;

  Delivery(List<String> delivered, Map<String, String> failed) {
    this.delivered = Collections.unmodifiableList(new ArrayList<>(delivered));
    this.failed = Collections.unmodifiableMap(new TreeMap<>(failed));
  }

  /**
   * Returns the hosts that have a copy.
   *
   * @return host names
   */
  public List<String> delivered() {
    return delivered;
  }

  /**
   * Returns the hosts without a copy, whose tasks read the original.
   *
   * @return the reason for each host
   */
  public Map<String, String> failed() {
    return failed;
  }

  /** Return a delivery that reached none of these hosts. */
  static Delivery none(List<String> hosts, String reason) {
    Map<String, String> failed = new TreeMap<>();
    hosts.forEach(host -> failed.put(host, reason));
    return new Delivery(List.of(), failed);
  }

  /** Parse the last line of {@code blast send --json}. Return null if the line is not a result. */
  static Delivery read(String line) {
    try {
      Result result = GSON.fromJson(line, Result.class);
      return result == null || !"result".equals(result.event) ? null : result.delivery();
    } catch (JsonParseException error) {
      return null;
    }
  }

  /** The fields of the result line. */
  private static final class Result {
    private String event;
    private List<Transfer> transfers;
    private Map<String, String> unreachable;

    Delivery delivery() {
      List<String> delivered = new ArrayList<>();
      Map<String, String> failed = new TreeMap<>(unreachable);
      for (Transfer transfer : transfers) {
        for (Receiver receiver : transfer.receivers) {
          if (receiver.complete) {
            delivered.add(receiver.name);
          } else {
            failed.put(receiver.name, receiver.reason);
          }
        }
      }
      failed.keySet().removeAll(delivered);
      return new Delivery(delivered, failed);
    }
  }

  private static final class Transfer {
    private List<Receiver> receivers;
  }

  private static final class Receiver {
    private String name;
    private boolean complete;
    private String reason;
  }
}
