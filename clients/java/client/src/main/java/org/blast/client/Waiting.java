package org.blast.client;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.function.Supplier;

/** Waiting for a future as a call that throws what it ends with. */
final class Waiting {
  private Waiting() {}

  /** What is thrown are the exceptions that the caller's signature has; the compiler cannot know it here. */
  static <A> A answer(Supplier<CompletableFuture<A>> call) {
    if (OwnThread.isCurrent()) {
      throw new IllegalStateException(
          "a call that waits was made in a thread of the client, by which its answer would have to come:"
              + " use async(), or let what depends on a future run elsewhere, as thenApplyAsync does");
    }
    CompletableFuture<A> future = call.get();
    try {
      return future.get();
    } catch (InterruptedException interrupted) {
      future.cancel(false);
      Thread.currentThread().interrupt();
      throw new CallInterrupted(interrupted);
    } catch (ExecutionException failed) {
      // Where it happened is of no use to anybody; who asked is.
      failed.getCause().fillInStackTrace();
      throw Waiting.<RuntimeException>unchecked(failed.getCause());
    }
  }

  @SuppressWarnings("unchecked")
  private static <E extends Throwable> E unchecked(Throwable error) throws E {
    throw (E) error;
  }
}
