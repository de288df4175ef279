package org.blast.client;

import static org.blast.client.RealController.request;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.thrift.TException;
import org.blast.Denied;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests of TLS, certificates and tokens with the real server. */
@Timeout(60)
class SecurityTest {
  private static RealController controller;

  @BeforeAll
  static void serve() throws IOException {
    controller = RealController.shared();
  }

  private static ClientBuilder at(String server) {
    return BlastClient.builder().addresses(controller.get(server));
  }

  private static TlsSettings trusted() {
    return TlsSettings.trusting(controller.file("ca"));
  }

  @Test
  void clientConnectsToATrustedController() throws TException {
    try (BlastClient client = at("tls").tls(trusted()).token(controller.get("token")).build()) {
      assertTrue(client.version().features.contains("tls"));
      client.submit(request("tls"));
      client.withdraw("tls");
    }
    try (BlastClient client = at("elsewhere").tls(trusted()).serverName("elsewhere.test").build()) {
      client.ping();
    }
  }

  @Test
  void clientRejectsAnUntrustedController() {
    assertFails("tls", TlsSettings.trusting(controller.file("untrustedCa")), "certification path");
    assertFails("tls", TlsSettings.trusting(null), "certification path");
    assertFails("elsewhere", trusted(), "127.0.0.1");
    assertFails("open", trusted(), "check the CA");
  }

  private static void assertFails(String server, TlsSettings settings, String reason) {
    try (BlastClient client = at(server).tls(settings).build()) {
      TlsFailed error = assertThrows(TlsFailed.class, client::ping);
      assertTrue(error.getMessage().contains(reason), error.getMessage());
    }
  }

  @Test
  void errorOfAClientWithoutTlsNamesTls() {
    try (BlastClient client = at("tls").build()) {
      ControllerUnreachable error = assertThrows(ControllerUnreachable.class, client::ping);
      assertTrue(error.getMessage().contains("TLS"), error.getMessage());
    }
  }

  @Test
  void certificateAuthenticatesTheClient() throws TException {
    TlsSettings own = trusted().presenting(controller.file("cert"), controller.file("key"));
    try (BlastClient client = at("mutual").tls(own).build()) {
      client.submit(request("mutual"));
      client.withdraw("mutual");
    }
  }

  @Test
  void controllerRejectsMissingAndForgedCertificates() {
    TlsSettings forged = trusted().presenting(controller.file("forgedCert"), controller.file("forgedKey"));
    for (TlsSettings settings : new TlsSettings[] {trusted(), forged}) {
      try (BlastClient client = at("mutual").tls(settings).build()) {
        assertThrows(ControllerUnreachable.class, client::ping);
      }
    }
  }

  @Test
  void tokenAuthenticatesTheClient() throws TException {
    try (BlastClient client = at("tokens").build()) {
      assertThrows(Denied.class, client::fabric);
      client.login(controller.get("token"));
      client.fabric();
    }
    try (BlastClient client = at("tokens").token(controller.get("token")).build()) {
      client.fabric();
    }
  }

  @Test
  void wrongTokenThrowsBadCredentials() {
    try (BlastClient client = at("tokens").token("x".repeat(43)).build()) {
      BadCredentials error = assertThrows(BadCredentials.class, client::ping);
      assertTrue(error.getMessage().contains("refuses the token"), error.getMessage());
      assertEquals(Denied.class, error.getCause().getClass());
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"192.0.2.1", "controller.example:9090", "127.0.0.1.example", "[2001:db8::1]:9090", "::2"})
  void clientSendsNoTokenToARemoteHostWithoutTls(String elsewhere) {
    ClientBuilder builder = BlastClient.builder().addresses("127.0.0.1", elsewhere);
    assertThrows(BadCredentials.class, () -> builder.token("t").build());
    try (BlastClient client = builder.token(null).build()) {
      BadCredentials error = assertThrows(BadCredentials.class, () -> client.login("t"));
      assertTrue(error.getMessage().contains("use TLS"), error.getMessage());
    }
    builder.token("t").tls(trusted()).build().close();
  }

  @ParameterizedTest
  @ValueSource(strings = {"127.0.0.1", "127.8.9.10:1", "localhost", "[::1]:9090", "::1", "0:0:0:0:0:0:0:1"})
  void clientSendsATokenToTheLocalHostWithoutTls(String here) {
    BlastClient.builder().addresses(here).token("t").build().close();
  }

  @Test
  void unusableFilesAreRejectedWithAReason(@TempDir Path folder) throws IOException {
    Path cert = controller.file("cert");
    Path key = controller.file("key");
    Path shown = Files.copy(key, folder.resolve("shown.key"));
    Files.setPosixFilePermissions(shown, PosixFilePermissions.fromString("rw-r--r--"));
    Path old = write(folder, "old.key", "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n");
    Path empty = write(folder, "empty.pem", "");
    assertRefused(trusted().presenting(cert, shown), "chmod o=");
    assertRefused(trusted().presenting(cert, controller.file("encryptedKey")), "is encrypted");
    assertRefused(trusted().presenting(cert, old), "PKCS#8");
    assertRefused(trusted().presenting(cert, empty), "contains no private key");
    assertRefused(trusted().presenting(cert, folder.resolve("none")), "cannot be read");
    assertRefused(trusted().presenting(empty, key), "contains no certificate");
    assertRefused(trusted().presenting(cert, null), "pass both");
    assertRefused(TlsSettings.trusting(old), "old.key");
    assertRefused(TlsSettings.trusting(folder.resolve("none")), "cannot be read");
  }

  private static Path write(Path folder, String name, String content) throws IOException {
    Path file = Files.writeString(folder.resolve(name), content);
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
    return file;
  }

  private static void assertRefused(TlsSettings settings, String reason) {
    BadCredentials error = assertThrows(BadCredentials.class, () -> BlastClient.builder().tls(settings));
    assertTrue(error.getMessage().contains(reason), error.getMessage());
  }
}
