package org.blast.client;

import java.io.Closeable;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;

/** Opens connections, with TLS if it has a context. For one thread; any thread may stop it. */
final class Dialer {
  private final SSLContext tls;
  private final String serverName;
  private Socket connecting;
  private boolean stopped;

  /** The controller's certificate must be for `serverName`; null for the host of the address. */
  Dialer(SSLContext tls, String serverName) {
    this.tls = tls;
    this.serverName = serverName;
  }

  /** Opens a connection that is ready for calls. */
  Connection dial(Address address, Duration timeout, Connection.Owner owner) throws IOException {
    long end = System.nanoTime() + timeout.toNanos();
    IOException failure = null;
    for (InetAddress host : InetAddress.getAllByName(address.host())) {
      Socket wire = new Socket();
      try {
        begin(wire);
        wire.connect(new InetSocketAddress(host, address.port()), left(end));
        wire.setTcpNoDelay(true);
        wire.setKeepAlive(true);
        return new Connection(address, secured(wire, address, end), wire, owner);
      } catch (IOException error) {
        close(wire);
        failure = error instanceof SocketTimeoutException ? timedOut(timeout, error) : error;
      }
    }
    throw failure;
  }

  private Socket secured(Socket wire, Address address, long end) throws IOException {
    if (tls == null) {
      return wire;
    }
    String name = serverName != null ? serverName : address.host();
    SSLSocket socket = (SSLSocket) tls.getSocketFactory().createSocket(wire, name, address.port(), true);
    SSLParameters parameters = socket.getSSLParameters();
    parameters.setEndpointIdentificationAlgorithm("HTTPS");
    parameters.setProtocols(new String[] {"TLSv1.3", "TLSv1.2"});
    socket.setSSLParameters(parameters);
    socket.setSoTimeout(left(end));
    socket.startHandshake();
    socket.setSoTimeout(0);
    return socket;
  }

  /** Aborts the current attempt and refuses further ones. */
  void stop() {
    Socket wire;
    synchronized (this) {
      stopped = true;
      wire = connecting;
    }
    close(wire);
  }

  private synchronized void begin(Socket wire) throws IOException {
    if (stopped) {
      throw new IOException("closed");
    }
    connecting = wire;
  }

  private static void close(Closeable wire) {
    try {
      if (wire != null) {
        wire.close();
      }
    } catch (IOException ignored) {
      // Nothing else can close it.
    }
  }

  private static IOException timedOut(Duration timeout, IOException cause) {
    return new IOException("no connection within " + timeout.toMillis() + " ms", cause);
  }

  private static int left(long end) {
    return (int) Math.max(1, Math.min(Integer.MAX_VALUE, TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime())));
  }
}
