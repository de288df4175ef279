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
 * Withdrawals of requests whose callers have given up. A request outlives the call that submitted it, and a later grant
 * would stay unused. A withdrawal takes a bounded time; a failure is logged.
 */
final class Withdrawals {
  /** Timeout of a withdrawal. After it the request stays, until its lease or pending timeout ends it. */
  static final long SECONDS = 3;

  private static final System.Logger LOG = System.getLogger("org.blast.client");

  private Withdrawals() {}

  /** Returns the key of a request in later calls. */
  static String nameOf(MulticastRequest request) {
    return request.isSetTenant() ? request.tenant + "/" + request.key : request.key;
  }

  /** Withdraws a request if it was submitted and its key is not in use by another. Logs a failure. */
  static CompletableFuture<Void> withdrawIfSubmitted(BlastAsyncClient client, MulticastRequest request) {
    return bounded(
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

  /** Withdraws a granted request if it has not ended. Logs a failure. */
  static CompletableFuture<Void> withdrawGranted(BlastAsyncClient client, MulticastRequest request) {
    String name = nameOf(request);
    return bounded(
        client,
        request,
        client
            .withdraw(name)
            .handle(
                // If the first attempt was executed, the second one answers that the request has ended.
                (status, error) ->
                    error instanceof ConnectionBroken
                        ? client.withdraw(name)
                        : error == null
                            ? CompletableFuture.completedFuture(status)
                            : CompletableFuture.<RequestStatus>failedFuture(error))
            .thenCompose(Function.identity()));
  }

  private static CompletableFuture<Void> bounded(
      BlastAsyncClient client, MulticastRequest request, CompletableFuture<RequestStatus> withdrawal) {
    CompletableFuture<Void> outcome = client.track(new CompletableFuture<>());
    withdrawal
        .orTimeout(SECONDS, TimeUnit.SECONDS)
        .whenComplete(
            (status, error) -> {
              Throwable reason = error instanceof java.util.concurrent.CompletionException ? error.getCause() : error;
              if (reason == null || reason instanceof Ended || reason instanceof UnknownRequest) {
                outcome.complete(null);
                return;
              }
              String cause =
                  reason instanceof java.util.concurrent.TimeoutException
                      ? "no answer within " + SECONDS + " s"
                      : ErrorMessages.of(reason);
              String sentence =
                  "request "
                      + nameOf(request)
                      + " could not be withdrawn, and a grant may stay unused until its lease ends; withdraw it with "
                          + "`blast withdraw`: "
                      + cause;
              LOG.log(System.Logger.Level.WARNING, sentence);
              outcome.completeExceptionally(new BlastException(sentence, reason));
            });
    return outcome;
  }

  /** Returns true if the key belongs to this request, and not to another one. */
  private static boolean isSame(RequestStatus status, MulticastRequest request) {
    return status.sender.equals(request.sender)
        && status.bytes == request.bytes
        && new HashSet<>(status.receivers).equals(new HashSet<>(request.receivers));
  }
}
