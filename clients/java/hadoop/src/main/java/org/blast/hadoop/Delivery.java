package org.blast.hadoop;

import com.google.gson.Gson;
import com.google.gson.JsonParseException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Which hosts have a file now, verified, and which have not. */
public final class Delivery {
  private static final Gson GSON = new Gson();

  private final List<String> delivered;
  private final Map<String, String> failed;

  Delivery(List<String> delivered, Map<String, String> failed) {
    this.delivered = Collections.unmodifiableList(new ArrayList<>(delivered));
    this.failed = Collections.unmodifiableMap(new TreeMap<>(failed));
  }

  /**
   * Who has it.
   *
   * @return names of hosts
   */
  public List<String> delivered() {
    return delivered;
  }

  /**
   * Who has not; tasks there read the original.
   *
   * @return the reason for each host
   */
  public Map<String, String> failed() {
    return failed;
  }

  /** Nobody of these has it. */
  static Delivery none(List<String> hosts, String reason) {
    Map<String, String> failed = new TreeMap<>();
    hosts.forEach(host -> failed.put(host, reason));
    return new Delivery(List.of(), failed);
  }

  /** What the last line of {@code blast send --json} says; null where the line says something else. */
  static Delivery read(String line) {
    try {
      Told told = GSON.fromJson(line, Told.class);
      return told == null || !"result".equals(told.event) ? null : told.delivery();
    } catch (JsonParseException error) {
      return null;
    }
  }

  /** By the names that the line has. */
  private static final class Told {
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
