"""Addresses: one parser and one printer for IPv4, IPv6 and host names."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_base.endpoint import MAX_PORT, Endpoint, parse_endpoint, parse_listening
from blast_base.settings import is_loopback
from blast_client.api.address import AddressError, parse_address
from blast_client.send.receivers import parse_receiver, written

HOSTS = st.one_of(
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(str),
    st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?(\.[a-z]{1,9}){0,3}", fullmatch=True),
)
PORTS = st.integers(1, MAX_PORT)


@given(HOSTS, PORTS)
def test_printed_address_parses_to_same_endpoint(host: str, port: int) -> None:
    shown = str(Endpoint(host, port))
    assert parse_endpoint(shown) == parse_endpoint(shown, 9) == parse_address(shown) == (host, port)
    assert shown.startswith("[") == (":" in host)
    assert parse_receiver(written(("name", host, port))) == ("name", host, port)
    assert parse_receiver(written((host, host, port))) == (host, host, port)


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("h2", ("h2", 7)),
        ("h2:9", ("h2", 9)),
        ("10.0.0.1", ("10.0.0.1", 7)),
        ("[::1]", ("::1", 7)),
        ("[fe80::1%eth0]:9", ("fe80::1%eth0", 9)),
        ("münchen.example:9", ("münchen.example", 9)),
    ],
)
def test_parser_uses_default_port(text: str, endpoint: tuple[str, int]) -> None:
    assert parse_endpoint(text, default_port=7) == endpoint


WRONG_HOSTS = ["", ":9", "[]:9", "[h2]:9", "[10.0.0.1]:9", "[::1", "::1]:9", "::1", "::1:9", "[::1]9", "[[::1]]:9"]
WRONG_HOSTS += ["a b:9", "a,b:9", "a/b:9", "h\udcff:9", "h\0:9", f"{'x' * 64}.example:9", "a..b:9"]
WRONG_PORTS = ["h:", "h:0", "h:65536", "h:٣", "h:1_0", "h:-1", "h:9999999", "[::1]:", "[::1]:x"]


@pytest.mark.parametrize("text", [*WRONG_HOSTS, *WRONG_PORTS])
def test_invalid_address_error_shows_valid_form(text: str) -> None:
    for parse, kind in ((parse_endpoint, ValueError), (parse_address, AddressError)):
        with pytest.raises(kind, match=r"write HOST:PORT or \[IPv6\]:PORT, for example 10\.0\.0\.1:9090"):
            parse(text)
    with pytest.raises(ValueError, match=r"HOST=ADDRESS:PORT, with an IPv6 address in \[ \]"):
        parse_receiver(f"name={text}")


@pytest.mark.parametrize(
    "text", ["a[1-2]=10.0.0.1:7", "a[1-2]=10.0.0.[1-2]:7", "@a=10.0.0.1:7", "a b=10.0.0.1:7", "=h:7"]
)
def test_receiver_with_host_set_and_address_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="is not HOST"):
        parse_receiver(text)


def test_listening_endpoint_requires_ip_address_and_port() -> None:
    assert parse_listening("[::]:0") == ("::", 0) and parse_listening("0.0.0.0:9") == ("0.0.0.0", 9)
    for text in ("localhost:9", "::1:9", "127.0.0.1", "[127.0.0.1]:9"):
        with pytest.raises(ValueError, match="IP-ADDRESS:PORT"):
            parse_listening(text)


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_is_loopback_accepts_only_loopback_addresses(address: IPv4Address | IPv6Address) -> None:
    assert is_loopback(str(Endpoint(str(address), 0))) == address.is_loopback
    assert is_loopback("localhost:1") and not is_loopback("example.org:1")
