"""Reload a changed configuration file: keys applied at once, keys that need a restart, rejected files."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from blast_controller.configuration.access import AccessSection
from blast_controller.configuration.config import Config, ConfigError
from blast_controller.configuration.reading import parse
from blast_controller.configuration.reload import AT_ONCE, REASONS, Reloader, ReloadResult, plan_reload
from tests.blast_controller.configuration.test_config import changed

EXAMPLE = changed()
LEASE = ("lease_factor = 2.0", "lease_factor = 3.0")
LEVEL = ('level = "info"', 'level = "debug"')
RACK = ('ip = "10.0.2.1"', 'ip = "10.0.2.9"')
TABLE = ("table = 0 ", "table = 3 ")


def keys(model: type[BaseModel], above: str = "") -> set[str]:
    found = set()
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found |= keys(kind, f"{above}{name}.")
        else:
            found.add(f"{above}{name}")
    return found


def test_reload_tables_contain_existing_keys_only():
    known = keys(Config) | {f"access.{name}" for name in AccessSection.model_fields}
    assert known >= AT_ONCE
    assert set(REASONS) <= known | {key.partition(".")[0] for key in known}


def test_reload_refuses_keys_that_active_light_trees_use():
    plan = plan_reload(parse(EXAMPLE), parse(changed(LEASE, RACK, TABLE, ("127.0.0.1:9090", "127.0.0.1:9191"))))
    assert plan.applied == ("controller.lease_factor",)
    assert plan.refused == (
        "controller.thrift: the listener already uses the address",
        "openflow.table: rules on the ToRs depend on it",
        "rack: it describes the fabric that active light trees use",
    )
    assert plan.config == parse(changed(LEASE)), "a refused key keeps its running value"


def test_reload_either_applies_or_refuses_each_key():
    """Change each key on its own."""
    old = with_access().model_copy(update={"openflow": parse(changed(OPENFLOW_TLS)).openflow})
    for key in keys(Config) | {f"access.{name}" for name in AccessSection.model_fields}:
        table, _, name = key.partition(".")
        if name:
            new = old.model_copy(update={table: getattr(old, table).model_copy(update={name: object()})})
        else:
            new = old.model_copy(update={table: object()})
        plan = plan_reload(old, new)
        assert (plan.applied == (key,)) == (key in AT_ONCE)
        assert len(plan.applied) + len(plan.refused) == 1
        assert (plan.config == new) == (key in AT_ONCE)


# ---------------------------------------------------------------------- access

ACCESS = """
[access]
certificate = "/etc/blast/server.pem"
private_key = "/etc/blast/server.key"
token_file = "/etc/blast/tokens"
client_ca = "/etc/blast/ca.pem"
client = [{ common_name = "spark", tenant = "physics", role = "user" }]
[[tenant]]
name = "physics"
"""
OPENFLOW_TLS = (
    "[openflow]\n",
    '[openflow]\ncertificate = "/of.pem"\nprivate_key = "/of.key"\nswitch_ca = "/of-ca.pem"\n',
)


def with_access(*replacements: tuple[str, str]) -> Config:
    text = ACCESS
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return parse(EXAMPLE + text)


def test_reload_applies_tokens_certificates_and_tenants():
    new = with_access(
        ("/tokens", "/tokens2"),
        ("server.pem", "new.pem"),
        ("physics", "biology"),
        ('name = "b', 'max_pending = 3\nname = "b'),
    )
    plan = plan_reload(with_access(), new)
    assert plan.applied == ("access.certificate", "access.token_file", "access.client", "tenant")
    assert (plan.refused, plan.config) == ((), new)


def test_reload_refuses_to_enable_or_disable_access_and_tls():
    none = parse(EXAMPLE)
    assert plan_reload(none, with_access()).refused == (
        "access: it is read only at the start",
        "tenant: it can change only together with access",
    )
    tokens_only = parse(EXAMPLE + '[access]\ntoken_file = "/etc/blast/tokens"\n')
    plan = plan_reload(tokens_only, with_access())
    assert (plan.applied, plan.config) == ((), tokens_only)
    assert {key.partition(":")[0] for key in plan.refused} >= {"access.certificate", "access.client", "tenant"}


def test_reload_applies_openflow_certificate_but_not_switch_ca():
    old, other = parse(changed(OPENFLOW_TLS)), (OPENFLOW_TLS[0], OPENFLOW_TLS[1].replace("/of", "/new"))
    plan = plan_reload(old, parse(changed(other)))
    assert plan.applied == ("openflow.certificate", "openflow.private_key")
    assert plan.refused == ("openflow.switch_ca: it is read only at the start",)
    plan = plan_reload(parse(EXAMPLE), old)
    assert plan.applied == () and len(plan.refused) == 3
    assert plan_reload(old, parse(EXAMPLE)).config == old


def test_refused_access_key_refuses_the_other_access_keys():
    plan = plan_reload(with_access(), with_access(("ca.pem", "ca2.pem"), ("/tokens", "/t2")))
    assert plan.applied == ()
    assert plan.refused == (
        "access.client_ca: it is read only at the start",
        "access.token_file: it can change only together with access.client_ca",
    )


# ---------------------------------------------------------------------- the file


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "blast.toml"
    path.write_text(EXAMPLE)
    return path


@pytest.fixture
def applied():
    return []


@pytest.fixture
def reloader(file, applied):
    return Reloader(file, applied.append)


def test_unchanged_file_is_applied_again_but_not_counted(reloader, applied):
    assert reloader.reload().result is ReloadResult.UNCHANGED
    assert applied == [reloader.running] and not reloader.counts


def test_reload_refuses_configuration_with_unreadable_token_file(file):
    def apply(config):
        raise ConfigError("/etc/blast/tokens cannot be read: No such file or directory.")

    reloader = Reloader(file, apply)
    for text in (EXAMPLE, changed(LEASE)):
        file.write_text(text)
        report = reloader.reload()
        assert report.result is ReloadResult.REFUSED and "tokens cannot be read" in report.sentence
        assert reloader.running == parse(EXAMPLE)


def test_reload_applies_changed_key(reloader, file, applied):
    before = reloader.digest
    file.write_text(changed(LEASE))
    report = reloader.reload()
    assert (report.result, report.applied) == (ReloadResult.WARM, ("controller.lease_factor",))
    assert [config.controller.lease_factor for config in applied] == [3.0]
    assert reloader.running == parse(changed(LEASE)) and reloader.digest != before


def test_reload_applies_the_keys_that_need_no_restart(reloader, file, applied):
    file.write_text(changed(LEASE, RACK))
    report = reloader.reload()
    assert report.result is ReloadResult.COLD
    assert "applied: controller.lease_factor; requires a restart: rack: it describes" in report.sentence
    assert [config.rack for config in applied] == [parse(EXAMPLE).rack]
    file.write_text(EXAMPLE)
    assert reloader.reload().result is ReloadResult.WARM and reloader.running == parse(EXAMPLE)


@pytest.mark.parametrize(
    "bad", ["rack =", "[controller]\nthrif = 1", None, EXAMPLE.replace("input = 1,", "input = 999,")]
)
def test_reload_refuses_invalid_file_and_reports_it(reloader, file, applied, bad):
    file.unlink() if bad is None else file.write_text(bad)
    report = reloader.reload()
    assert report.result is ReloadResult.REFUSED
    assert report.sentence.startswith(f"the new configuration is not applied, the previous one stays in force: {file}")
    assert reloader.running == parse(EXAMPLE) and applied == []
    file.write_text(EXAMPLE)
    assert reloader.reload().result is ReloadResult.UNCHANGED, "the file equals the running configuration again"


def test_reloads_are_counted_by_result(reloader, file):
    for text in (changed(LEASE), "nonsense", changed(LEASE, RACK), changed(LEASE, RACK), changed(RACK)):
        file.write_text(text)
        reloader.reload()
    assert reloader.counts == {ReloadResult.WARM: 1, ReloadResult.REFUSED: 1, ReloadResult.COLD: 2}


def test_command_line_options_override_reloaded_keys(file, applied):
    def settled(config):
        return config.model_copy(update={"log": config.log.model_copy(update={"level": "error"})})

    reloader = Reloader(file, applied.append, settled)
    file.write_text(changed(LEVEL, LEASE))
    assert reloader.reload().applied == ("controller.lease_factor",)
    assert reloader.running.log.level == "error"


def test_reloader_raises_for_a_missing_file_at_start(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        Reloader(tmp_path / "none.toml", lambda config: None)
