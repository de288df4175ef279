package org.blast.hadoop;

import java.io.IOException;

/** This host has no copy that may be taken; the message says why. */
final class NoCopy extends IOException {
  private static final long serialVersionUID = 1;

  NoCopy(String message) {
    super(message);
  }
}
