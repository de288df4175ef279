"""Errors of the client library: each is a `BlastError` whose text is a sentence."""

from __future__ import annotations

import asyncio
import contextlib
import re

import pytest
from thrift.Thrift import TException

from blast_api import ttypes
from blast_client import (
    AsyncClient,
    BlastError,
    Client,
    ClientClosedError,
    Ended,
    EventKind,
    InvalidArgumentError,
    PartState,
    Rejected,
    TimedOut,
    TransferReport,
)
from blast_client.api.address import AddressError
from blast_client.api.errors import as_answer
from blast_client.api.states import with_states
from blast_client.api.tls import CredentialsError
from blast_client.cli.command import main
from blast_client.cli.failures import report_failures
from blast_client.cli.json_form import plain, to_json
from blast_client.send.in_thread import in_thread
from blast_transport.base.errors import (
    EngineError,
    LocalProtocolError,
    SettingsError,
    TransportError,
    WrongInputError,
)
from tests.blast_client.test_client_calls import request
from tests.support.controller.memory_controller import MemoryController, serving

# ---------------------------------------------------------------------- before anything is sent

WRONG = [
    (lambda c: c.submit(request(key=None)), "a MulticastRequest needs a key: write MulticastRequest("),
    (lambda c: c.submit(request(receivers="r2h1")), "must be a list of names, not the text 'r2h1': write ['r2h1']"),
    (lambda c: c.submit(request(receivers={"r2h1"})), "receivers of request must be a list, not {'r2h1'} (set)"),
    (lambda c: c.submit(request(receivers=["h21", 7])), "each of receivers of request must be a text, not 7 (int)"),
    (lambda c: c.submit(request(receivers=["h21", None])), "must not contain None"),
    (lambda c: c.submit(request(bytes="300MB")), "bytes of request must be a whole number, not '300MB' (str)"),
    (lambda c: c.submit(request(bytes=1 << 63)), "bytes of request must be between -2^63 and 2^63 - 1"),
    (lambda c: c.submit(request(priority=1 << 31)), "priority of request must be between -2^31 and 2^31 - 1"),
    (lambda c: c.submit(request(maySplit=1)), "maySplit of request must be True or False, not 1 (int)"),
    (lambda c: c.submit(request(key=17)), "key of request must be a text, not 17 (int)"),
    (lambda c: c.submit(request(key="\udcff")), "must be text without surrogates"),
    (lambda c: c.submit(request(receivers=["h" * 1000] * 1200)), "but a call holds"),
    (lambda c: c.submit({"key": "k"}), "request must be a MulticastRequest, not {'key': 'k'} (dict): write"),
    (lambda c: c.request(request(), timeout="60"), "must be a finite number of seconds, at least 0, not '60'"),
    (lambda c: c.await_event("k", after_sequence="0"), "after_sequence must be a whole number"),
    (lambda c: c.status(None), "key of status must not be None"),
    (lambda c: c.finish("k", report=TransferReport(failedReceivers="h21")), "not the text 'h21': write ['h21']"),
    (lambda c: list(c.list_requests("pending")), "states must be a list such as [PartState.PENDING], not 'pending'"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "sentence"), WRONG, ids=[sentence for _, sentence in WRONG])
def test_client_rejects_invalid_argument_without_calling_controller(client, controller, call, sentence):
    with pytest.raises(InvalidArgumentError) as refusal:
        call(client)
    assert sentence in str(refusal.value) and isinstance(refusal.value, BlastError | ValueError)
    assert controller.calls == [] and controller.requests == {}
    client.ping()


async def test_async_client_rejects_invalid_arguments(controller):
    async with AsyncClient(controller.address) as client:
        with pytest.raises(InvalidArgumentError, match="not the text"):
            await client.submit(request(receivers="r2h1"))
        with pytest.raises(InvalidArgumentError, match="number of seconds"):
            await client.request(request(), timeout=None)
        with pytest.raises(InvalidArgumentError, match="number of seconds"):
            AsyncClient(controller.address, timeout="1")
    assert controller.requests == {}


# ---------------------------------------------------------------------- answers


