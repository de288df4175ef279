"""One line for every command, so that `blast --help` loads none of them. A test compares them with the commands."""

from __future__ import annotations

SUMMARIES = {
    "agent": "receive on this host, check an agent's configuration",
    "controller": "run the controller, check its configuration",
    "drain": "take no new requests, let active ones end",
    "element": "list hardware, take it out of use and back",
    "explain": "say what blocks a request, when it could start, and what would free it now",
    "extend": "change the members, time or size of a request",
    "fabric": "show racks, splitters, optical switches and light trees",
    "figures": "draw results as pictures and tables",
    "finish": "say that a transfer is over, so that its light is free",
    "journal": "show what the controller meant to do and did, or move it elsewhere",
    "lab": "Mininet with an emulated optical fabric (root)",
    "measure": "find what each host can send to each other one",
    "plan": "allocate the requests of a file, offline",
    "quarantine": "take an element out of use; what it serves now goes on",
    "reconcile": "compare what devices hold with what they should, and repair it",
    "release": "put a quarantined element back into use",
    "request": "ask for a multicast and wait for its grant",
    "resume": "let a controller that is holding decide again",
    "send": "bring a file or a stream to many hosts",
    "sender": "send for another program, which asks by JSON lines",
    "sim": "simulate multicasts at full size",
    "stand-down": "let another controller lead; light goes on",
    "status": "show one request, or all that are live",
    "tl1": "read what optical switches say",
    "top": "watch requests, light trees and what is free",
    "trees": "plan balanced multicast trees for a network",
    "withdraw": "give up a request, pending or active",
}
