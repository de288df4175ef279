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
import java.util.concurrent.Semaphore;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Where executors connect to the driver's half. Each has two threads here: one hears it, one tells it. */
final class Door implements Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(Door.class);
  private static final int MOST_EXECUTORS = 4096;
  private static final int MOST_STRANGERS = 64;
  private static final int STRANGER_MILLIS = 5_000;
  private static final int MOST_UNTOLD = 1024;

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
    private final BlockingQueue<Message> untold = new ArrayBlockingQueue<>(MOST_UNTOLD);

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
  private final Semaphore strangers = new Semaphore(MOST_STRANGERS);
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
    server.bind(new InetSocketAddress(address, 0));
    start("blast-door", this::accept);
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
    sockets.keySet().forEach(Door::close);
  }

  private void accept() {
    while (!server.isClosed()) {
      try {
        Socket socket = server.accept();
        if (sockets.size() < MOST_EXECUTORS + MOST_STRANGERS && strangers.tryAcquire()) {
          sockets.put(socket, true);
          start("blast-executor", () -> serve(socket));
        } else {
          close(socket);
        }
      } catch (IOException error) {
        if (!server.isClosed()) {
          LOG.warn("no executor can connect: {}", error.toString());
        }
      }
    }
  }

  private void serve(Socket socket) {
    Guest guest = null;
    Thread writer = null;
    boolean strange = true;
    try (socket) {
      socket.setSoTimeout(STRANGER_MILLIS);
      socket.setTcpNoDelay(true);
      socket.setKeepAlive(true);
      Sealed lines = new Sealed(
          key,
          new BufferedInputStream(socket.getInputStream()),
          new BufferedOutputStream(socket.getOutputStream()),
          nonce(),
          true);
      String first = lines.read();
      strangers.release();
      strange = false;
      Message hello = first == null ? null : Message.read(first);
      if (hello == null || hello.hello() == null) {
        return;
      }
      socket.setSoTimeout(0);
      Guest joined = new Guest(hello.hello(), socket);
      guest = joined;
      writer = start("blast-executor-" + joined.hello.executor(), () -> joined.write(lines));
      guests.put(joined, true);
      listener.joined(joined);
      for (String text = lines.read(); text != null; text = lines.read()) {
        Message message = Message.read(text);
        if (message.taken() != null) {
          listener.taken(joined, message.taken());
        }
      }
    } catch (IOException error) {
      LOG.debug("a connection has ended", error);
    } finally {
      sockets.remove(socket);
      if (strange) {
        strangers.release();
      }
      if (writer != null) {
        writer.interrupt();
      }
      if (guest != null) {
        guests.remove(guest);
        listener.left(guest);
      }
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

  private static Thread start(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.start();
    return thread;
  }
}