def test_client_raises_refusals_with_text_of_controller(client):
    with pytest.raises(Rejected) as refusal:
        client.submit(request(bytes=-5))
    assert str(refusal.value) == "bytes must be positive"
    client.submit(request())
    client.submit(request("waits"))
    for call, sentence in (
        (lambda: client.submit(request(bytes=1)), "the key 'k' is in use by a request with other content: "),
        (lambda: client.status("other"), "the controller knows no request 'other': submit it again"),
        (lambda: client.request(request("waits"), timeout=0.01), "not yet: no splitter is free"),
        (lambda: client.submit(request("d", deadlineMs=5)), "this controller does not serve deadlines: this server"),
    ):
        with pytest.raises(BlastError, match=f"^{sentence}"):
            call()
    client.withdraw("k")
    with pytest.raises(Ended) as ended:
        client.withdraw("k")
    assert str(ended.value) == "the request has ended (withdrawn): withdrawn"
    assert ended.value.state is PartState.WITHDRAWN


def test_client_reports_internal_error_of_controller(client, controller, monkeypatch):
    def broken(*_):
        raise RuntimeError("a fault")

    monkeypatch.setattr(controller, "fabric", broken)
    with pytest.raises(BlastError, match=r"^the controller failed to execute the call: "):
        client.fabric()


GENERATED = [
    ttypes.Rejected("group_too_wide", "Too wide.", 5),
    ttypes.TimedOut("busy"),
    ttypes.Ended(ttypes.PartState.DONE, "done"),
    ttypes.UnknownRequest("k"),
    ttypes.KeyReused("k"),
    ttypes.Denied("no"),
    ttypes.Unsupported("x", "not here"),
    ttypes.NotLeader("other:9090"),
]


@pytest.mark.parametrize("error", GENERATED, ids=lambda error: type(error).__name__)
def test_each_answer_is_both_blast_error_and_thrift_exception(error):
    answer = as_answer(error)
    assert isinstance(answer, BlastError) and isinstance(answer, type(error)) and type(answer) is not type(error)
    assert all(getattr(answer, spec[2]) == getattr(error, spec[2]) for spec in error.thrift_spec if spec)
    assert "(" not in str(answer).split(" ")[0], "a sentence, not a repr"
    assert as_answer(answer) is answer


def test_answer_passes_through_context_manager():
    # The generated exceptions refuse the attributes that Python sets on them.

    @contextlib.contextmanager
    def anything():
        yield

    with pytest.raises(TimedOut), anything():
        raise as_answer(ttypes.TimedOut("x"))
    error = as_answer(ttypes.TimedOut("x"))
    error.add_note("more")
    assert error.__notes__ == ["more"]


# ---------------------------------------------------------------------- connections


def test_client_is_closed_after_with_block(controller):
    with Client(controller.address) as client:
        client.ping()
    with pytest.raises(ClientClosedError, match="was closed at the end of its `with`: create another client"):
        client.ping()
    client = Client(controller.address)
    for _ in range(2):
        client.ping()
        client.close()

    async def used_after_its_with():
        async with AsyncClient(controller.address) as client:
            await client.ping()
        await client.ping()

    with pytest.raises(ClientClosedError):
        asyncio.run(used_after_its_with())


# ---------------------------------------------------------------------- states


def test_states_and_kinds_are_enums_with_stable_json(client):
    status = client.submit(request())
    assert status.state is PartState.ACTIVE and status.parts[0].state is PartState.ACTIVE
    event = client.await_event("k")
    assert event.kind is EventKind.GRANTED and event.state is None
    assert [one.state for one in client.list_requests([PartState.ACTIVE])] == [PartState.ACTIVE]
    assert client.finish("k").state is PartState.DONE
    ended = client.await_event("k", 1)
    assert (ended.kind, ended.state) == (EventKind.ENDED, PartState.DONE) and ended.state.final
    assert (plain(status)["state"], plain(event)["kind"]) == ("ACTIVE", "GRANTED")
    assert PartState.ACTIVE == ttypes.PartState.ACTIVE and not PartState.ACTIVE.final
    assert str(PartState.ACTIVE) == f"{PartState.ACTIVE}" == "active"
    assert {member.name: member.value for member in PartState} == ttypes.PartState._NAMES_TO_VALUES
    assert {member.name: member.value for member in EventKind} == ttypes.EventKind._NAMES_TO_VALUES


