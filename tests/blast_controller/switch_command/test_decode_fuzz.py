"""Fuzz tests of the decoders: any bytes yield the same bounded records, whole and in pieces."""

from __future__ import annotations

import json
import random

import pytest

from blast_controller.cli.switch.decode.decoding import records
from blast_controller.cli.switch.decode.transcript import UNPARSED_BYTES, TranscriptProtocol
from tests.blast_controller.switch_command.test_decode_gnmic import CAPABILITIES, EVENT, NOTIFICATION, SET
from tests.blast_controller.switch_command.test_decode_netconf import END, HELLO, OK, RPC, chunks
from tests.blast_controller.switch_command.test_decode_redis import LINE, command
from tests.support.fuzzing import Decoder, fuzz, inputs, mutated_bytes, pieces

USUAL = 3000
LONGEST = 2000
ENTRY = b"2026-11-29 12:02:18,405 INFO ncclient: [host ocs1 session-id 2] "
SEEDS = {
    TranscriptProtocol.NETCONF: [
        HELLO + END + chunks(RPC) + chunks(OK, 9),
        b"a\n" + RPC + b"\n\n" + OK + END,
        ENTRY + b"Sending:\n" + repr(chunks(RPC)).encode() + b"\n" + ENTRY + b"Received:\n" + OK + b"\n" + ENTRY,
    ],
    TranscriptProtocol.REDIS: [
        command("HSET", "OCS_PORT|1A", "label", "x") + b"+OK\r\n:3\r\n-ERR no\r\n*2\r\n*1\r\n$-1\r\n$2\r\nab\r\n",
        b"%1\r\n+a\r\n#t\r\n>3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n",
        f"OK\n{LINE}\n{LINE}\n".encode(),
    ],
    TranscriptProtocol.GNMI: [
        json.dumps([NOTIFICATION], indent=2).encode() + b"\nGet Request:\n" + json.dumps(SET).encode(),
        json.dumps(CAPABILITIES).encode() + json.dumps([EVENT], indent=1).encode(),
    ],
}  # fmt: skip
TOKENS = [
    b"\n#", b"\n##\n", b"]]>", b"]]>]]>", b"<rpc>", b"</rpc>", b"<nc:rpc", b"<?xml version='1.0'?>", b"/>", b"\r\n",
    b"\n", b"\xff", b"\0", b"*2\r\n", b"$3\r\n", b"$-1\r\n", b":7\r\n", b"+OK\r\n", b"{", b"}", b"[", b"]", b'"',
    b"\\", b"\\x", b'"updates"', b"1e999", b"true", b"b'", b"Sending:\n", b"Received:\n", b"[session 1] ", b"OK\n",
    b"9" * 12, b"AUTH",
]  # fmt: skip
FILES = ["netconf", "netconf_text", "ncclient_log", "redis", "resp", "json_text"]


def mutated(rng: random.Random, seed: bytes) -> bytes:
    return mutated_bytes(rng, seed, TOKENS, LONGEST)


def noise(rng: random.Random) -> bytes:
    return b"".join(rng.choice(TOKENS) if rng.random() < 0.9 else rng.randbytes(3) for _ in range(rng.randint(1, 30)))


@pytest.mark.parametrize("protocol", SEEDS, ids=str)
def test_records_do_not_depend_on_pieces(protocol: TranscriptProtocol) -> None:
    def check(rng: random.Random, data: bytes) -> str:
        whole = list(records([data], protocol))
        assert list(records(pieces(rng, data), protocol)) == whole
        for one in whole:
            json.dumps(one)
            # Four characters for a byte that is not UTF-8.
            assert one["kind"] != "unparsed" or len("".join(one["lines"])) <= 4 * UNPARSED_BYTES
        return str(whole[-1]["kind"]) if whole else "nothing"

    files = tuple(f"decode/{name}.py" for name in FILES)
    run = fuzz(Decoder(f"transcripts of {protocol}", SEEDS[protocol], mutated, noise, check, files), inputs(USUAL))
    assert len(run.outcomes) > 2 and run.outcomes["unparsed"] < run.inputs
