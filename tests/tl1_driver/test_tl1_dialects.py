"""The commands and answers of each dialect, without a switch: procedures driven by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optical_switch.errors import InvalidDriverSettingError
from optical_switch.model import Circuit, Port
from tests.support.controller.tl1 import drive
from tl1_driver.dialects import DIALECTS, Calient, Dialect, Glimmerglass, Polatis, configured
from tl1_driver.protocol.circuits import ListedCircuit
from tl1_driver.protocol.codec import encode_command
from tl1_driver.protocol.errors import (
    CommandDeniedError,
    CommandWithheldError,
    InvalidCommandError,
    MalformedResponseError,
    PartialCompletionError,
    SwitchTimeoutError,
)
from tl1_driver.protocol.messages import Autonomous, Severity, Tl1Command
from tl1_driver.protocol.procedure import Pause
from tl1_driver.protocol.session import Wire

GLIMMERGLASS = Glimmerglass()
CALIENT = Calient()
POLATIS = Polatis(inputs=8, outputs=8)
SIZED: dict[str, Dialect] = DIALECTS | {
    name: replace(dialect, inputs=8, outputs=8, tid="ocs 7")
    for name, dialect in DIALECTS.items()
    if isinstance(dialect, Polatis)
}
PAIR = [Circuit(1, 5), Circuit(2, 6)]
REFUSED = CommandDeniedError("SROF", "mirror failed")


def wires(steps: list[Tl1Command | Pause]) -> list[str]:
    return [encode_command(step, "ctag", limit=8192).decode() for step in steps if isinstance(step, Tl1Command)]


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_names_itself_and_writes_its_commands(name: str) -> None:
    dialect = SIZED[name]
    assert dialect.name == name
    assert 0 < dialect.port < 65536
    commands = [dialect.login("user", "p;w"), dialect.logout("user"), dialect.sign_of_life()]
    assert all(wire.endswith(";") for wire in wires(list(commands)))
    for number in (1, 8):
        assert Port("in", number) in dialect.ports_named(dialect.input_name(number))
        assert Port("out", number) in dialect.ports_named(dialect.output_name(number))
    assert dialect.ports_named("CHASSIS") == dialect.ports_named("") == dialect.ports_named("99999") == []


def test_glimmerglass_commands() -> None:
    _, steps = drive(GLIMMERGLASS.connect(PAIR), [()])
    assert wires(steps) == ["ent-crs-fiber::10001&10002,20005&20006:ctag:::opmode=sync;"]
    _, steps = drive(GLIMMERGLASS.disconnect(PAIR), [()])
    assert wires(steps) == ["dlt-crs-fiber::10001&10002,20005&20006:ctag;"]
    _, steps = drive(GLIMMERGLASS.circuits(), [()])
    assert wires(steps) == ["rtrv-crs-fiber::all:ctag;"]
    assert wires([GLIMMERGLASS.login("admin", "a b")]) == ['ACT-USER::admin:ctag::"a b";']


def test_bulk_is_split_only_when_too_long_and_keeps_its_order() -> None:
    circuits = [Circuit(n, 320 - n) for n in range(1, 320)]
    assert len(drive(GLIMMERGLASS.connect(circuits), [()])[1]) == 1
    narrow = replace(GLIMMERGLASS, wire=Wire(send_limit=500))
    commands = wires(drive(narrow.connect(circuits), [()] * 100)[1])
    assert len(commands) > 1
    names = [wire.split(":")[2].split(",")[0] for wire in commands]
    assert "&".join(names) == "&".join(str(10000 + c.input) for c in circuits)


@pytest.mark.parametrize("name", DIALECTS)
def test_one_circuit_that_does_not_fit_is_an_error_before_anything_is_sent(name: str) -> None:
    narrow = replace(SIZED[name], wire=Wire(send_limit=10))
    if isinstance(narrow, Glimmerglass | Calient):
        with pytest.raises(InvalidCommandError):
            next(narrow.connect(PAIR))
    else:
        with pytest.raises(InvalidCommandError):
            next(narrow.disconnect(PAIR))


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("number", [0, -1, 10000])
def test_port_numbers_outside_the_naming_scheme(name: str, number: int) -> None:
    for change in (SIZED[name].connect, SIZED[name].disconnect):
        for circuit in (Circuit(number, 1), Circuit(1, number)):
            with pytest.raises(InvalidCommandError):
                next(change([circuit]))


def test_glimmerglass_rows_are_read_by_name_in_any_order_and_case() -> None:
    rows = [
        '"GGN:OUTPWR=-14.277,INPWR=-12.618,connstate=STEADY,OPORTID=20058,IPORTNAME=a, b;c,IPORTID=10042"',
        '"GGN:IPORTID=10001,OPORTID=0,CONNSTATE=single"',
        '"GGN:IPORTID=0,OPORTID=20003,CONNSTATE=single"',
        '"GGN:IPORTID=10004,OPORTID=20004,CONNSTATE=single"',
        "/* a remark */",
    ]
    assert drive(GLIMMERGLASS.circuits(), [rows])[0] == [ListedCircuit(42, 58, "steady", -12.618, -14.277)]


def test_dark_connection_waits_for_light() -> None:
    base = "IPORTID=10001,OPORTID=20001,CONNSTATE=fault,CONNCAUSE=initial_connection_timer_expired"
    rows = [f"{base},INPWR=-48.549", f"{base},INPWR=-3.1", f"{base},INPWR=NONE", f"{base},INPWR=inf"]
    dark, lit, unmeasured, endless = drive(GLIMMERGLASS.circuits(), [rows])[0]
    assert (dark.waits_for_light, lit.waits_for_light, unmeasured.waits_for_light) == (True, False, False)
    assert unmeasured.input_power is endless.input_power is None


def test_locked_connection() -> None:
    row = "IPORTID=10001,OPORTID=20001,CONNSTATE=steady,CONNLOCK=1,CONNLOCKUSER=noc"
    [state] = drive(GLIMMERGLASS.circuits(), [[row]])[0]
    assert (state.locked, state.owner) == (True, "noc")
    assert state.circuit == Circuit(1, 1)


@pytest.mark.parametrize(
    "row",
    [
        '"no pairs here"',
        "CONNSTATE=steady",
        "IPORTID=10001,CONNSTATE=steady",
        "IPORTID=north,OPORTID=20001",
        "IPORTID=20001,OPORTID=20001",
        "IPORTID=10001,OPORTID=10001",
        "IPORTID=10001,OPORTID=" + "9" * 5000,
    ],
)
def test_glimmerglass_malformed_rows_raise_error(row: str) -> None:
    for procedure in (GLIMMERGLASS.circuits(), GLIMMERGLASS.powers()):
        with pytest.raises(MalformedResponseError):
            drive(procedure, [[row]])


def test_calient_enters_and_activates_one() -> None:
    _, steps = drive(CALIENT.connect([Circuit(1, 65)]), [(), ()])
    assert wires(steps) == ["ENT-CRS::1.1.1,2.1.1:ctag::BLAST,1WAY;", "ACT-CRS::1.1.1,2.1.1:ctag::1.1.1>2.1.1,BLAST;"]
    _, steps = drive(CALIENT.disconnect([Circuit(1, 65)]), [(), ()])
    assert wires(steps) == ["CANC-CRS:::ctag::1.1.1>2.1.1;", "DLT-CRS:::ctag::1.1.1>2.1.1;"]


def test_calient_deletes_connection_that_it_cannot_activate() -> None:
    with pytest.raises(CommandDeniedError) as caught:
        drive(CALIENT.connect([Circuit(1, 2)]), [(), REFUSED, ()])
    assert caught.value is REFUSED
    with pytest.raises(PartialCompletionError, match="stays entered") as stuck:
        drive(CALIENT.connect([Circuit(1, 2)]), [(), REFUSED, CommandDeniedError("SLOC")])
    assert stuck.value.code == "SROF"


def test_calient_disconnects_connection_that_is_only_entered() -> None:
    _, steps = drive(CALIENT.disconnect([Circuit(1, 2)]), [CommandDeniedError("SDNC", "not active"), ()])
    assert wires(steps)[1].startswith("DLT-CRS")
    with pytest.raises(CommandDeniedError, match="not active"):
        drive(
            CALIENT.disconnect([Circuit(1, 2)]),
            [CommandDeniedError("SDNC", "not active"), CommandDeniedError("SDNC", "none")],
        )


def test_calient_polls_a_bulk_until_it_is_done() -> None:
    status = ['"STATUS=InProgress,PROGRESS=40%"'], ["Completed"]
    _, steps = drive(CALIENT.connect(PAIR), [(), (), (), *status])
    assert wires(steps) == [
        "RTRV-CRS:::ctag::ALL;",
        "RTRV-PORT-SUM::0:ctag;",
        "ent-crs-bulk::1.1.1>1.1.5&1.1.2>1.1.6:ctag;",
        "RTRV-SAVERECALL:::ctag;",
        "RTRV-SAVERECALL:::ctag;",
    ]
    assert steps[4] == Pause(CALIENT.poll_seconds)
    _, steps = drive(CALIENT.disconnect(PAIR), [(), ["Completed"]])
    assert wires(steps)[0] == "dlt-crs-bulk::1.1.1>1.1.5&1.1.2>1.1.6:ctag;"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (["Failed"], PartialCompletionError),
        (["Completed, 2 connections failed"], PartialCompletionError),
        (["?"], MalformedResponseError),
    ],
)
def test_calient_bulk_that_does_not_complete(status: list[str], error: type[Exception]) -> None:
    with pytest.raises(error):
        drive(CALIENT.disconnect(PAIR), [(), status])


def test_calient_bulk_without_end_raises_timeout() -> None:
    with pytest.raises(SwitchTimeoutError):
        drive(replace(CALIENT, polls=3).disconnect(PAIR), [(), *[["in progress"]] * 3])


@pytest.mark.parametrize(
    ("other", "pair"),
    [
        ("1.1.1>1.1.7", PAIR),
        ("1.1.7>1.1.6", PAIR),
        ("1.1.7-1.1.2", PAIR),
        # Input 5 and output 5 are different fibers; only one direction of it conflicts.
        ("1.1.5-1.1.8", [Circuit(1, 5), Circuit(2, 6)]),
    ],
)
def test_calient_sends_no_bulk_that_would_replace_another_connection(other: str, pair: list[Circuit]) -> None:
    source, target = other.replace("-", ">").split(">")
    row = f"{other}:SRCPORT={source},DSTPORT={target},GRPNAME=SYSTEM,CONNNAME={other}"
    row += ",CONNTYPE=2WAY" if "-" in other else ""
    with pytest.raises(CommandWithheldError, match="in use"):
        drive(CALIENT.connect(pair), [[row], ()])


@pytest.mark.parametrize("twice", [[Circuit(1, 2), Circuit(1, 3)], [Circuit(1, 2), Circuit(3, 2)]])
def test_calient_bulk_with_one_port_twice(twice: list[Circuit]) -> None:
    with pytest.raises(CommandWithheldError):
        drive(CALIENT.connect(twice), [(), ()])


def test_calient_port_names_of_older_frames() -> None:
    older = configured("calient", {"names": ["10.13a.1", "10.13A.2"], "group": "lab"})
    _, steps = drive(older.connect([Circuit(1, 2)]), [(), ()])
    assert wires(steps)[0] == "ENT-CRS::10.13a.1,10.13A.2:ctag::lab,1WAY;"
    row = "10.13A.1>10.13a.2:SRCPORT=10.13A.1,DSTPORT=10.13a.2,GRPNAME=LAB,CONNTYPE=1WAY"
    assert drive(older.circuits(), [[row], ()])[0] == [ListedCircuit(1, 2, "steady", owner="LAB")]
    with pytest.raises(InvalidCommandError):
        older.input_name(3)


@pytest.mark.parametrize(
    ("listed", "ports"),
    [
        (["garbage"], []),
        (["1.1.1>9.9.9:GRPNAME=x"], []),
        (["SRCPORT=1.1.1"], []),
        ([], ["no name"]),
        ([], ["1 1:INPWR=1"]),
    ],
)
def test_calient_malformed_rows_raise_error(listed: list[str], ports: list[str]) -> None:
    with pytest.raises(MalformedResponseError):
        drive(CALIENT.circuits(), [listed, ports])


@pytest.mark.parametrize(("direction", "side"), [("RCV", "in"), ("TRMT", "out"), ("", "in")])
def test_calient_alarms_name_the_fiber(direction: str, side: str) -> None:
    row = f'"1.1.3,PORT:MJ,LOS,SA,11-20,10-00-00,,{direction}"'
    [alarm] = CALIENT.alarms(Autonomous("sw1", Severity.MAJOR, "1", "REPT ALM PORT", (row, '"no colon"', '"x:y"')))
    assert alarm.port == Port(side, 3)


def test_polatis_commands() -> None:
    _, steps = drive(POLATIS.connect(PAIR), [(), ()])
    assert wires(steps) == ["ENT-PATCH::1,13:ctag;", "ENT-PATCH::2,14:ctag;"]
    _, steps = drive(POLATIS.disconnect(PAIR), [['"13,1"', '"2,14"'], ()])
    assert wires(steps) == ["RTRV-PATCH:::ctag;", "DLT-PATCH::1&2:ctag;"]
    _, steps = drive(POLATIS.powers(), [()])
    assert wires(steps) == ["RTRV-PORT-POWER::1&&16:ctag;"]
    _, steps = drive(Polatis().introduce(), [['"SYSTEM:SIZE=8x8"']])
    assert wires(steps) == ["RTRV-EQPT::SYSTEM:ctag:::PARAMETER=SIZE;"]


def test_polatis_order_and_name_are_settings() -> None:
    other, steps = drive(DIALECTS["polatis-output-first"].introduce(), [['"SYSTEM:SIZE=8X8"']])
    assert isinstance(other, Polatis)
    _, steps = drive(other.connect(PAIR[:1]), [()])
    assert wires(steps) == ['ENT-PATCH:"sw1":13,1:ctag;']
    assert wires(drive(replace(other, tid="rack 7; ocs").powers(), [()])[1]) == [
        'RTRV-PORT-POWER:"rack 7; ocs":1&&16:ctag;'
    ]


def test_polatis_does_not_query_configured_size() -> None:
    assert drive(POLATIS.introduce(), []) == (POLATIS, [])


@pytest.mark.parametrize("size", [[], ["SYSTEM:SIZE=0x8"], ["SYSTEM:SIZE=8"], ["SYSTEM:SIZE=999999x1"]])
def test_polatis_malformed_size_raises_error(size: list[str]) -> None:
    with pytest.raises(MalformedResponseError):
        drive(Polatis().introduce(), [size])


def test_polatis_removes_nothing_if_another_patch_would_go() -> None:
    with pytest.raises(CommandWithheldError, match="2 to 6"):
        drive(POLATIS.disconnect(PAIR), [['"1,13"', '"2,15"']])


@pytest.mark.parametrize("row", ["1", "1,2", "9,10", "1,17", "0,9", "a,b", "1,9,3"])
def test_polatis_malformed_rows_raise_error(row: str) -> None:
    with pytest.raises(MalformedResponseError):
        drive(POLATIS.circuits(), [[row]])


def test_polatis_powers_skip_invalid_readings() -> None:
    rows = ['"1:-2.5"', '"2:---"', '"99:-1"', '"x:-1"', '"9:-3.5,dBm"', '"3:nan"']
    assert drive(POLATIS.powers(), [rows])[0] == {Port("in", 1): -2.5, Port("out", 1): -3.5}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("siemens", {}),
        ("calient", {"color": "red"}),
        ("calient", {"group": 1}),
        ("calient", {"names": [1]}),
        ("calient", {"polls": True}),
        ("calient", {"poll_seconds": "1"}),
        ("polatis", {"name": "x"}),
        ("polatis", {"output_first": 1}),
    ],
)
def test_unknown_or_invalid_settings_are_rejected(name: str, settings: dict[str, object]) -> None:
    with pytest.raises(InvalidDriverSettingError):
        configured(name, settings)


def test_settings() -> None:
    assert configured("polatis", {"output_first": True, "keepalive": 5}) == Polatis(output_first=True, keepalive=5)
