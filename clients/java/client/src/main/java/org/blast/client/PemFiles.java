package org.blast.client;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Certificates and keys in PEM files. All methods throw BadCredentials. */
final class PemFiles {
  private static final Pattern KEY =
      Pattern.compile("-----BEGIN ([A-Z0-9 ]*)PRIVATE KEY-----([^-]*)-----END \\1PRIVATE KEY-----");
  private static final Set<PosixFilePermission> OF_OTHERS =
      Set.of(
          PosixFilePermission.OTHERS_READ, PosixFilePermission.OTHERS_WRITE, PosixFilePermission.OTHERS_EXECUTE);

  private PemFiles() {}

  /** The certificates in a file: at least one. */
  static List<X509Certificate> certificates(Path file) {
    try {
      CertificateFactory factory = CertificateFactory.getInstance("X.509");
      List<X509Certificate> found =
          factory.generateCertificates(new ByteArrayInputStream(read(file))).stream()
              .map(X509Certificate.class::cast)
              .toList();
      if (found.isEmpty()) {
        throw new BadCredentials(file + " has no certificate in it");
      }
      return found;
    } catch (CertificateException error) {
      throw new BadCredentials("the certificate " + file + " cannot be used: " + error.getMessage(), error);
    }
  }

  /** The key in a file, of this algorithm (of its certificate). */
  static PrivateKey privateKey(Path file, String algorithm) {
    refuseReadableByOthers(file);
    Matcher found = KEY.matcher(new String(read(file), StandardCharsets.ISO_8859_1));
    if (!found.find()) {
      throw new BadCredentials(file + " has no private key in it");
    }
    if (found.group(1).startsWith("ENCRYPTED") || found.group(2).contains("ENCRYPTED")) {
      throw new BadCredentials(
          "the key " + file + " is encrypted: give one that is not, and keep its file to yourself");
    }
    if (!found.group(1).isEmpty()) {
      throw new BadCredentials(
          "the key " + file + " is not in the form PKCS#8: convert it with `openssl pkcs8 -topk8 -nodes`");
    }
    try {
      byte[] encoded = Base64.getMimeDecoder().decode(found.group(2));
      return KeyFactory.getInstance(algorithm).generatePrivate(new PKCS8EncodedKeySpec(encoded));
    } catch (GeneralSecurityException | IllegalArgumentException error) {
      throw new BadCredentials("the key " + file + " cannot be used, or is of another certificate", error);
    }
  }

  private static void refuseReadableByOthers(Path file) {
    try {
      Set<PosixFilePermission> permissions = Files.getPosixFilePermissions(file);
      if (permissions.stream().anyMatch(OF_OTHERS::contains)) {
        throw new BadCredentials(
            file + " holds a secret, and every user of this machine may use it: chmod o= " + file);
      }
    } catch (UnsupportedOperationException noSuchPermissions) {
      // On such a file system nothing can be said.
    } catch (IOException error) {
      throw unreadable(file, error);
    }
  }

  private static byte[] read(Path file) {
    try {
      return Files.readAllBytes(file);
    } catch (IOException error) {
      throw unreadable(file, error);
    }
  }

  private static BadCredentials unreadable(Path file, IOException error) {
    return new BadCredentials(file + " cannot be read (" + error.getClass().getSimpleName() + ")", error);
  }
}
