package org.blast.client;

/** A thread of a client. It must not block on an answer, since it may be the thread that delivers it. */
final class ClientThread extends Thread {
  ClientThread(Runnable work, String name) {
    super(work, "blast-client " + name);
    setDaemon(true);
  }

  static boolean isCurrent() {
    return Thread.currentThread() instanceof ClientThread;
  }
}
