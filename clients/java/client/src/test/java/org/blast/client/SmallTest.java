package org.blast.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.Duration;
import java.util.concurrent.CompletionException;
import org.blast.Denied;
import org.blast.Ended;
import org.blast.KeyReused;
import org.blast.NotLeader;
import org.blast.PartState;
import org.blast.Rejected;
import org.blast.UnknownRequest;
import org.blast.Unsupported;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests of addresses, settings and error messages. */
class SmallTest {
  @ParameterizedTest
  @CsvSource({
    "c1, c1:9090",
    "c1:1, c1:1",
    "192.0.2.1:65535, 192.0.2.1:65535",
    "[2001:db8::1]:80, [2001:db8::1]:80",
    "[2001:db8::1], [2001:db8::1]:9090",
    "2001:db8::1, [2001:db8::1]:9090",
  })
  void addressIsParsedInEveryNotation(String text, String meant) {
    assertEquals(meant, Address.parse(text).toString());
  }

  @ParameterizedTest
  @NullSource
  @ValueSource(strings = {"", ":", ":1", "c1:", "c1:0", "c1:65536", "c1:x", "c1:-1", "[::1", "[]:1", "c1:٣"})
  void builderRejectsInvalidAddresses(String text) {
    assertThrows(WrongArgument.class, () -> BlastClient.builder().addresses(text));
  }

  @Test
  void builderRejectsInvalidSettings() {
    ClientBuilder builder = BlastClient.builder();
    assertThrows(WrongArgument.class, builder::addresses);
    assertThrows(WrongArgument.class, () -> builder.maxCalls(0));
    assertThrows(WrongArgument.class, () -> builder.timeout(Duration.ZERO));
    assertThrows(WrongArgument.class, () -> builder.timeout(Duration.ofSeconds(-1)));
    assertThrows(WrongArgument.class, () -> builder.timeout(Duration.ofSeconds(Long.MAX_VALUE)));
  }

  @Test
  void everyErrorHasAMessage() {
    Rejected wide = new Rejected("group_too_wide", "Too wide.").setMaxRacks(5);
    assertEquals("Too wide (at most 5 racks)", ErrorMessages.of(wide));
    assertEquals("At most 5.", ErrorMessages.of(wide.setMessage("At most 5.")));
    assertEquals("the request has ended (done): finished", ErrorMessages.of(new Ended(PartState.DONE, "finished")));
    assertEquals(
        "the controller does not know request 'k', or has forgotten it: submit it again",
            ErrorMessages.of(new UnknownRequest("k")));
    assertEquals(
        "the key 'k' is in use by a request with other content: choose another key",
        ErrorMessages.of(new CompletionException(new KeyReused("k"))));
    assertEquals("denied: no", ErrorMessages.of(new Denied("no")));
    assertEquals("this controller does not serve f: no", ErrorMessages.of(new Unsupported("f", "no")));
    assertEquals("this controller is not the leader: connect to c2",
        ErrorMessages.of(new NotLeader().setAddress("c2")));
    assertEquals("this controller is not the leader", ErrorMessages.of(new NotLeader()));
    assertEquals("the client is closed: create a new one", ErrorMessages.of(new ClientClosed()));
    assertEquals("java.lang.Exception", ErrorMessages.of(new Exception()));
  }
}
