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

/** Where executors connect to the driver's half. Each has two threads here: one hears it, one tells it. */
final class Door implements Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(Door.class);
  private static final int MAX_EXECUTORS = 4096;
  static final int MAX_STRANGERS = 64;
  private static final int MAX_IN_THE_QUEUE = 1024;
  private static final int PAUSE_MILLIS = 1_000;
  static final int STRANGER_MILLIS = 5_000;
  private static final int MAX_UNTOLD = 1024;

  /** Hears what executors say. */
  interface Listener {
    /** An executor is there. */
    void joined(Guest guest);

    /** It has taken a broadcast, or waits for it no longer. */
    void taken(Guest guest, Message.Taken taken);

    /** It is gone. */
    void left(Guest guest);
  }

  /** An executor that is there. */
  static final class Guest {
    final Message.Hello hello;
    private final Socket socket;
    final BlockingQueue<Message> untold = new ArrayBlockingQueue<>(MAX_UNTOLD);

    Guest(Message.Hello hello, Socket socket) {
      this.hello = hello;
      this.socket = socket;
    }

    /** Tell it something, soon. One that hears nothing for long is shown out. */
    void tell(Message message) {
      if (!untold.offer(message)) {
        LOG.warn("executor {} hears nothing any more: it gets no broadcasts by Blast", hello.executor());
        close(socket);
      }
    }

    private void write(Sealed lines) {
      try {
        while (!socket.isClosed()) {
          lines.write(untold.take().text());
        }
      } catch (IOException error) {
        close(socket);
      } catch (InterruptedException error) {
        // It has left.
        Thread.currentThread().interrupt();
      }
    }
  }

  private final byte[] key;
  private final Listener listener;
  private final ServerSocket server = new ServerSocket();
  private final Semaphore strangers = new Semaphore(MAX_STRANGERS);
  private final ScheduledThreadPoolExecutor clock =
      new ScheduledThreadPoolExecutor(
          1, work -> Daemon.of("blast-door-clock", work), new ThreadPoolExecutor.DiscardPolicy());
  private final Map<Guest, Boolean> guests = new ConcurrentHashMap<>();
  private final Map<Socket, Boolean> sockets = new ConcurrentHashMap<>();

  /**
   * Open it.
   *
   * @throws IOException where the address is not ours
   */
  Door(InetAddress address, byte[] key, Listener listener) throws IOException {
    this.key = key.clone();
    this.listener = listener;
    clock.setRemoveOnCancelPolicy(true);
    server.bind(new InetSocketAddress(address, 0), MAX_IN_THE_QUEUE);
    Daemon.start("blast-door", this::accept);
  }

  int port() {
    return server.getLocalPort();
  }

  Collection<Guest> guests() {
    return guests.keySet();
  }

  @Override
  public void close() throws IOException {
    server.close();
    clock.shutdownNow();
    sockets.keySet().forEach(Door::close);
  }

  private void accept() {
    try {
      while (!server.isClosed()) {
        // Of many executors that begin together some wait for a place, in the system's queue.
        strangers.acquire();
        Socket socket = accepted();
        if (socket == null) {
          strangers.release();
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
      if (server.isClosed() || sockets.size() > MAX_EXECUTORS + MAX_STRANGERS) {
        sockets.remove(socket);
        close(socket);
        return null;
      }
      return socket;
    } catch (IOException error) {
      if (!server.isClosed()) {
        LOG.warn("no executor can connect: {}", error.toString());
        Thread.sleep(PAUSE_MILLIS);
      }
      return null;
    }
  }

  private void serve(Socket socket) {
    try (socket) {
      Sealed lines;
      Message first;
      // Altogether, and not for each byte: a stranger could say one now and then.
      ScheduledFuture<?> patience =
          clock.schedule(() -> close(socket), STRANGER_MILLIS, TimeUnit.MILLISECONDS);
      try {
        socket.setTcpNoDelay(true);
        socket.setKeepAlive(true);
        lines = new Sealed(
            key,
            new BufferedInputStream(socket.getInputStream()),
            new BufferedOutputStream(socket.getOutputStream()),
            nonce(),
            true);
        String text = lines.read();
        first = text == null ? null : Message.read(text);
      } finally {
        patience.cancel(false);
        strangers.release();
      }
      if (first != null && first.hello() != null) {
        attend(new Guest(first.hello(), socket), lines);
      }
    } catch (IOException error) {
      LOG.debug("a connection has ended", error);
    } finally {
      sockets.remove(socket);
    }
  }

  private void attend(Guest guest, Sealed lines) throws IOException {
    Thread writer = Daemon.start("blast-executor-" + guest.hello.executor(), () -> guest.write(lines));
    guests.put(guest, true);
    try {
      listener.joined(guest);
      for (String text = lines.read(); text != null; text = lines.read()) {
        Message message = Message.read(text);
        if (message.taken() != null) {
          listener.taken(guest, message.taken());
        }
      }
    } finally {
      writer.interrupt();
      guests.remove(guest);
      listener.left(guest);
    }
  }

  private static byte[] nonce() {
    byte[] nonce = new byte[Sealed.NONCE_BYTES];
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
