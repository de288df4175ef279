package org.blast.hadoop;

import java.io.IOException;

/** The lack of a usable copy on this host, with the reason as its message. */
final class CopyUnavailable extends IOException {
  private static final long serialVersionUID = 1;

  CopyUnavailable(String message) {
    super(message);
  }
}
