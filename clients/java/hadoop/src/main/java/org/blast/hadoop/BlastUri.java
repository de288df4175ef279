package org.blast.hadoop;

import java.net.URI;
import java.net.URISyntaxException;

/**
 * The {@code blast:} URI of a file: {@code blast://SCHEME@HOST:PORT/PATH}, or {@code blast://SCHEME/PATH} if the
 * original has no host. A user in the original's authority follows the scheme: {@code blast://SCHEME:USER@HOST/PATH}.
 *
 * <p>YARN transmits URIs as scheme, user, host, port and path, and loses all other components.
 */
final class BlastUri {
  static final String SCHEME = "blast";

  private BlastUri() {}

  /**
   * Return the {@code blast:} URI of a fully qualified file.
   *
   * @throws Refused if no {@code blast:} URI can represent it
   */
  static URI of(URI original) throws Refused {
    String scheme = original.getScheme();
    String user = original.getRawUserInfo();
    if (scheme == null || scheme.equals(SCHEME)) {
      throw new Refused(original + " is not the original file: pass its URI in its own file system");
    }
    String authority = original.getAuthority() == null
        ? scheme
        : scheme + (user == null ? "" : ":" + user) + "@" + hostAndPort(original);
    URI blast = uri(SCHEME, authority, original);
    if (authority.indexOf('%') >= 0 || !originalOf(blast).equals(plain(original))) {
      throw new Refused("YARN cannot transmit the host or user of " + original
          + ": use names of letters, digits, - and .");
    }
    return blast;
  }

  /**
   * Return the original file or file system of a {@code blast:} URI.
   *
   * @throws Refused if the URI is not a valid {@code blast:} URI
   */
  static URI originalOf(URI blast) throws Refused {
    String user = blast.getUserInfo();
    if (!SCHEME.equals(blast.getScheme()) || blast.getHost() == null || blast.getPort() >= 0 && user == null) {
      throw new Refused(blast + " names no file system: write, for example, blast://hdfs@namenode:8020/models/w.bin");
    }
    if (user == null) {
      return uri(blast.getHost(), null, blast);
    }
    int colon = user.indexOf(':');
    String scheme = colon < 0 ? user : user.substring(0, colon);
    return uri(scheme, (colon < 0 ? "" : user.substring(colon + 1) + "@") + hostAndPort(blast), blast);
  }

  /**
   * Encode a URI for Hadoop's list of cached files, whose separators are commas.
   *
   * @param uri URI of a file
   */
  static String encode(URI uri) {
    return uri.toASCIIString().replace(",", "%2C");
  }

  private static URI plain(URI uri) throws Refused {
    return uri(uri.getScheme(), uri.getAuthority(), uri);
  }

  private static String hostAndPort(URI uri) {
    return uri.getHost() + (uri.getPort() < 0 ? "" : ":" + uri.getPort());
  }

  private static URI uri(String scheme, String authority, URI with) throws Refused {
    try {
      return new URI(scheme, authority, with.getPath(), null, null);
    } catch (URISyntaxException error) {
      throw new Refused(with + " is not a valid URI of a file: " + error.getMessage());
    }
  }
}
