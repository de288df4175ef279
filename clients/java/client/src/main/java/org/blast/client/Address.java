package org.blast.client;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A host name or IP address and a TCP port, written HOST, HOST:PORT or [IPv6]:PORT. */
record Address(String host, int port) {
  static final int DEFAULT_PORT = 9090;
  private static final Pattern LOOPBACK =
      Pattern.compile("localhost|127(\\.\\d{1,3}){3}|(0{0,4}:){2,7}0{0,3}1", Pattern.CASE_INSENSITIVE);
  private static final Pattern FORM =
      Pattern.compile(
          "\\[(?<six>[^\\[\\]]+)](:(?<sixPort>[^:]*))?"
              + "|(?<host>[^:\\[\\]]+)(:(?<port>[^:]*))?"
              + "|(?<bare>[^\\[\\]]*:[^\\[\\]]*:[^\\[\\]]*)");

  /** Parses an address. Throws WrongArgument if the text is not one. */
  static Address parse(String text) {
    Matcher found = FORM.matcher(text == null ? "" : text.strip());
    if (!found.matches()) {
      throw wrong(text);
    }
    String host = first(found.group("six"), found.group("host"), found.group("bare"));
    String port = first(found.group("sixPort"), found.group("port"), String.valueOf(DEFAULT_PORT));
    if (!port.matches("[0-9]{1,5}") || Integer.parseInt(port) < 1 || Integer.parseInt(port) > 0xFFFF) {
      throw wrong(text);
    }
    return new Address(host, Integer.parseInt(port));
  }

  private static String first(String... candidates) {
    for (String candidate : candidates) {
      if (candidate != null) {
        return candidate;
      }
    }
    throw new AssertionError();
  }

  private static WrongArgument wrong(String text) {
    return new WrongArgument("'" + text + "' is not an address: write HOST:PORT, for example 127.0.0.1:9090");
  }

  /** Returns true if data sent there stays on this machine. Of names, only localhost: others may resolve elsewhere. */
  boolean isLoopback() {
    return LOOPBACK.matcher(host).matches();
  }

  @Override
  public String toString() {
    return host.contains(":") ? "[" + host + "]:" + port : host + ":" + port;
  }
}
