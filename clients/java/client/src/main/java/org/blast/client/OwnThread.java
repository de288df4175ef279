package org.blast.client;

/** A thread of a client. Nothing that waits for an answer may run in one, for the answer would have to come by it. */
final class OwnThread extends Thread {
  OwnThread(Runnable work, String name) {
    super(work, "blast-client " + name);
    setDaemon(true);
  }

  static boolean isCurrent() {
    return Thread.currentThread() instanceof OwnThread;
  }
}
