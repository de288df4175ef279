package org.blast.client;

import java.io.EOFException;
import java.io.IOException;
import java.net.ProtocolException;
import javax.net.ssl.SSLException;

/** The reason why a connection failed or ended; `tls` is true if TLS failed. */
record Failure(String reason, boolean tls, Throwable cause) {
  static final Failure CLOSED_HERE = new Failure("closed", false, null);

  /** Returns the failure of an open connection; `received` is true if a message had arrived on it. */
  static Failure of(IOException error, boolean received) {
    if (error instanceof SSLException) {
      return new Failure(error.getMessage(), true, error);
    }
    if (error instanceof ProtocolException) {
      String reason = "the server there does not speak Blast's protocol, or requires TLS: it sent ";
      return new Failure(reason + error.getMessage(), false, error);
    }
    String reason =
        received
            ? "the connection broke"
            : "the connection broke at once; does the controller require TLS, or a client certificate?";
    return new Failure(reason, false, error);
  }

  /** Returns the failure of an attempt to connect. */
  static Failure connecting(IOException error) {
    if (error instanceof SSLException) {
      return new Failure(error.getMessage(), true, error);
    }
    if (error instanceof java.net.UnknownHostException) {
      return new Failure("unknown host name", false, error);
    }
    if (error instanceof EOFException || error.getMessage() == null) {
      return new Failure("the connection broke", false, error);
    }
    return new Failure(error.getMessage(), false, error);
  }
}
