package org.blast.hadoop;

import java.net.URI;
import java.net.URISyntaxException;

/**
 * What a file is called by Blast: {@code blast://SCHEME@HOST:PORT/PATH}, or {@code blast://SCHEME/PATH} where the
 * original names no host; a user in the original's authority follows the scheme, {@code blast://SCHEME:USER@HOST/PATH}.
 *
 * <p>YARN hands URIs on as scheme, user, host, port and path: what does not fit into these would be lost.
 */
final class BlastUri {
  static final String SCHEME = "blast";

  private BlastUri() {}

  /**
   * Of a file that is fully qualified.
   *
   * @throws Refused where no such URI says the same
   */
  static URI of(URI original) throws Refused {
    String scheme = original.getScheme();
    String user = original.getRawUserInfo();
    if (scheme == null || scheme.equals(SCHEME)) {
      throw new Refused(original + " is not the file itself: name it as its own file system does");
    }
    String authority = original.getAuthority() == null
        ? scheme
        : scheme + (user == null ? "" : ":" + user) + "@" + hostAndPort(original);
    URI made = uri(SCHEME, authority, original);
    if (authority.indexOf('%') >= 0 || !originalOf(made).equals(plain(original))) {
      throw new Refused(original + " has a name that YARN does not hand on: give it one of letters, digits, - and .");
    }
    return made;
  }

  /**
   * The file behind a URI of ours, or its file system.
   *
   * @throws Refused where it is none of ours
   */
  static URI originalOf(URI blast) throws Refused {
    String user = blast.getUserInfo();
    if (!SCHEME.equals(blast.getScheme()) || blast.getHost() == null || blast.getPort() >= 0 && user == null) {
      throw new Refused(blast + " names no file system: write for example blast://hdfs@namenode:8020/models/w.bin");
    }
    if (user == null) {
      return uri(blast.getHost(), null, blast);
    }
    int colon = user.indexOf(':');
    String scheme = colon < 0 ? user : user.substring(0, colon);
    return uri(scheme, (colon < 0 ? "" : user.substring(colon + 1) + "@") + hostAndPort(blast), blast);
  }

  /**
   * As a list of cached files takes it: there, commas part one file from the next.
   *
   * @param uri of a file
   */
  static String written(URI uri) {
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
      throw new Refused(with + " is no URI of a file: " + error.getMessage());
    }
  }
}
