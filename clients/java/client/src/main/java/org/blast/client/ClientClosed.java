package org.blast.client;

/** The client was closed, before the call or while it was under way. */
public final class ClientClosed extends ControllerUnreachable {
  private static final long serialVersionUID = 1;

  ClientClosed() {
    super("the client is closed: make a new one", null);
  }
}
