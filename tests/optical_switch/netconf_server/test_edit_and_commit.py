"""Edits of a configuration and their commit, by raw bytes over SSH."""

from __future__ import annotations

import pytest

from optical_switch.emulator.netconf_server.messages.names import AnnouncedFeature
from optical_switch.model import Circuit
from tests.optical_switch.netconf_server.raw_client import (
    OPSW,
    arrived,
    cross_connects,
    edit,
    netconf_lab,
    removed,
)
from tests.support.waiting import eventually_async

WRITABLE = [AnnouncedFeature.WRITABLE_RUNNING]
VALIDATING = [AnnouncedFeature.VALIDATE]


async def test_commit_sets_circuits_of_candidate() -> None:
    """RFC 6241 section 8.3.4.1."""
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.ok(edit(cross_connects((1, 9), (2, 12))))
        assert await session.pairs("candidate") == {1: 9, 2: 12}
        assert await session.pairs() == {} and not lab.paths.calls
        await session.ok("<commit/>")
        assert await session.pairs() == lab.circuits == {1: 9, 2: 12}
        assert lab.paths.lit == {Circuit(1, 1), Circuit(2, 4)}


async def test_reply_to_commit_follows_light_paths() -> None:
    async with netconf_lab() as lab:
        session, other = await lab.session(), await lab.session()
        await session.ok(edit(cross_connects((1, 9))))
        lab.paths.released.clear()
        number = session.request("<commit/>")
        await eventually_async(lambda: lab.paths.calls, "the commit to begin")
        assert await other.pairs() == {} and not session.reader.at_eof()
        lab.paths.released.set()
        assert (await session.read()).get("message-id") == str(number)
        assert lab.paths.lit == {Circuit(1, 1)}


async def test_pair_with_another_egress_moves_in_one_change() -> None:
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.connect((1, 9), (2, 10))
        await session.ok(edit(cross_connects((1, 10), (2, 9)) + cross_connects((3, 11))))
        await session.ok("<commit/>")
        assert lab.circuits == {1: 10, 2: 9, 3: 11}
        assert lab.paths.calls[1:] == [([Circuit(1, 1), Circuit(2, 2)], [Circuit(1, 2), Circuit(2, 1), Circuit(3, 3)])]


async def test_commit_without_changes_moves_nothing() -> None:
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.connect((1, 9))
        await session.connect((1, 9))
        await session.ok("<commit/>")
        assert len(lab.paths.calls) == 1


async def test_wrong_edit_changes_nothing() -> None:
    """The whole edit is tested before anything changes."""
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.ok(edit(cross_connects((1, 9))))
        error = await session.error(edit(cross_connects((2, 10)) + cross_connects((0, 11))))
        assert (error.layer, error.tag) == ("application", "invalid-value")
        assert error.path == "/opsw:cross-connects/opsw:pair/opsw:ingress"
        assert error.message == "The value '0' must be a whole number from 1 to 65535."
        assert await session.pairs("candidate") == {1: 9}


async def test_path_of_error_declares_its_prefixes() -> None:
    """RFC 6241 section 4.3."""
    async with netconf_lab() as lab:
        session = await lab.session()
        session.request(edit(removed(3)))
        text = (await session.read_bytes()).decode()
        assert f'<error-path xmlns:opsw="{OPSW}">/opsw:cross-connects/opsw:pair[opsw:ingress=' in text


@pytest.mark.parametrize("features", [[], VALIDATING])
async def test_egress_port_is_used_once(features: list[AnnouncedFeature]) -> None:
    """A device that announces `validate` tests a candidate at its edit (RFC 6241 section 8.6.4.2), others at commit."""
    async with netconf_lab(add=features) as lab:
        session = await lab.session()
        await session.connect((1, 9))
        wrong = edit(cross_connects((2, 9)))
        if not features:
            await session.ok(wrong)
        error = await session.error(wrong if features else "<commit/>")
        path = "/opsw:cross-connects/opsw:pair[opsw:ingress='2']/opsw:egress"
        assert (error.layer, error.tag, error.path) == ("application", "in-use", path)
        assert lab.circuits == {1: 9} and len(lab.paths.calls) == 1


async def test_pair_needs_egress() -> None:
    """RFC 7950 section 8.3.3: data may be incomplete until they are validated."""
    async with netconf_lab() as lab:
        session = await lab.session()
        pair = f'<cross-connects xmlns="{OPSW}"><pair><ingress>4</ingress></pair></cross-connects>'
        await session.ok(edit(pair))
        error = await session.error("<commit/>")
        assert (error.tag, error.path) == (
            "data-missing",
            "/opsw:cross-connects/opsw:pair[opsw:ingress='4']/opsw:egress",
        )
        await session.ok(edit(f'<cross-connects xmlns="{OPSW}" nc:operation="remove"/>'))
        await session.ok("<commit/>")


async def test_discard_changes_returns_to_running() -> None:
    """RFC 6241 section 8.3.4.2."""
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.connect((1, 9))
        await session.ok(edit(removed(1)))
        await session.ok("<discard-changes/>")
        assert await session.pairs("candidate") == {1: 9}


async def test_candidate_is_shared_among_sessions() -> None:
    """RFC 6241 section 8.3.1."""
    async with netconf_lab() as lab:
        session, other = await lab.session(), await lab.session()
        await session.ok(edit(cross_connects((1, 9))))
        await other.ok(edit(cross_connects((2, 10))))
        await session.ok("<commit/>")
        assert lab.circuits == {1: 9, 2: 10}


