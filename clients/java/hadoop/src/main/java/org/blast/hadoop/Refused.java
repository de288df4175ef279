package org.blast.hadoop;

import java.io.IOException;

/** A request that can never succeed. The message states what to do instead. */
public final class Refused extends IOException {
  private static final long serialVersionUID = 1;

  Refused(String message) {
    super(message);
  }
}
