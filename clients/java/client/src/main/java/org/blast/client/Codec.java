package org.blast.client;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.thrift.TConfiguration;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TMessage;
import org.apache.thrift.protocol.TProtocolUtil;
import org.apache.thrift.transport.TMemoryBuffer;
import org.apache.thrift.transport.TMemoryInputTransport;
import org.apache.thrift.transport.TTransport;
import org.apache.thrift.transport.TTransportException;
import org.blast.Blast;
import org.blast.BlastOperator;

/** Thrift's generated client for one message: its `send_` methods encode a call, its `recv_` ones decode the answer. */
final class Codec extends BlastOperator.Client {
  private static final int FIRST_BUFFER_BYTES = 512;
  private static final int DEEPEST_NESTING = 64;

  static {
    // What this client does not know is skipped, and without a limit the stack is the limit.
    TProtocolUtil.setMaxSkipDepth(DEEPEST_NESTING);
  }

  /** Writes a call. */
  @FunctionalInterface
  interface Encoder {
    void encode(Codec codec) throws TException;
  }

  /** Reads an answer. */
  @FunctionalInterface
  interface Decoder<A> {
    A decode(Codec codec) throws TException;
  }

  private Codec(TTransport transport, int sequence, long most) {
    // Each of the things that a container says it has takes at least a byte.
    super(new TBinaryProtocol(transport, most, most));
    // Thrift counts before it writes, and compares when it reads.
    seqid_ = sequence;
  }

  /** A frame with a call. Throws WrongArgument where it cannot be encoded or is too large. */
  static byte[] frame(int sequence, Encoder encoder) {
    try {
      TMemoryBuffer buffer = new TMemoryBuffer(FIRST_BUFFER_BYTES);
      buffer.write(new byte[Frames.LENGTH_BYTES]);
      encoder.encode(new Codec(buffer, sequence - 1, Frames.MAX_BYTES));
      int length = buffer.length() - Frames.LENGTH_BYTES;
      if (length > Frames.MAX_BYTES) {
        throw new WrongArgument(
            length + " bytes do not fit into one call, which holds " + Frames.MAX_BYTES + ": give fewer");
      }
      byte[] frame = Arrays.copyOf(buffer.getArray(), buffer.length());
      ByteBuffer.wrap(frame).putInt(length);
      return frame;
    } catch (TException | NullPointerException error) {
      throw new WrongArgument("the call cannot be written: " + error.getMessage());
    }
  }

  /** What stands before the content of a message. Throws TException where it is none. */
  static TMessage header(byte[] message) throws TException {
    return reading(message, 0).getInputProtocol().readMessageBegin();
  }

  /** The answer in a message, or the exception that it is. */
  static <A> A answer(byte[] message, int sequence, Decoder<A> decoder) throws TException {
    return decoder.decode(reading(message, sequence));
  }

  private static Codec reading(byte[] message, int sequence) throws TTransportException {
    TConfiguration limits = new TConfiguration(Frames.MAX_BYTES, Frames.MAX_BYTES, DEEPEST_NESTING);
    return new Codec(new TMemoryInputTransport(limits, message), sequence, message.length);
  }

  /** `drain` without its argument, which the generated method would always send: it only asks. */
  void sendAskDrain() throws TException {
    sendBase("drain", new Blast.ping_args());
  }

  Void pinged() throws TException {
    recv_ping();
    return null;
  }

  Void loggedIn() throws TException {
    recv_login();
    return null;
  }

  Void quarantined() throws TException {
    recv_quarantine();
    return null;
  }

  Void released() throws TException {
    recv_releaseElement();
    return null;
  }

  Void resumed() throws TException {
    recv_resume();
    return null;
  }
}
