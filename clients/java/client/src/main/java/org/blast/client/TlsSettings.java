package org.blast.client;

import java.io.IOException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.X509Certificate;
import java.util.List;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;

/**
 * PEM files for TLS.
 *
 * @param ca CA certificates that the client trusts; null for the default trust store of Java
 * @param cert certificate of this client with its intermediate certificates; null if the controller requires none
 * @param key private key of {@code cert} (PKCS#8, not encrypted, not readable by all users); null without {@code cert}
 */
public record TlsSettings(Path ca, Path cert, Path key) {
  private static final char[] NO_PASSWORD = {};

  /**
   * Returns settings without a client certificate.
   *
   * @param ca CA certificates that the client trusts; null for the default trust store of Java
   * @return the settings
   */
  public static TlsSettings trusting(Path ca) {
    return new TlsSettings(ca, null, null);
  }

  /**
   * Returns these settings with a client certificate.
   *
   * @param cert certificate of this client with its intermediate certificates
   * @param key private key of {@code cert}
   * @return new settings
   */
  public TlsSettings presenting(Path cert, Path key) {
    return new TlsSettings(ca, cert, key);
  }

  /** Returns the TLS context of a client. Throws BadCredentials if a file is unusable. */
  SSLContext context() {
    if ((cert == null) != (key == null)) {
      throw new BadCredentials("the certificate or its key is missing: pass both");
    }
    try {
      SSLContext context = SSLContext.getInstance("TLS");
      context.init(keyManagers(), trustManagers(), null);
      return context;
    } catch (GeneralSecurityException | IOException error) {
      throw new BadCredentials(
          "the certificate " + cert + " and the key " + key + " are unusable: " + error.getMessage(), error);
    }
  }

  private KeyManager[] keyManagers() throws GeneralSecurityException, IOException {
    if (cert == null) {
      return null;
    }
    List<X509Certificate> chain = PemFiles.certificates(cert);
    PrivateKey secret = PemFiles.privateKey(key, chain.get(0).getPublicKey().getAlgorithm());
    KeyStore store = emptyStore();
    store.setKeyEntry("client", secret, NO_PASSWORD, chain.toArray(new X509Certificate[0]));
    KeyManagerFactory factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
    factory.init(store, NO_PASSWORD);
    return factory.getKeyManagers();
  }

  private TrustManager[] trustManagers() throws GeneralSecurityException, IOException {
    if (ca == null) {
      return null;
    }
    KeyStore store = emptyStore();
    int number = 0;
    for (X509Certificate one : PemFiles.certificates(ca)) {
      store.setCertificateEntry("ca" + number++, one);
    }
    TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    factory.init(store);
    return factory.getTrustManagers();
  }

  private static KeyStore emptyStore() throws GeneralSecurityException, IOException {
    KeyStore store = KeyStore.getInstance("PKCS12");
    store.load(null, null);
    return store;
  }
}
