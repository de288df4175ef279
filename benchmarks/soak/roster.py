"""Who takes part: how many of which client, and the fixed rates of the hostile ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

SENDERS = 2
"""Clients that move files by `blast send`."""
ONE_IN_FIVE_LOOKS_ON = 5

APPLICATION_SECONDS = 7.0
"""An application asks for light, looks at its request and gives the light back once in so long."""
OBSERVER_SECONDS = 3.0
"""An observer asks for the fabric, for the requests and for a sign of life once in so long."""
SEND_SECONDS = 10.0
"""A sender begins a file once in so long."""

ATTACKS: Mapping[str, str] = {
    "flood": "30 connections/s from 4 addresses without a token, a third of them with TLS, held up to 30 s, "
    "at most 2000 open",
    "frames": "5 connections/s from 4 addresses without a token: half a frame of 1 MiB, a byte every 0.2 s, "
    "a length of 2^31 - 1, 16 calls of 250 kB at once; held up to 30 s",
    "vanish": "500 requests that wait, by one connection, which goes away after 2 s; once in 5 s",
    "extend": "50 extend(addBytes=1)/s of one request that waits",
    "view": "20 calls/s of fabric, explain, listRequests(1000) in turn, and 300 awaitEvent/s that stay, "
    "at most 16,000 on 16 connections",
}
"""At the controller; N hostile clients take the first N, and begin again behind the last."""

INTRUSIONS: Mapping[str, str] = {
    "forge": "into the group of every transfer that runs, in its session: for each receiver 240 datagrams/s at its "
    "host and 10/s at every other host of the transfers' racks, the sender's too",
    "garbage": "5 connections/s at the OpenFlow port and 2/s at agents' ports: noise, half a header, the largest "
    "length, silence; held up to 10 s",
}
"""Beside them, as soon as there is one hostile client: what strangers on the hosts do."""


@dataclass(frozen=True, slots=True)
class Roster:
    """How many clients of each kind there are; `attacks` names each hostile one's."""

    applications: int
    observers: int
    senders: int
    attacks: tuple[str, ...]

    @property
    def intrusions(self) -> tuple[str, ...]:
        """What goes on beside the attacks."""
        return tuple(INTRUSIONS) if self.attacks else ()


def roster(clients: int, hostile: int, attacks: Sequence[str] = tuple(ATTACKS)) -> Roster:
    """Share `clients` out, `hostile` of them hostile, who take turns with the attacks.

    Raises ValueError for an attack that is none, and where no honest client of each kind is left.
    """
    if unknown := [attack for attack in attacks if attack not in ATTACKS]:
        raise ValueError(f"there is no attack {unknown[0]!r}: name some of {', '.join(ATTACKS)}")
    honest = clients - hostile
    looking_on = max(1, honest // ONE_IN_FIVE_LOOKS_ON)
    applications = honest - looking_on - SENDERS
    if applications < 1 or hostile < 0:
        least = SENDERS + 2
        raise ValueError(f"{clients} clients, {hostile} of them hostile, leave {honest} honest: at least {least} are")
    return Roster(applications, looking_on, SENDERS, tuple(islice(cycle(attacks), hostile)))
