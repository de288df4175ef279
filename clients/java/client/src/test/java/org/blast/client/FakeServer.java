package org.blast.client;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.thrift.TBase;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TMessage;
import org.apache.thrift.protocol.TMessageType;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.transport.TMemoryBuffer;
import org.apache.thrift.transport.TMemoryInputTransport;
import org.blast.Blast;

/** A server on the loopback interface that fails as a test requires. */
final class FakeServer implements AutoCloseable {
  /** Serves a connection, which is closed afterwards. */
  @FunctionalInterface
  interface Behavior {
    void serve(Peer peer) throws Exception;
  }

  final AtomicInteger connections = new AtomicInteger();
  private final ServerSocket listener;
  private final Behavior behavior;
  private final Set<Socket> open = ConcurrentHashMap.newKeySet();

  FakeServer(Behavior behavior) throws IOException {
    this.behavior = behavior;
    this.listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    daemon(this::accept);
  }

  /** Returns an address without a server. */
  static String unusedAddress() throws IOException {
    try (FakeServer closed = new FakeServer(peer -> {})) {
      return closed.address();
    }
  }

  String address() {
    return "127.0.0.1:" + listener.getLocalPort();
  }

  @Override
  public void close() throws IOException {
    listener.close();
    for (Socket socket : open) {
      socket.close();
    }
  }

  private void accept() {
    try {
      while (true) {
        Socket socket = listener.accept();
        connections.incrementAndGet();
        open.add(socket);
        daemon(() -> serve(socket));
      }
    } catch (IOException closed) {
      // The test has closed the server.
    }
  }

  private void serve(Socket socket) {
    try (socket) {
      behavior.serve(new Peer(socket));
    } catch (Exception ended) {
      // The client or the test has closed the connection.
    }
  }

  private static void daemon(Runnable work) {
    Thread thread = new Thread(work, "fake server");
    thread.setDaemon(true);
    thread.start();
  }

  /** A client, seen from the server. */
  static final class Peer {
    final DataInputStream in;
    final OutputStream out;

    Peer(Socket socket) throws IOException {
      in = new DataInputStream(socket.getInputStream());
      out = socket.getOutputStream();
    }

    /** Read the next call: its name and number. */
    TMessage next() throws IOException, TException {
      byte[] body = new byte[in.readInt()];
      in.readFully(body);
      return new TBinaryProtocol(new TMemoryInputTransport(body)).readMessageBegin();
    }

    /** Answer pings until the client disconnects. */
    void answerPings() throws IOException, TException {
      while (true) {
        ping(next());
      }
    }

    void ping(TMessage call) throws IOException, TException {
      answer(call, new Blast.ping_result());
    }

    void answer(TMessage call, TBase<?, ?> result) throws IOException, TException {
      answer(call, call.seqid, result);
    }

    void answer(TMessage call, int sequence, TBase<?, ?> result) throws IOException, TException {
      frame(message(new TMessage(call.name, TMessageType.REPLY, sequence), result));
    }

    void frame(byte[] body) throws IOException {
      out.write(ByteBuffer.allocate(4 + body.length).putInt(body.length).put(body).array());
    }

    /** Read and ignore data until the client disconnects. */
    void listen() throws IOException {
      in.transferTo(OutputStream.nullOutputStream());
    }
  }

  /** The content of a message: a result, or a Thrift application exception, which is not a struct. */
  @FunctionalInterface
  interface Content {
    void write(TProtocol protocol) throws TException;
  }

  static byte[] message(TMessage header, TBase<?, ?> result) throws TException {
    return message(header, result::write);
  }

  static byte[] message(TMessage header, Content result) throws TException {
    TMemoryBuffer buffer = new TMemoryBuffer(256);
    TBinaryProtocol protocol = new TBinaryProtocol(buffer);
    protocol.writeMessageBegin(header);
    result.write(protocol);
    protocol.writeMessageEnd();
    return Arrays.copyOf(buffer.getArray(), buffer.length());
  }
}
