package org.blast.client;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.ProtocolException;

/** Frames: the length of a message in four bytes, then the message. */
final class Frames {
  /** Maximum length of a message, from the interface. */
  static final int MAX_BYTES = 1 << 20;

  static final int LENGTH_BYTES = 4;

  private Frames() {}

  /** Reads the next message. Throws EOFException at the end and ProtocolException for an invalid length. */
  static byte[] read(DataInputStream in) throws IOException {
    int length = in.readInt();
    if (length <= 0 || length > MAX_BYTES) {
      throw new ProtocolException("a frame of " + length + " bytes");
    }
    byte[] message = new byte[length];
    in.readFully(message);
    return message;
  }
}
