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

/** Readers of certificates and keys in PEM files. All methods throw BadCredentials. */
final class PemFiles {
  private static final Pattern KEY =
      Pattern.compile("-----BEGIN ([A-Z0-9 ]*)PRIVATE KEY-----([^-]*)-----END \\1PRIVATE KEY-----");
  private static final Set<PosixFilePermission> OTHERS =
      Set.of(
          PosixFilePermission.OTHERS_READ, PosixFilePermission.OTHERS_WRITE, PosixFilePermission.OTHERS_EXECUTE);

  private PemFiles() {}

  /** Reads the certificates in a file, one or more. */
  static List<X509Certificate> certificates(Path file) {
    try {
      CertificateFactory factory = CertificateFactory.getInstance("X.509");
      List<X509Certificate> found =
          factory.generateCertificates(new ByteArrayInputStream(read(file))).stream()
              .map(X509Certificate.class::cast)
              .toList();
      if (found.isEmpty()) {
        throw new BadCredentials(file + " contains no certificate: pass a PEM file");
      }
      return found;
    } catch (CertificateException error) {
      throw new BadCredentials("the certificate " + file + " is unusable: " + error.getMessage(), error);
    }
  }

  /** Reads the key in a file; `algorithm` is that of its certificate. */
  static PrivateKey privateKey(Path file, String algorithm) {
    checkPermissions(file);
    Matcher found = KEY.matcher(new String(read(file), StandardCharsets.ISO_8859_1));
    if (!found.find()) {
      throw new BadCredentials(file + " contains no private key: pass a PEM file");
    }
    if (found.group(1).startsWith("ENCRYPTED") || found.group(2).contains("ENCRYPTED")) {
      throw new BadCredentials(
          "the key " + file + " is encrypted: decrypt it with `openssl pkcs8`, and protect the file with chmod 600");
    }
    if (!found.group(1).isEmpty()) {
      throw new BadCredentials(
          "the key " + file + " is not in PKCS#8 format: convert it with `openssl pkcs8 -topk8 -nodes`");
    }
    try {
      byte[] encoded = Base64.getMimeDecoder().decode(found.group(2));
      return KeyFactory.getInstance(algorithm).generatePrivate(new PKCS8EncodedKeySpec(encoded));
    } catch (GeneralSecurityException | IllegalArgumentException error) {
      throw new BadCredentials("the key " + file + " is unusable, or does not belong to the certificate: check both "
          + "files", error);
    }
  }

  private static void checkPermissions(Path file) {
    try {
      Set<PosixFilePermission> permissions = Files.getPosixFilePermissions(file);
      if (permissions.stream().anyMatch(OTHERS::contains)) {
        throw new BadCredentials(
            file + " contains a secret, but every user of this machine can access it: run chmod o= " + file);
      }
    } catch (UnsupportedOperationException noSuchPermissions) {
      // The file system has no permissions to check.
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
