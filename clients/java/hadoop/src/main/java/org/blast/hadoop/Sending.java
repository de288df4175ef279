package org.blast.hadoop;

import java.io.BufferedReader;
import java.io.Closeable;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** {@code blast send} of a stream: a file has its name at the agents only after that has ended. */
final class Sending implements Closeable {
  private static final int WRONG_USE = 2;

  private final List<String> to;
  private final Process process;
  private final Thread reader;
  private volatile Delivery told;

  /**
   * Start it.
   *
   * @param to the agents, each as {@code blast send --to} takes it
   * @param name what it is called in their folder
   * @param bytes how many will come
   * @throws Refused where the configuration is wrong
   * @throws IOException where there is no such command
   */
  Sending(Settings settings, List<String> to, String name, long bytes) throws IOException {
    this.to = to;
    List<String> command = new ArrayList<>(List.of(settings.command(), "send"));
    command.addAll(settings.options());
    command.addAll(List.of("--json", "--as", name, "--folder", settings.folderName()));
    command.addAll(List.of("--to", String.join(",", to)));
    if (bytes > 0) {
      command.addAll(List.of("--bytes", String.valueOf(bytes)));
    }
    command.add("-");
    process = new ProcessBuilder(command).redirectError(Redirect.INHERIT).start();
    reader = new Thread(this::read, "blast-send");
    reader.setDaemon(true);
    reader.start();
  }

  /** The next bytes; false where nobody wants them any more, and {@link #end} knows why. */
  boolean write(byte[] bytes, int length) {
    try {
      process.getOutputStream().write(bytes, 0, length);
      process.getOutputStream().flush();
      return true;
    } catch (IOException error) {
      return false;
    }
  }

  /**
   * All bytes are written: wait for what becomes of them.
   *
   * @throws Refused where it was used wrongly, about which it has said more on standard error
   */
  Delivery end() throws IOException {
    try {
      process.getOutputStream().close();
    } catch (IOException error) {
      // It has ended already, and its status says why.
    }
    try {
      int status = process.waitFor();
      reader.join();
      if (status == WRONG_USE) {
        throw new Refused("blast send refuses what it was asked for: see above, and the settings blast.send.…");
      }
      return told == null ? Delivery.none(to, "blast send has ended with status " + status) : told;
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while it was sent", error);
    }
  }

  /** Give up what has not ended. */
  @Override
  public void close() {
    process.destroy();
  }

  private void read() {
    try (BufferedReader lines =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        Delivery delivery = Delivery.read(line);
        told = delivery == null ? told : delivery;
      }
    } catch (IOException error) {
      process.destroy();
    }
  }
}
