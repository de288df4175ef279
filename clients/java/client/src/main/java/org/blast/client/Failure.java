package org.blast.client;

import java.io.EOFException;
import java.io.IOException;
import java.net.ProtocolException;
import javax.net.ssl.SSLException;

/** Why there is no connection, or none any more: in words, and whether it was TLS. */
record Failure(String reason, boolean tls, Throwable cause) {
  static final Failure CLOSED_HERE = new Failure("closed", false, null);

  /** Of a connection on which something was, or was not, `heard` before. */
  static Failure of(IOException error, boolean heard) {
    if (error instanceof SSLException) {
      return new Failure(error.getMessage(), true, error);
    }
    if (error instanceof ProtocolException) {
      String what = "what answers there does not speak Blast's protocol, or wants TLS: it sent ";
      return new Failure(what + error.getMessage(), false, error);
    }
    String broke =
        heard
            ? "the connection broke"
            : "the connection broke at once; does the controller want TLS, or a certificate?";
    return new Failure(broke, false, error);
  }

  /** Of a connection that could not be made. */
  static Failure connecting(IOException error) {
    if (error instanceof SSLException) {
      return new Failure(error.getMessage(), true, error);
    }
    if (error instanceof java.net.UnknownHostException) {
      return new Failure("no host has this name", false, error);
    }
    if (error instanceof EOFException || error.getMessage() == null) {
      return new Failure("the connection broke", false, error);
    }
    return new Failure(error.getMessage(), false, error);
  }
}
