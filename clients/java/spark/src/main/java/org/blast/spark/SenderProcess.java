package org.blast.spark;

import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.annotations.SerializedName;
import java.io.BufferedReader;
import java.io.Closeable;
import java.io.IOException;
import java.io.Writer;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** {@code blast sender}: asks for light, sends, and gives the light back, however we end. */
final class SenderProcess implements Sender, Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(SenderProcess.class);
  private static final Gson GSON = new Gson();
  private static final int END_MILLIS = 5_000;
  private static final int KILL_MILLIS = 1_000;
  private static final int MAX_SHOWN = 200;

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
   * @param transports the ways that it went
   * @param seconds the whole round, the request for light included
   * @param noLight why there was none; null where there was
   */
  record End(
      List<String> delivered, Map<String, String> failed, List<String> transports, double seconds, String noLight) {}

  private record Told(
      String event, String spool, String send, long median, List<String> delivered, JsonElement failed,
      List<String> transports, double seconds, @SerializedName("no_light") String noLight, String reason) {

    /** What it says of an end; NullPointerException where it says less than it should. */
    End end() {
      // In a line of progress `failed` is a number.
      Map<String, String> reasons = new TreeMap<>();
      failed.getAsJsonObject().entrySet().forEach(one -> reasons.put(one.getKey(), one.getValue().getAsString()));
      return new End(List.copyOf(delivered), reasons, List.copyOf(transports), seconds, noLight);
    }

    End refusal() {
      return new End(List.of(), Map.of("", reason), List.of(), 0, null);
    }
  }

  private final Process process;
  private final Writer in;
  private final Listener listener;
  private volatile Path spool;
  private volatile boolean ended;

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
    Daemon.start("blast-sender", this::read);
  }

  @Override
  public Path spool() {
    return spool;
  }

  @Override
  public void send(String send, Path file, String name, String folder, List<String> to) throws IOException {
    write(Map.of("send", send, "file", file.toString(), "name", name, "folder", folder, "to", to));
  }

  @Override
  public void stop(String send) {
    try {
      write(Map.of("stop", send));
    } catch (IOException error) {
      LOG.debug("the sender has gone", error);
    }
  }

  /** It gives up what it sends and gives the light back, for which it has a moment. */
  @Override
  public void close() {
    ended = true;
    // By a thread of its own: whoever writes to one that does not read would keep us.
    Daemon.start("blast-sender-end", this::letGo);
    try {
      if (!process.waitFor(END_MILLIS, TimeUnit.MILLISECONDS)) {
        process.destroy();
        if (!process.waitFor(KILL_MILLIS, TimeUnit.MILLISECONDS)) {
          process.destroyForcibly();
        }
      }
    } catch (InterruptedException error) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }

  private void letGo() {
    try {
      process.getOutputStream().close();
    } catch (IOException error) {
      LOG.debug("the sender has gone", error);
    }
  }

  private synchronized void write(Map<String, Object> line) throws IOException {
    if (ended) {
      throw new IOException("the sender has gone");
    }
    in.write(GSON.toJson(line));
    in.write('\n');
    in.flush();
  }

  private void read() {
    String reason = "it has ended";
    try (BufferedReader lines = process.inputReader(StandardCharsets.UTF_8)) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        hear(line);
      }
    } catch (IOException error) {
      reason = error.toString();
    }
    Path left = spool;
    spool = null;
    ended = true;
    listener.gone(reason);
    // Also one that is there still: nobody hears it any more.
    close();
    remove(left);
  }

  private void hear(String line) throws IOException {
    try {
      hear(GSON.fromJson(line, Told.class));
    } catch (RuntimeException error) {
      LOG.debug("not understood", error);
      throw new IOException("it says " + line.substring(0, Math.min(line.length(), MAX_SHOWN)), error);
    }
  }

  private void hear(Told told) {
    switch (told.event()) {
      case "ready" -> spool = Path.of(told.spool());
      case "progress" -> listener.progress(told.send(), told.median());
      case "end" -> listener.ended(told.send(), told.end());
      case "refused" -> {
        if (told.send() == null) {
          LOG.warn("blast sender refuses what we ask: {}", told.reason());
        } else {
          listener.ended(told.send(), told.refusal());
        }
      }
      default -> LOG.debug("the sender says {}", told);
    }
  }

  /** One that was killed has left its spool behind, in memory. */
  private static void remove(Path spool) {
    if (spool == null || !Files.isDirectory(spool, LinkOption.NOFOLLOW_LINKS)) {
      return;
    }
    try (DirectoryStream<Path> files = Files.newDirectoryStream(spool)) {
      for (Path file : files) {
        Files.deleteIfExists(file);
      }
      Files.deleteIfExists(spool);
    } catch (IOException | DirectoryIteratorException error) {
      LOG.warn("{} stays behind: {}", spool, error.toString());
    }
  }
}
