package org.blast.client;

import java.util.List;

/** A check that keeps tokens from reaching other machines unencrypted. */
record TokenGuard(List<Address> addresses, boolean tls) {
  /** Throws BadCredentials unless TLS is on or all addresses are on this machine. */
  void check() {
    for (Address address : addresses) {
      if (!tls && !address.isLoopback()) {
        throw new BadCredentials("the token would reach " + address + " unencrypted: use TLS");
      }
    }
  }
}
