package org.blast.client;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** The controller's addresses, tried in a circle, with the last failure of each. Thread-safe. */
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

  /** Returns the address to try. */
  synchronized Address current() {
    return addresses.get(current);
  }

  /** Notes a failure at an address and moves to the next one, unless another thread has done so. */
  synchronized void advance(Address address, Failure failure) {
    failures.put(address, failure);
    if (address.equals(current())) {
      current = (current + 1) % addresses.size();
    }
  }

  /** Makes the leader's address the next to try. Ignores unknown addresses: a controller must not redirect clients. */
  synchronized void prefer(String leader) {
    try {
      int index = addresses.indexOf(Address.parse(leader));
      current = index < 0 ? current : index;
    } catch (WrongArgument unusable) {
      // The addresses are tried in order.
    }
  }

  /** Forgets the failure of an address that is tried again. */
  synchronized void clearFailure(Address address) {
    failures.remove(address);
  }

  /** Returns the exception for a call that was not executed. */
  synchronized ControllerUnreachable unreachable(Throwable cause) {
    boolean tls = !failures.isEmpty() && failures.values().stream().allMatch(Failure::tls);
    return tls
        ? new TlsFailed(
            "TLS failed with the controller at "
                + reasons()
                + ": check the CA, the certificate and the server name, and that the controller uses TLS",
            cause)
        : new ControllerUnreachable(sentence(), cause);
  }

  /** Returns the exception for a call that may have been executed. */
  synchronized ConnectionBroken broken(Throwable cause) {
    return new ConnectionBroken(sentence(), cause);
  }

  private String sentence() {
    return "no answer from a controller at "
        + reasons()
        + ": start one with `blast controller run`, or pass another address";
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
