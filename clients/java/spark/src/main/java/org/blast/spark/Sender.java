package org.blast.spark;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/** A sender of files to agents. */
interface Sender {
  /** Return the directory for files to send; null if the sender is not ready or has exited. */
  Path spool();

  /**
   * Send a file of the spool directory. The sender removes the file afterwards.
   *
   * @param send name of the transfer
   * @param to HOST=ADDRESS:PORT of each agent
   * @throws IOException if the sender has exited
   */
  void send(String send, Path file, String name, String folder, List<String> to) throws IOException;

  /** Stop a transfer. */
  void stop(String send);
}
