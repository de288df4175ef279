package example;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.blast.Event;
import org.blast.Grant;
import org.blast.MulticastRequest;
import org.blast.Rejected;
import org.blast.RequestStatus;
import org.blast.client.BlastClient;
import org.blast.client.ErrorMessages;
import org.blast.client.Granted;
import org.blast.client.TlsSettings;

/** The examples of the README. A test compares both and runs this class. */
public final class Multicast {
  private Multicast() {}

  /** Submits a request and returns where to send. */
  public static String send(String address) throws Exception {
    StringBuilder out = new StringBuilder();
    try (BlastClient client = BlastClient.builder().addresses(address).build()) {
      List<String> receivers = List.of("r2h1", "r3h1");
      MulticastRequest request = new MulticastRequest("iteration-1", "r1h1", receivers, 300_000_000);
      try (Granted granted = client.granted(request, Duration.ofMinutes(1))) {
        Grant grant = granted.grant();
        out.append("send UDP to " + grant.groupAddress + ":" + grant.groupPort);
        granted.finish();
      } catch (Rejected answer) {
        out.append("send over the packet network: " + ErrorMessages.of(answer));
      }
    }
    return out.toString();
  }

  /** Submits a request and waits for its grant without blocking a thread. */
  public static CompletableFuture<RequestStatus> sendLater(BlastClient client, MulticastRequest request) {
    CompletableFuture<Event> granted =
        client
            .async()
            .submit(request)
            .thenCompose(status -> client.async().awaitEvent(request.key, 0, Duration.ofMinutes(1)));
    return granted.thenCompose(event -> client.async().finish(request.key, event.part, null));
  }

  /** Returns a client with TLS, a token and two controllers. */
  public static BlastClient trusted(Path ca, Path cert, Path key, String token) {
    BlastClient client =
        BlastClient.builder()
            .addresses("c1.example:9090", "c2.example:9090")
            .timeout(Duration.ofSeconds(5))
            .tls(TlsSettings.trusting(ca).presenting(cert, key))
            .token(token)
            .build();
    return client;
  }
}
