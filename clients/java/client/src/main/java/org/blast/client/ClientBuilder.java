package org.blast.client;

import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import javax.net.ssl.SSLContext;

/** A builder of clients; see {@link BlastClient#builder()}. */
public final class ClientBuilder {
  private static final Duration MAX_TIMEOUT = Duration.ofDays(36_500);

  private List<Address> addresses = List.of(Address.parse("127.0.0.1"));
  private Duration timeout = Duration.ofSeconds(10);
  private int maxCalls = 10_000;
  private SSLContext tls;
  private String serverName;
  private String token;

  ClientBuilder() {}

  /**
   * Sets the addresses of the controller and its standbys. The client tries the first one first, and the next one if
   * that does not answer or is a standby. Default: 127.0.0.1:9090.
   *
   * @param addresses each HOST, HOST:PORT or [IPv6]:PORT
   * @return this
   * @throws WrongArgument if there is no address, or an invalid one
   */
  public ClientBuilder addresses(String... addresses) {
    if (addresses.length == 0) {
      throw new WrongArgument("no address: pass the address of a controller, for example 127.0.0.1:9090");
    }
    this.addresses = Stream.of(addresses).map(Address::parse).distinct().toList();
    return this;
  }

  /**
   * Sets the timeout of a call, including the connection. A call that waits for an event adds its own timeout. When the
   * client connects, each address gets an equal share. Default: 10 seconds.
   *
   * @param timeout above zero, at most 100 years
   * @return this
   * @throws WrongArgument if the timeout is out of range
   */
  public ClientBuilder timeout(Duration timeout) {
    if (timeout.isNegative() || timeout.isZero() || timeout.compareTo(MAX_TIMEOUT) > 0) {
      throw new WrongArgument("the timeout must be above 0 and at most 100 years, not " + timeout);
    }
    this.timeout = timeout;
    return this;
  }

  /**
   * Sets the maximum number of pending calls; further calls fail with {@link TooManyCalls}. Default: 10,000. A
   * controller lets at most 1,024 calls wait on one connection.
   *
   * @param maxCalls at least 1
   * @return this
   * @throws WrongArgument if it is below 1
   */
  public ClientBuilder maxCalls(int maxCalls) {
    if (maxCalls < 1) {
      throw new WrongArgument("maxCalls must be at least 1, not " + maxCalls);
    }
    this.maxCalls = maxCalls;
    return this;
  }

  /**
   * Enables TLS. The client verifies the controller's certificate and that it is for the host of the address. Default:
   * no TLS.
   *
   * @param settings certificates and key
   * @return this
   * @throws BadCredentials if a file is unusable
   */
  public ClientBuilder tls(TlsSettings settings) {
    return sslContext(settings.context());
  }

  /**
   * Enables TLS as {@link #tls} does, with a context of the caller.
   *
   * @param context trusted certificates and own certificate
   * @return this
   */
  public ClientBuilder sslContext(SSLContext context) {
    this.tls = context;
    return this;
  }

  /**
   * Sets the host name that the controller's certificate must have. Default: the host of the address.
   *
   * @param name a host name
   * @return this
   */
  public ClientBuilder serverName(String name) {
    this.serverName = name;
    return this;
  }

  /**
   * Sets a token with which each connection logs in. Default: none.
   *
   * @param token secret that the operator issued
   * @return this
   */
  public ClientBuilder token(String token) {
    this.token = token;
    return this;
  }

  /**
   * Creates the client, which connects on its first call.
   *
   * @return a client, which the caller closes
   * @throws BadCredentials if the token would reach another machine unencrypted
   */
  public BlastClient build() {
    TokenGuard guard = new TokenGuard(addresses, tls != null);
    if (token != null) {
      guard.check();
    }
    Calls calls = new Calls(new Route(addresses), new Dialer(tls, serverName), timeout, maxCalls, token);
    return new BlastClient(new BlastAsyncClient(calls, guard));
  }
}
