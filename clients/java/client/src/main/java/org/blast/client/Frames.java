package org.blast.client;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.ProtocolException;

/** A frame is its length, as four bytes, and a message of so many bytes. */
final class Frames {
  /** Of a message; the interface sets it. */
  static final int MAX_BYTES = 1 << 20;

  static final int LENGTH_BYTES = 4;

  private Frames() {}

  /** The next message. Throws EOFException at the end, ProtocolException where no message of ours can follow. */
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
