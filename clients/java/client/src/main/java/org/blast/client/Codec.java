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

/** Thrift's generated client for one message: `send_` methods encode a call, `recv_` methods decode the answer. */
final class Codec extends BlastOperator.Client {
  private static final int INITIAL_BUFFER_BYTES = 512;
  private static final int MAX_NESTING = 64;

  static {
    // Thrift skips unknown fields recursively: without a limit, nested structs overflow the stack.
    TProtocolUtil.setMaxSkipDepth(MAX_NESTING);
  }

  /** Encodes a call. */
  @FunctionalInterface
  interface Encoder {
    void encode(Codec codec) throws TException;
  }

  /** Decodes an answer. */
  @FunctionalInterface
  interface Decoder<A> {
    A decode(Codec codec) throws TException;
  }

  private Codec(TTransport transport, int sequence, long maxLength) {
    // Every element of a container takes a byte or more, so that the length bounds containers as well as strings.
    super(new TBinaryProtocol(transport, maxLength, maxLength));
    // Thrift increments seqid_ before it writes, and compares with it when it reads.
    seqid_ = sequence;
  }

  /** Returns a frame with a call. Throws WrongArgument if the call cannot be encoded or is too large. */
  static byte[] frame(int sequence, Encoder encoder) {
    try {
      TMemoryBuffer buffer = new TMemoryBuffer(INITIAL_BUFFER_BYTES);
      buffer.write(new byte[Frames.LENGTH_BYTES]);
      encoder.encode(new Codec(buffer, sequence - 1, Frames.MAX_BYTES));
      int length = buffer.length() - Frames.LENGTH_BYTES;
      if (length > Frames.MAX_BYTES) {
        throw new WrongArgument(
            length + " bytes do not fit into one call (limit " + Frames.MAX_BYTES + "): pass smaller arguments");
      }
      byte[] frame = Arrays.copyOf(buffer.getArray(), buffer.length());
      ByteBuffer.wrap(frame).putInt(length);
      return frame;
    } catch (TException | NullPointerException error) {
      throw new WrongArgument("the call cannot be encoded: " + error.getMessage());
    }
  }

  /** Returns the header of a message. Throws TException if there is none. */
  static TMessage header(byte[] message) throws TException {
    return reading(message, 0).getInputProtocol().readMessageBegin();
  }

  /** Returns the answer in a message, or throws the exception in it. */
  static <A> A answer(byte[] message, int sequence, Decoder<A> decoder) throws TException {
    return decoder.decode(reading(message, sequence));
  }

  private static Codec reading(byte[] message, int sequence) throws TTransportException {
    TConfiguration limits = new TConfiguration(Frames.MAX_BYTES, Frames.MAX_BYTES, MAX_NESTING);
    return new Codec(new TMemoryInputTransport(limits, message), sequence, message.length);
  }

  /** Encodes `drain` without its argument, which queries the state; the generated method always sends the argument. */
  void sendDrainQuery() throws TException {
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
