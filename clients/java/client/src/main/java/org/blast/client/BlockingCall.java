package org.blast.client;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.function.Supplier;

/** Blocking wait for the future of a call. */
final class BlockingCall {
  private BlockingCall() {}

  /** Returns the answer, or throws the exception of the future, which callers declare in their signatures. */
  static <A> A answer(Supplier<CompletableFuture<A>> call) {
    if (ClientThread.isCurrent()) {
      throw new IllegalStateException(
          "a blocking call in a thread of the client would wait for itself: use async(), or run the stages of futures"
              + " in other threads, for example with thenApplyAsync");
    }
    CompletableFuture<A> future = call.get();
    try {
      return future.get();
    } catch (InterruptedException interrupted) {
      future.cancel(false);
      Thread.currentThread().interrupt();
      throw new CallInterrupted(interrupted);
    } catch (ExecutionException failed) {
      // The stack of the caller is useful, that of the receiving thread is not.
      failed.getCause().fillInStackTrace();
      throw BlockingCall.<RuntimeException>unchecked(failed.getCause());
    }
  }

  @SuppressWarnings("unchecked")
  private static <E extends Throwable> E unchecked(Throwable error) throws E {
    throw (E) error;
  }
}
