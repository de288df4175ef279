package org.blast.client;

/** A client that was closed before or during the call. */
public final class ClientClosed extends ControllerUnreachable {
  private static final long serialVersionUID = 1;

  ClientClosed() {
    super("the client is closed: create a new one", null);
  }
}
