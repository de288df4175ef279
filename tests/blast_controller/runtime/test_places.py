"""Admission slots of unauthenticated clients: bounded, and the host with most connections loses its oldest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_controller.serving.admission_slots import AdmissionSlots, host_of


def test_oldest_client_of_the_largest_host_is_evicted():
    places: AdmissionSlots[str] = AdmissionSlots(total=4, per_host=4)
    for guest, address in (("operator", "192.0.2.1"), ("a", "192.0.2.9"), ("b", "192.0.2.9"), ("c", "192.0.2.9")):
        assert places.enter(guest, address) is None
    assert places.enter("d", "192.0.2.9") == "a"
    assert places.enter("e", "192.0.2.7") == "b"
    places.leave("operator")
    assert places.enter("f", "192.0.2.9") is None


def test_slots_of_one_address_are_bounded():
    places: AdmissionSlots[int] = AdmissionSlots(total=100, per_host=2)
    assert [places.enter(n, "192.0.2.9") for n in range(4)] == [None, None, 0, 1]
    assert len(places) == 2


def test_leaving_twice_frees_one_slot():
    places: AdmissionSlots[int] = AdmissionSlots(2, 2)
    places.enter(1, "a")
    places.leave(1)
    places.leave(1)
    assert len(places) == 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::1", True),
        ("?", "?", True),
    ],
)
def test_host_of_groups_addresses(one, other, same):
    assert (host_of(one) == host_of(other)) is same


@given(
    st.integers(1, 6),
    st.integers(1, 6),
    st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d"]), st.booleans()), max_size=60),
)
def test_only_clients_of_the_largest_host_are_evicted(total, per_host, visits):
    places: AdmissionSlots[int] = AdmissionSlots(total, per_host)
    inside: dict[int, str] = {}
    for guest, (address, leaves) in enumerate(visits):
        counts = {a: list(inside.values()).count(a) for a in "abcd"}
        evicted = places.enter(guest, address)
        if evicted is not None:
            host = inside.pop(evicted)
            assert counts[host] == (per_host if host == address and counts[host] >= per_host else max(counts.values()))
            assert evicted == min((g for g, a in [*inside.items(), (evicted, host)] if a == host), default=evicted)
        inside[guest] = address
        assert len(places) == len(inside) <= total
        assert all(list(inside.values()).count(a) <= per_host for a in "abcd")
        if leaves:
            places.leave(guest)
            del inside[guest]