async def test_changes_of_other_sessions_wait_for_the_commit() -> None:
    async with netconf_lab() as lab:
        connection = await lab.ssh()
        session, other = await lab.session(), await lab.open(connection)
        await other.hello()
        await session.ok(edit(cross_connects((1, 9))))
        lab.paths.released.clear()
        session.request("<commit/>")
        await eventually_async(lambda: lab.paths.calls, "the commit to begin")
        other.request(edit(cross_connects((2, 10))))
        await arrived(connection)
        lab.paths.released.set()
        await session.read()
        await other.read()
        assert await session.pairs("candidate") == {1: 9, 2: 10}
        assert lab.circuits == {1: 9}


async def test_running_is_not_writable_unless_announced() -> None:
    """RFC 6241 section 8.2."""
    async with netconf_lab() as lab:
        session = await lab.session()
        assert (await session.error(edit(cross_connects((1, 9)), "running"))).tag == "operation-not-supported"
        assert not lab.paths.calls


async def test_writable_running_changes_at_once() -> None:
    """RFC 6241 section 8.2."""
    async with netconf_lab(add=WRITABLE, without=[AnnouncedFeature.CANDIDATE]) as lab:
        session = await lab.session()
        await session.ok(edit(cross_connects((1, 9), (2, 10)), "running"))
        assert lab.circuits == {1: 9, 2: 10}
        error = await session.error(edit(cross_connects((3, 9)), "running"))
        assert error.tag == "in-use" and lab.circuits == {1: 9, 2: 10}
        await session.ok(edit(removed(1), "running"))
        assert lab.circuits == {2: 10}
        assert (await session.error("<commit/>")).tag == "operation-not-supported"
        assert (await session.error(edit("", "candidate"))).tag == "operation-not-supported"


async def test_default_operation_replace_replaces_the_configuration() -> None:
    """RFC 6241 section 7.2."""
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.connect((1, 9), (2, 10))
        await session.ok(edit(cross_connects((3, 9)), options="<default-operation>replace</default-operation>"))
        await session.ok("<commit/>")
        assert lab.circuits == {3: 9}


@pytest.mark.parametrize(
    ("options", "tag"),
    [
        ("<default-operation>delete</default-operation>", "invalid-value"),
        ("<error-option>continue-on-error</error-option>", "operation-not-supported"),
        ("<error-option>rollback-on-error</error-option>", "operation-not-supported"),
        ("<error-option>retry</error-option>", "invalid-value"),
        ("<test-option>set</test-option>", "operation-not-supported"),
        ("<url>file:///etc/hostname</url>", "operation-not-supported"),
        ("<other/>", "unknown-element"),
    ],
)
async def test_options_that_are_not_announced_are_refused(options: str, tag: str) -> None:
    """RFC 6241 sections 7.2, 8.5, 8.6 and 8.8."""
    async with netconf_lab(without=[AnnouncedFeature.ROLLBACK_ON_ERROR]) as lab:
        session = await lab.session()
        assert (await session.error(edit(cross_connects((1, 9)), options=options))).tag == tag
        assert await session.pairs("candidate") == {}


async def test_edit_needs_target_and_config() -> None:
    """RFC 6241 section 7.2."""
    async with netconf_lab() as lab:
        session = await lab.session()
        assert (await session.error("<edit-config/>")).info == {"bad-element": "target"}
        without = "<edit-config><target><candidate/></target></edit-config>"
        assert (await session.error(without)).info == {"bad-element": "config"}


async def test_rollback_on_error_is_accepted() -> None:
    """RFC 6241 section 8.5."""
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.ok(edit(cross_connects((1, 9)), options="<error-option>rollback-on-error</error-option>"))


async def test_validate_finds_faults_of_each_source() -> None:
    """RFC 6241 section 8.6.4.1."""
    twice = cross_connects((1, 9), (2, 9))
    config = f"<config>{twice}</config>"
    async with netconf_lab(add=VALIDATING) as lab:
        session = await lab.session()
        await session.ok(edit(twice, options="<test-option>set</test-option>"))
        assert (await session.error("<validate><source><candidate/></source></validate>")).tag == "in-use"
        assert (await session.error(f"<validate><source>{config}</source></validate>")).tag == "in-use"
        await session.ok("<validate><source><running/></source></validate>")


async def test_test_only_leaves_candidate() -> None:
    """RFC 6241 section 8.6.4.2."""
    async with netconf_lab(add=VALIDATING) as lab:
        session = await lab.session()
        await session.ok(edit(cross_connects((1, 9)), options="<test-option>test-only</test-option>"))
        assert await session.pairs("candidate") == {}


async def test_commit_replaces_circuit_of_another_writer() -> None:
    """RFC 6241 section 8.3.1: `running` becomes the candidate configuration, also where another writer has set more."""
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.ok(edit(cross_connects((1, 9))))
        await lab.switch.another_writer(Circuit(2, 2))
        assert await session.pairs() == {2: 10}
        await session.ok("<commit/>")
        assert lab.circuits == {1: 9}


async def test_circuit_of_another_writer_is_kept_by_later_edit() -> None:
    async with netconf_lab() as lab:
        session = await lab.session()
        await lab.switch.another_writer(Circuit(2, 2))
        await session.connect((1, 9))
        assert lab.circuits == {1: 9, 2: 10}


async def test_locked_circuit_cannot_be_removed() -> None:
    async with netconf_lab() as lab:
        session = await lab.session()
        await lab.switch.another_writer(Circuit(2, 2), locked=True)
        await session.ok(edit(removed(2)))
        error = await session.error("<commit/>")
        assert (error.tag, error.path) == ("access-denied", "/opsw:cross-connects/opsw:pair[opsw:ingress='2']")
        assert lab.circuits == {2: 10}
