"""The two carriers from outside the package, added to this process; as a program, `blast_transport` with them."""

from __future__ import annotations

import sys

from blast_transport.session.registry import add_carrier
from blast_transport.standalone.command import main
from tests.support import toy_outside, toy_relay

add_carrier(toy_relay.NAME, toy_relay.TRAITS, toy_relay.RelaySender, toy_relay.RelayReceiver)
add_carrier(toy_outside.NAME, toy_outside.TRAITS, toy_outside.OutsideSender, toy_outside.OutsideReceiver)

if __name__ == "__main__":
    sys.exit(main())
