package org.blast.hadoop;

import java.io.IOException;

/** What was asked for cannot be done, and would not be at another time either; the message says what to do instead. */
public final class Refused extends IOException {
  private static final long serialVersionUID = 1;

  Refused(String message) {
    super(message);
  }
}
