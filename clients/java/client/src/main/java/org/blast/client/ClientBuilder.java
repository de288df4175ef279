package org.blast.client;

import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import javax.net.ssl.SSLContext;

/** What a client is to be like; see {@link BlastClient#builder()}. What is not said stays as it says here. */
public final class ClientBuilder {
  private static final Duration LONGEST_TIMEOUT = Duration.ofDays(36_500);

  private List<Address> addresses = List.of(Address.parse("127.0.0.1"));
  private Duration timeout = Duration.ofSeconds(10);
  private int maxCalls = 10_000;
  private SSLContext tls;
  private String serverName;
  private String token;

  ClientBuilder() {}

  /**
   * Where the controller is, or the several controllers of which one decides. The first is tried first; where it
   * does not answer or only stands by, the next. Default: this machine, port 9090.
   *
   * @param addresses each HOST, HOST:PORT or [IPv6]:PORT
   * @return this
   * @throws WrongArgument for an address that is none
   */
  public ClientBuilder addresses(String... addresses) {
    if (addresses.length == 0) {
      throw new WrongArgument("a client needs the address of a controller");
    }
    this.addresses = Stream.of(addresses).map(Address::parse).distinct().toList();
    return this;
  }

  /**
   * How long a call may take, connecting included; calls that wait for something add their own. Several addresses share
   * it when a connection has to be made. Default: 10 seconds.
   *
   * @param timeout more than nothing
   * @return this
   * @throws WrongArgument where it is not
   */
  public ClientBuilder timeout(Duration timeout) {
    if (timeout.isNegative() || timeout.isZero() || timeout.compareTo(LONGEST_TIMEOUT) > 0) {
      throw new WrongArgument("the timeout must be more than nothing and at most a hundred years, and not " + timeout);
    }
    this.timeout = timeout;
    return this;
  }

  /**
   * How many calls may be under way at once; the next ends with {@link TooManyCalls}. Default: 10,000. A controller
   * lets far fewer wait on one connection: 1,024.
   *
   * @param most at least 1
   * @return this
   * @throws WrongArgument where it is not
   */
  public ClientBuilder maxCalls(int most) {
    if (most < 1) {
      throw new WrongArgument("at least one call must be allowed, and not " + most);
    }
    this.maxCalls = most;
    return this;
  }

  /**
   * The controller must have a certificate that can be trusted and is for the host of its address. Default: no TLS.
   *
   * @param settings files
   * @return this
   * @throws BadCredentials where they cannot be used
   */
  public ClientBuilder tls(TlsSettings settings) {
    return sslContext(settings.context());
  }

  /**
   * As {@link #tls}, with a context that was made elsewhere.
   *
   * @param context whom to trust and what to present
   * @return this
   */
  public ClientBuilder sslContext(SSLContext context) {
    this.tls = context;
    return this;
  }

  /**
   * The name that the controller's certificate must have, where that is not the host of its address.
   *
   * @param name a host name
   * @return this
   */
  public ClientBuilder serverName(String name) {
    this.serverName = name;
    return this;
  }

  /**
   * Begin each connection with this login. Default: none.
   *
   * @param token the secret that the operator gave
   * @return this
   */
  public ClientBuilder token(String token) {
    this.token = token;
    return this;
  }

  /**
   * A client; it connects when it is first used.
   *
   * @return a client, to be closed by who uses it
   * @throws BadCredentials where the token would travel to another machine for everybody to read
   */
  public BlastClient build() {
    OpenToken guard = new OpenToken(addresses, tls != null);
    if (token != null) {
      guard.refuse();
    }
    Calls calls = new Calls(new Route(addresses), new Dialer(tls, serverName), timeout, maxCalls, token);
    return new BlastClient(new BlastAsyncClient(calls, guard));
  }
}
