package org.blast.client;

import java.util.HashSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.blast.Ended;
import org.blast.MulticastRequest;
import org.blast.RequestStatus;
import org.blast.UnknownRequest;

/**
 * Requests that nobody waits for any more. A request outlives the call that made it, and would get light later, for
 * nobody: so it is withdrawn, within a bounded time, and where that cannot be done it is said.
 */
final class GivingBack {
  /** Then the request is left to the controller, which ends it by lease or patience. */
  static final long SECONDS = 3;

  private static final System.Logger LOG = System.getLogger("org.blast.client");

  private GivingBack() {}

  /** What a request is called in later calls. */
  static String nameOf(MulticastRequest request) {
    return request.isSetTenant() ? request.tenant + "/" + request.key : request.key;
  }

  /** Withdraws a request, if it was made and is the one that has its key; a failure is logged, and in the future. */
  static CompletableFuture<Void> abandon(BlastAsyncClient client, MulticastRequest request) {
    return toTheEnd(
        client,
        request,
        client
            .status(nameOf(request))
            .thenCompose(
                status ->
                    isSame(status, request)
                        ? client.withdraw(nameOf(request))
                        : CompletableFuture.completedFuture(status)));
  }

  /** Withdraws a request that had light, if it has not ended; a failure is logged, and in the future. */
  static CompletableFuture<Void> giveUp(BlastAsyncClient client, MulticastRequest request) {
    String name = nameOf(request);
    return toTheEnd(
        client,
        request,
        client
            .withdraw(name)
            .handle(
                // It may have been carried out; then the answer is that the request has ended.
                (status, error) ->
                    error instanceof ConnectionBroken
                        ? client.withdraw(name)
                        : error == null
                            ? CompletableFuture.completedFuture(status)
                            : CompletableFuture.<RequestStatus>failedFuture(error))
            .thenCompose(Function.identity()));
  }

  private static CompletableFuture<Void> toTheEnd(
      BlastAsyncClient client, MulticastRequest request, CompletableFuture<RequestStatus> withdrawal) {
    CompletableFuture<Void> told = client.givingBack(new CompletableFuture<>());
    withdrawal
        .orTimeout(SECONDS, TimeUnit.SECONDS)
        .whenComplete(
            (status, error) -> {
              Throwable reason = error instanceof java.util.concurrent.CompletionException ? error.getCause() : error;
              if (reason == null || reason instanceof Ended || reason instanceof UnknownRequest) {
                told.complete(null);
                return;
              }
              String why =
                  reason instanceof java.util.concurrent.TimeoutException
                      ? "no answer within " + SECONDS + " s"
                      : Sentences.of(reason);
              String sentence =
                  "request "
                      + nameOf(request)
                      + " could not be withdrawn and may get light that nobody uses, until its lease is over: "
                      + why;
              LOG.log(System.Logger.Level.WARNING, sentence);
              told.completeExceptionally(new BlastException(sentence, reason));
            });
    return told;
  }

  /** Whether a request is the caller's, and not somebody else's under the same key. */
  private static boolean isSame(RequestStatus status, MulticastRequest request) {
    return status.sender.equals(request.sender)
        && status.bytes == request.bytes
        && new HashSet<>(status.receivers).equals(new HashSet<>(request.receivers));
  }
}
