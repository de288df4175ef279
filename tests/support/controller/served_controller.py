"""A real server, handler and core for clients in other languages, as a process: devices are played.

Prints where it listens and which papers there are as one line of JSON, and ends when its input does. Racks are named
r1, r2, …, r6, their hosts r1h1, r1h2, …; there is one optical port per rack.

    python -m tests.support.controller.served_controller
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from blast_controller.rpc.clients.access import OPEN_POLICY, AccessPolicy, CertificateRule
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.clients.identity import Identity, Role
from blast_controller.rpc.clients.tokens import digest_of, new_token
from blast_controller.rpc.connections.framed_server import Security
from blast_controller.rpc.convert import REFUSALS
from blast_controller.rpc.methods import ROLES
from blast_controller.serving import tls
from tests.support.certificates import Authority
from tests.support.controller.core import make_fabric
from tests.support.controller.memory_controller import serving
from tests.support.controller.runtime import running


def serve_with_papers(serve: Callable[..., str], folder: Path) -> dict[str, str]:
    """Start servers that authenticate their clients, and return their addresses and the credentials."""
    ca, client_ca, untrusted = (Authority(folder / name, name) for name in ("servers", "clients", "others"))
    server = ca.issue("/CN=controller", "IP:127.0.0.1,DNS:controller.test")
    elsewhere = ca.issue("/CN=elsewhere", "DNS:elsewhere.test")
    own = client_ca.issue("/OU=physics/CN=spark-1")
    forged = untrusted.issue("/OU=physics/CN=spark-1")
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
        "tokens": serve(policy),
        "tls": serve(policy, tls.ServerTlsSettings(server.cert, server.key)),
        "mutual": serve(policy, tls.ServerTlsSettings(server.cert, server.key, client_ca.cert)),
        "elsewhere": serve(policy, tls.ServerTlsSettings(elsewhere.cert, elsewhere.key)),
        "token": token,
        "ca": str(ca.cert),
        "untrustedCa": str(untrusted.cert),
        "cert": str(own.cert),
        "key": str(own.key),
        "forgedCert": str(forged.cert),
        "forgedKey": str(forged.key),
        "encryptedKey": str(encrypted),
    }


def main() -> None:
    """Serve until standard input ends."""
    with ExitStack() as stack:
        lab = stack.enter_context(running(make_fabric(6, [4, 4])))

        def serve(policy: AccessPolicy, tls_settings: tls.ServerTlsSettings | None = None) -> str:
            """Serve the core with an access policy, and return the address."""
            gate = Gate(policy, ROLES)
            options = {"refusals": REFUSALS, "security": Security(gate, tls_settings)}
            _, host, port = stack.enter_context(serving(lab.make_handler(gate), **options))
            return f"{host}:{port}"

        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="blast-papers-"))
        printed = {"open": serve(OPEN_POLICY), **serve_with_papers(serve, Path(folder))}
        print(json.dumps(printed), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
