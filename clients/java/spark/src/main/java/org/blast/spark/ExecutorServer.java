package org.blast.spark;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.Closeable;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.security.SecureRandom;
import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The server to which executors connect, in the driver. Two threads serve each executor, a reader and a writer. */
final class ExecutorServer implements Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(ExecutorServer.class);
  private static final int MAX_EXECUTORS = 4096;
  static final int MAX_UNAUTHENTICATED = 64;
  private static final int BACKLOG = 1024;
  private static final int PAUSE_MILLIS = 1_000;
  static final int AUTHENTICATION_MILLIS = 5_000;
  private static final int MAX_OUTBOX = 1024;

  /** A receiver of the events of executors. */
  interface Listener {
    /** Handle a new executor. */
    void joined(Peer peer);

    /** Handle the result of a broadcast at an executor, which waits no longer. */
    void taken(Peer peer, Message.Taken taken);

    /** Handle the end of a connection. */
    void left(Peer peer);
  }

  /** A connected executor. */
  static final class Peer {
    final Message.Hello hello;
    private final Socket socket;
    final BlockingQueue<Message> outbox = new ArrayBlockingQueue<>(MAX_OUTBOX);

    Peer(Message.Hello hello, Socket socket) {
      this.hello = hello;
      this.socket = socket;
    }

    /** Queue a message. Disconnects an executor whose queue is full. */
    void send(Message message) {
      if (!outbox.offer(message)) {
        LOG.warn("executor {} does not read messages and was disconnected: it fetches broadcasts without Blast",
            hello.executor());
        close(socket);
      }
    }

    private void write(AuthenticatedLines lines) {
      try {
        while (!socket.isClosed()) {
          lines.write(outbox.take().text());
        }
      } catch (IOException error) {
        close(socket);
      } catch (InterruptedException error) {
        // The executor has disconnected.
        Thread.currentThread().interrupt();
      }
    }
  }

  private final byte[] key;
  private final Listener listener;
  private final ServerSocket server = new ServerSocket();
  private final Semaphore unauthenticated = new Semaphore(MAX_UNAUTHENTICATED);
  private final ScheduledThreadPoolExecutor timer =
      new ScheduledThreadPoolExecutor(
          1, work -> Daemon.of("blast-executors-timer", work), new ThreadPoolExecutor.DiscardPolicy());
  private final Map<Peer, Boolean> peers = new ConcurrentHashMap<>();
  private final Map<Socket, Boolean> sockets = new ConcurrentHashMap<>();

  /**
   * Listen on any port of an address.
   *
   * @throws IOException if the address does not belong to this host
   */
  ExecutorServer(InetAddress address, byte[] key, Listener listener) throws IOException {
    this.key = key.clone();
    this.listener = listener;
    timer.setRemoveOnCancelPolicy(true);
    server.bind(new InetSocketAddress(address, 0), BACKLOG);
    Daemon.start("blast-executors", this::accept);
  }

  int port() {
    return server.getLocalPort();
  }

  Collection<Peer> peers() {
    return peers.keySet();
  }

  @Override
  public void close() throws IOException {
    server.close();
    timer.shutdownNow();
    sockets.keySet().forEach(ExecutorServer::close);
  }

  private void accept() {
    try {
      while (!server.isClosed()) {
        // If many executors connect at once, some wait in the backlog of the socket.
        unauthenticated.acquire();
        Socket socket = accepted();
        if (socket == null) {
          unauthenticated.release();
        } else {
          Daemon.start("blast-executor", () -> serve(socket));
        }
      }
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  private Socket accepted() throws InterruptedException {
    try {
      Socket socket = server.accept();
      sockets.put(socket, true);
      if (server.isClosed() || sockets.size() > MAX_EXECUTORS + MAX_UNAUTHENTICATED) {
        sockets.remove(socket);
        close(socket);
        return null;
      }
      return socket;
    } catch (IOException error) {
      if (!server.isClosed()) {
        LOG.warn("cannot accept connections of executors, trying again: {}", error.toString());
        Thread.sleep(PAUSE_MILLIS);
      }
      return null;
    }
  }

  private void serve(Socket socket) {
    try (socket) {
      AuthenticatedLines lines;
      Message first;
      // One deadline for the whole handshake: a read timeout would restart with each byte of a slow client.
      ScheduledFuture<?> deadline =
          timer.schedule(() -> close(socket), AUTHENTICATION_MILLIS, TimeUnit.MILLISECONDS);
      try {
        socket.setTcpNoDelay(true);
        socket.setKeepAlive(true);
        lines = new AuthenticatedLines(
            key,
            new BufferedInputStream(socket.getInputStream()),
            new BufferedOutputStream(socket.getOutputStream()),
            nonce(),
            true);
        String text = lines.read();
        first = text == null ? null : Message.read(text);
      } finally {
        deadline.cancel(false);
        unauthenticated.release();
      }
      if (first != null && first.hello() != null) {
        attend(new Peer(first.hello(), socket), lines);
      }
    } catch (IOException error) {
      LOG.debug("a connection has ended", error);
    } finally {
      sockets.remove(socket);
    }
  }

  private void attend(Peer peer, AuthenticatedLines lines) throws IOException {
    Thread writer = Daemon.start("blast-executor-" + peer.hello.executor(), () -> peer.write(lines));
    peers.put(peer, true);
    try {
      listener.joined(peer);
      for (String text = lines.read(); text != null; text = lines.read()) {
        Message message = Message.read(text);
        if (message.taken() != null) {
          listener.taken(peer, message.taken());
        }
      }
    } finally {
      writer.interrupt();
      peers.remove(peer);
      listener.left(peer);
    }
  }

  private static byte[] nonce() {
    byte[] nonce = new byte[AuthenticatedLines.NONCE_BYTES];
    new SecureRandom().nextBytes(nonce);
    return nonce;
  }

  private static void close(Socket socket) {
    try {
      socket.close();
    } catch (IOException error) {
      LOG.debug("closing", error);
    }
  }
}
