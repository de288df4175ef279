package org.blast.spark;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/** Sends files to agents. */
interface Sender {
  /** Where what is to be sent may lie; null where nothing can be sent (yet, or any more). */
  Path spool();

  /**
   * Send a file of the spool, which is removed then.
   *
   * @param to HOST=ADDRESS:PORT of each agent
   * @throws IOException where the sender has gone
   */
  void send(String send, Path file, String name, String folder, List<String> to) throws IOException;

  /** Give up what is being sent. */
  void stop(String send);
}
