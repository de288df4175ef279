package org.blast.client;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Where to look for the controller: addresses in a circle, and why those were left that were left. Thread-safe. */
final class Route {
  private final List<Address> addresses;
  private final Map<Address, Failure> failures = new LinkedHashMap<>();
  private int current;

  Route(List<Address> addresses) {
    this.addresses = List.copyOf(addresses);
  }

  int size() {
    return addresses.size();
  }

  /** Where to try. */
  synchronized Address current() {
    return addresses.get(current);
  }

  /** It did not work there: try the next, unless somebody has already moved on. */
  synchronized void leave(Address address, Failure failure) {
    failures.put(address, failure);
    if (address.equals(current())) {
      current = (current + 1) % addresses.size();
    }
  }

  /** Try there next, where it is one of ours: whom to trust is not for an answer to say. */
  synchronized void prefer(String leader) {
    try {
      int index = addresses.indexOf(Address.parse(leader));
      current = index < 0 ? current : index;
    } catch (WrongArgument unusable) {
      // Then they are tried in order.
    }
  }

  /** It is tried anew: what was wrong there counts no more. */
  synchronized void forgive(Address address) {
    failures.remove(address);
  }

  /** What is wrong, where the call was not carried out. */
  synchronized ControllerUnreachable unreachable(Throwable cause) {
    boolean tls = !failures.isEmpty() && failures.values().stream().allMatch(Failure::tls);
    return tls
        ? new TlsFailed(
            "no TLS with the controller at "
                + reasons()
                + ": check the CA, the certificate and the server's name, and that it speaks TLS",
            cause)
        : new ControllerUnreachable(sentence(), cause);
  }

  /** What is wrong, where it may have been. */
  synchronized ConnectionBroken broken(Throwable cause) {
    return new ConnectionBroken(sentence(), cause);
  }

  private String sentence() {
    return "no answer from a controller at "
        + reasons()
        + ": start one with `blast controller run`, or name another address";
  }

  private String reasons() {
    return addresses.stream()
        .map(one -> failures.containsKey(one) ? one + " (" + failures.get(one).reason() + ")" : one.toString())
        .collect(Collectors.joining(", "));
  }

  @Override
  public synchronized String toString() {
    return addresses.stream().map(Address::toString).collect(Collectors.joining(", "));
  }
}
