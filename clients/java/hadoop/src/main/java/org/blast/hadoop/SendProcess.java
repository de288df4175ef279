package org.blast.hadoop;

import java.io.BufferedReader;
import java.io.Closeable;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** The child process {@code blast send} with a stream. Agents name the file only after the stream has ended. */
final class SendProcess implements Closeable {
  private static final int USAGE_ERROR = 2;

  private final List<String> to;
  private final Process process;
  private final Thread reader;
  private volatile Delivery result;

  /**
   * Start the process.
   *
   * @param to agents in the format of {@code blast send --to}
   * @param name name of the file in their folder
   * @param bytes size of the stream
   * @throws Refused if the configuration is wrong
   * @throws IOException if the command does not exist
   */
  SendProcess(Settings settings, List<String> to, String name, long bytes) throws IOException {
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

  /** Write the next bytes. Return false if the process has ended; {@link #end} returns the reason. */
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
   * Close the stream and wait for the result.
   *
   * @throws Refused for wrong usage, which the process explains on standard error
   */
  Delivery end() throws IOException {
    try {
      process.getOutputStream().close();
    } catch (IOException error) {
      // The process has ended; its exit status gives the reason.
    }
    try {
      int status = process.waitFor();
      reader.join();
      if (status == USAGE_ERROR) {
        throw new Refused("blast send refuses its options: see its message above, and check the settings blast.send.…");
      }
      return result == null ? Delivery.none(to, "blast send failed with status " + status
          + "; see its messages above") : result;
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted during the transfer", error);
    }
  }

  /** Kill the process if it still runs. */
  @Override
  public void close() {
    process.destroy();
  }

  private void read() {
    try (BufferedReader lines =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        Delivery delivery = Delivery.read(line);
        result = delivery == null ? result : delivery;
      }
    } catch (IOException error) {
      process.destroy();
    }
  }
}
