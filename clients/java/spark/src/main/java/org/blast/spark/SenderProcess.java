package org.blast.spark;

import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonParseException;
import com.google.gson.annotations.SerializedName;
import java.io.BufferedReader;
import java.io.Closeable;
import java.io.IOException;
import java.io.Writer;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** {@code blast sender}: asks for light, sends, and gives the light back, however we end. */
final class SenderProcess implements Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(SenderProcess.class);
  private static final Gson GSON = new Gson();

  /** Hears how it goes. */
  interface Listener {
    /** So many bytes are at the median receiver. */
    void progress(String send, long bytes);

    /** It has ended. */
    void ended(String send, End end);

    /** There is no sender any more. */
    void gone(String reason);
  }

  /**
   * What became of a send.
   *
   * @param delivered hosts that have it, verified
   * @param failed hosts that have not, and why
   * @param carriers the ways that it went
   * @param seconds the whole round, the request for light included
   * @param noLight why there was none; null where there was
   */
  record End(List<String> delivered, Map<String, String> failed, List<String> carriers, double seconds, String noLight) {}

  private record Told(
      String event, String spool, String send, long median, List<String> delivered, JsonElement failed,
      List<String> carriers, double seconds, @SerializedName("no_light") String noLight, String reason) {}

  private final Process process;
  private final Writer in;
  private final Listener listener;
  private volatile Path spool;

  /**
   * Start it; it is ready a moment later.
   *
   * @throws IOException where there is no such command
   */
  SenderProcess(PluginSettings settings, Listener listener) throws IOException {
    this.listener = listener;
    List<String> command = new ArrayList<>(List.of(settings.command(), "sender"));
    command.addAll(settings.options());
    process = new ProcessBuilder(command).redirectError(Redirect.INHERIT).start();
    in = process.outputWriter(StandardCharsets.UTF_8);
    Thread reader = new Thread(this::read, "blast-sender");
    reader.setDaemon(true);
    reader.start();
  }

  /** Where what is to be sent may lie; null until it is ready. */
  Path spool() {
    return spool;
  }

  /**
   * Send a file of the spool, which is removed then.
   *
   * @param to HOST=ADDRESS:PORT of each agent
   * @throws IOException where the sender has gone
   */
  void send(String send, Path file, String name, String folder, List<String> to) throws IOException {
    write(Map.of("send", send, "file", file.toString(), "name", name, "folder", folder, "to", to));
  }

  /** Give up what is being sent. */
  void stop(String send) {
    try {
      write(Map.of("stop", send));
    } catch (IOException error) {
      LOG.debug("the sender has gone", error);
    }
  }

  @Override
  public void close() {
    try {
      in.close();
    } catch (IOException error) {
      LOG.debug("the sender has gone", error);
    }
  }

  private synchronized void write(Map<String, Object> line) throws IOException {
    in.write(GSON.toJson(line));
    in.write('\n');
    in.flush();
  }

  private void read() {
    String reason = "it has ended";
    try (BufferedReader lines = process.inputReader(StandardCharsets.UTF_8)) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        hear(GSON.fromJson(line, Told.class));
      }
    } catch (IOException | JsonParseException | IllegalStateException error) {
      reason = error.toString();
    }
    spool = null;
    listener.gone(reason);
  }

  /** In a line of progress it is a number. */
  private static Map<String, String> reasons(JsonElement failed) {
    Map<String, String> reasons = new TreeMap<>();
    failed.getAsJsonObject().entrySet().forEach(entry -> reasons.put(entry.getKey(), entry.getValue().getAsString()));
    return reasons;
  }

  private void hear(Told told) {
    switch (told.event()) {
      case "ready" -> spool = Path.of(told.spool());
      case "progress" -> listener.progress(told.send(), told.median());
      case "end" -> listener.ended(told.send(),
          new End(told.delivered(), reasons(told.failed()), told.carriers(), told.seconds(), told.noLight()));
      case "refused" -> listener.ended(told.send(), new End(List.of(), Map.of("", told.reason()), List.of(), 0, null));
      default -> LOG.debug("the sender says {}", told);
    }
  }
}
