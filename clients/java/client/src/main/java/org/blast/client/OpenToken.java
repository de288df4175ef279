package org.blast.client;

import java.util.List;

/** Keeps tokens from traveling to other machines without TLS. */
record OpenToken(List<Address> addresses, boolean tls) {
  /** Throws BadCredentials unless what is sent stays on this machine or is encrypted. */
  void refuse() {
    for (Address address : addresses) {
      if (!tls && !address.isLoopback()) {
        throw new BadCredentials("a token would travel to " + address + " for everybody to read: use TLS");
      }
    }
  }
}
