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

/**
 * The child process {@code blast sender}, which submits requests, sends files, and withdraws its requests at its end.
 */
final class SenderProcess implements Sender, Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(SenderProcess.class);
  private static final Gson GSON = new Gson();
  private static final int EXIT_MILLIS = 5_000;
  private static final int KILL_MILLIS = 1_000;
  private static final int MAX_SHOWN = 200;

  /** A receiver of the events of the sender. */
  interface Listener {
    /** Handle progress: the median receiver has `bytes` bytes. */
    void progress(String send, long bytes);

    /** Handle the end of a transfer. */
    void ended(String send, End end);

    /** Handle the exit of the sender. */
    void senderExited(String reason);
  }

  /**
   * The result of a transfer.
   *
   * @param delivered hosts that have the verified file
   * @param failed hosts without it, with the reason
   * @param transports transports that were used
   * @param seconds duration, including the request to the controller
   * @param noOpticalPath why there was no grant; null if there was one
   */
  record End(
      List<String> delivered, Map<String, String> failed, List<String> transports, double seconds, String noOpticalPath) {}

  private record SenderEvent(
      String event, String spool, String send, long median, List<String> delivered, JsonElement failed,
      List<String> transports, double seconds, @SerializedName("no_optical_path") String noOpticalPath, String reason) {

    /** Return the result in an `end` event. Throws NullPointerException if a field is missing. */
    End end() {
      // In a `progress` event, `failed` is a number.
      Map<String, String> reasons = new TreeMap<>();
      failed.getAsJsonObject().entrySet().forEach(one -> reasons.put(one.getKey(), one.getValue().getAsString()));
      return new End(List.copyOf(delivered), reasons, List.copyOf(transports), seconds, noOpticalPath);
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
   * Start the process. {@link #spool} returns null until it is ready.
   *
   * @throws IOException if the command does not exist
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
      LOG.debug("the sender has exited", error);
    }
  }

  /** Close the process's input. It aborts its transfers and withdraws its requests; after a timeout, kill it. */
  @Override
  public void close() {
    ended = true;
    // In a thread: closing blocks while another thread writes to a process that does not read.
    Daemon.start("blast-sender-end", this::closeInput);
    try {
      if (!process.waitFor(EXIT_MILLIS, TimeUnit.MILLISECONDS)) {
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

  private void closeInput() {
    try {
      process.getOutputStream().close();
    } catch (IOException error) {
      LOG.debug("the sender has exited", error);
    }
  }

  private synchronized void write(Map<String, Object> line) throws IOException {
    if (ended) {
      throw new IOException("the sender has exited");
    }
    in.write(GSON.toJson(line));
    in.write('\n');
    in.flush();
  }

  private void read() {
    String reason = "its output has ended";
    try (BufferedReader lines = process.inputReader(StandardCharsets.UTF_8)) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        handle(line);
      }
    } catch (IOException error) {
      reason = error.toString();
    }
    Path oldSpool = spool;
    spool = null;
    ended = true;
    listener.senderExited(reason);
    // A process that still runs has no reader for its events.
    close();
    remove(oldSpool);
  }

  private void handle(String line) throws IOException {
    try {
      handle(GSON.fromJson(line, SenderEvent.class));
    } catch (RuntimeException error) {
      LOG.debug("invalid event", error);
      throw new IOException("invalid event: " + line.substring(0, Math.min(line.length(), MAX_SHOWN)), error);
    }
  }

  private void handle(SenderEvent event) {
    switch (event.event()) {
      case "ready" -> spool = Path.of(event.spool());
      case "progress" -> listener.progress(event.send(), event.median());
      case "end" -> listener.ended(event.send(), event.end());
      case "refused" -> {
        if (event.send() == null) {
          LOG.warn("blast sender refuses a command: {}", event.reason());
        } else {
          listener.ended(event.send(), event.refusal());
        }
      }
      default -> LOG.debug("ignoring the event {}", event);
    }
  }

  /** Remove the spool of a process that was killed, which occupies memory. */
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
      LOG.warn("cannot remove the spool {}: {}; remove it to free memory", spool, error.toString());
    }
  }
}