def test_client_accepts_unknown_state_of_newer_controller():
    event = with_states(ttypes.Event(1, 99, 0, state=98))
    assert (event.kind, event.state, str(event.kind), event.state.final) == (99, 98, "99", False)
    assert '"kind": 99' in to_json(event)


# ---------------------------------------------------------------------- after the end


class EndingController(MemoryController):
    """A controller that raises `Ended` after the end; without `raises_ended`, `TimedOut` like an older version."""

    raises_ended = True

    def awaitEvent(self, connection, key, after, timeout):  # noqa: N802 - the interface's name
        request = self._find(key)
        if request.state in (PartState.DONE, PartState.WITHDRAWN) and len(request.events) <= after:
            raise (
                ttypes.Ended(request.state, request.reason)
                if self.raises_ended
                else ttypes.TimedOut("nothing happened")
            )
        return super().awaitEvent(connection, key, after, timeout)


@pytest.mark.parametrize("raises_ended", [True, False])
async def test_await_event_after_end_of_request_raises_ended(monkeypatch, raises_ended):
    handler = EndingController()
    handler.raises_ended = raises_ended
    with serving(handler) as (_, host, port), Client(f"{host}:{port}") as client:
        client.submit(request())
        client.finish("k")
        last = client.await_event("k", 1)
        assert last.kind is EventKind.ENDED
        with pytest.raises(Ended) as over:
            client.await_event("k", last.sequence, timeout=5)
        assert over.value.state is PartState.DONE and over.value.reason == "finished"
        async with AsyncClient(f"{host}:{port}") as other:
            with pytest.raises(Ended):
                await other.await_event("k", last.sequence, timeout=5)


async def test_in_thread_raises_error_of_thread():
    with pytest.raises(ZeroDivisionError):
        await in_thread("divides", divmod, 1, 0)


# ---------------------------------------------------------------------- commands


def kinds_of(base):
    """Return the class and its subclasses, except the answers of a controller, which have their own texts."""
    kinds = [base, *(kind for below in base.__subclasses__() for kind in kinds_of(below))]
    return [kind for kind in kinds if not issubclass(kind, TException)]


def test_command_reports_every_typed_error_in_a_sentence(capsys):
    @report_failures
    def run(error):
        raise error

    # All imported classes: a fixed list would miss new ones.
    for kind in [*kinds_of(TransportError), *kinds_of(BlastError)]:
        error = kind.__new__(kind)
        error.args = ("it went wrong",)
        if issubclass(kind, (EngineError, LocalProtocolError)):
            with pytest.raises(kind):
                run(error)
        else:
            mistakes = (WrongInputError, SettingsError, InvalidArgumentError, AddressError, CredentialsError)
            assert run(error) == (2 if issubclass(kind, mistakes) else 1), kind
            assert capsys.readouterr().err.startswith("blast: "), kind


@pytest.mark.parametrize("words", [("send", "/dev/null"), ("sender",), ("measure",)], ids=" ".join)
@pytest.mark.parametrize("secret", ["missing", "open to all", "short", "folder"])
def test_unusable_secret_is_reported_in_one_line(words, secret, tmp_path, capsys, monkeypatch):
    path = tmp_path / "secret"
    if secret == "folder":
        path.mkdir(mode=0o700)
    elif secret != "missing":
        path.write_text("x" * (40 if secret == "open to all" else 3))
        path.chmod(0o604 if secret == "open to all" else 0o600)
    monkeypatch.setenv("BLAST_SECRET_FILE", str(path))
    hosts = {"send": ["--to", "h1=127.0.0.1:1"], "measure": ["--hosts", "h1=127.0.0.1:1"]}.get(words[0], [])
    assert main([*words, *hosts]) == 2
    assert re.fullmatch(r"blast: [^\n]*secret[^\n]*\n", capsys.readouterr().err)


def test_path_that_cannot_be_used_is_reported_in_one_line(capsys):
    assert main(["measure", "--hosts", "h1", "--output", "x" * 400]) == 1
    assert re.fullmatch(r"blast: cannot use x+: File name too long\n", capsys.readouterr().err)
