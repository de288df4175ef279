"""A real server, handler and core for clients in other languages, as a process: devices are played.

Prints where it listens and which papers there are as one line of JSON, and ends when its input does. Racks are named
r1, r2, …, their hosts r1h1, r1h2, …; there is one optical port per rack.

    python -m tests.support.served_controller --racks 6 --hosts 2
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from blast_api import BlastOperator, ttypes
from blast_controller.rpc.clients.access import OPEN_POLICY, AccessPolicy, CertificateRule
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.clients.identity import Identity, Role
from blast_controller.rpc.clients.tokens import digest_of, new_token
from blast_controller.rpc.connections.framed_server import FramedServer, Security
from blast_controller.rpc.handler import BlastHandler
from blast_controller.rpc.methods import ROLES
from blast_controller.serving import tls
from blast_controller.store.details import read_page
from tests.support.certificates import Authority
from tests.support.core import make_fabric
from tests.support.runtime import running


class Served:
    """A core, and servers of it that ask more or less of their clients."""

    def __init__(self, stack: ExitStack, racks: int, hosts: int) -> None:
        self._stack = stack
        self._lab = stack.enter_context(running(make_fabric(racks, [4, 4], hosts=hosts)))

    def serve(self, policy: AccessPolicy, tls_settings: tls.TlsSettings | None = None) -> str:
        """Begin to; returns the address."""
        gate = Gate(policy, ROLES)
        handler = BlastHandler(self._lab.runtime, "os-ken", partial(read_page, self._lab.store.journal), gate)
        server = FramedServer(BlastOperator, handler, None, ttypes.Denied, Security(gate, tls_settings))
        self._stack.callback(server.stop)
        host, port = server.start(port=0)
        return f"{host}:{port}"


def serve_with_papers(served: Served, folder: Path) -> dict[str, str]:
    """Servers that want to know who their clients are, and what proves it."""
    ca, client_ca, stranger = (Authority(folder / name, name) for name in ("servers", "clients", "strangers"))
    server = ca.issue("/CN=controller", "IP:127.0.0.1,DNS:controller.test")
    elsewhere = ca.issue("/CN=elsewhere", "DNS:elsewhere.test")
    own = client_ca.issue("/OU=physics/CN=spark-1")
    forged = stranger.issue("/OU=physics/CN=spark-1")
    encrypted = folder / "encrypted.key"
    words = ("openssl", "pkcs8", "-topk8", "-in", own.key, "-out", encrypted, "-passout", "pass:secret")
    subprocess.run([*map(str, words)], capture_output=True, check=True, timeout=60)
    token = new_token()
    policy = AccessPolicy(
        rules=(CertificateRule(frozenset({("organizational_unit", "physics")}), Identity("default", Role.OPERATOR)),),
        tokens={digest_of(token): Identity("default", Role.OPERATOR)},
        tenants=frozenset({"default"}),
        features=frozenset({"login", "tls"}),
    )
    return {
        "tokens": served.serve(policy),
        "tls": served.serve(policy, tls.TlsSettings(server.cert, server.key)),
        "mutual": served.serve(policy, tls.TlsSettings(server.cert, server.key, client_ca.cert)),
        "elsewhere": served.serve(policy, tls.TlsSettings(elsewhere.cert, elsewhere.key)),
        "token": token,
        "ca": str(ca.cert),
        "strangerCa": str(stranger.cert),
        "cert": str(own.cert),
        "key": str(own.key),
        "forgedCert": str(forged.cert),
        "forgedKey": str(forged.key),
        "encryptedKey": str(encrypted),
    }


def main() -> None:
    """Serve until nobody listens any more."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--racks", type=int, default=6)
    parser.add_argument("--hosts", type=int, default=2, help="in each rack")
    parser.add_argument("--papers", action="store_true", help="serve with TLS and tokens, too")
    args = parser.parse_args()
    with ExitStack() as stack:
        served = Served(stack, args.racks, args.hosts)
        told = {"open": served.serve(OPEN_POLICY)}
        if args.papers:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="blast-papers-"))
            told |= serve_with_papers(served, Path(folder))
        print(json.dumps(told), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
