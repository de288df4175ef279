"""The live page's files contain all that they refer to, and accept no markup; its picture has the whole layout."""

from __future__ import annotations

import json
import posixpath
import re

import pytest

from blast_base.drawing.layout import lay_out
from blast_controller.ops.page.files import CONTENT_SECURITY_POLICY, PAGE, page_files
from blast_controller.ops.page.picture import picture
from blast_controller.rpc.fabric_reading import FabricReading
from tests.support.controller.core import make_fabric, ready_world

TAKES_MARKUP = (
    r"innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|document\.write|DOMParser|\beval\(|srcdoc"
)


def text(name: str) -> str:
    return page_files()[name].body.decode()


def of_kind(suffix: str) -> list[str]:
    return [name for name in page_files() if name.endswith(suffix)]


def test_every_file_that_the_page_refers_to_is_served():
    referenced = re.findall(r'(?:src|href)="static/([^"]+)"', text(PAGE))
    assert "main.js" in referenced
    assert not [name for name in referenced if name not in page_files()]
    reached, left = set[str](), ["main.js"]
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            imports = re.findall(r'from "(\.[^"]+)"', text(name))
            left += [posixpath.normpath(posixpath.join(posixpath.dirname(name), target)) for target in imports]
    assert reached == set(of_kind(".js"))


def test_page_refers_to_no_other_host():
    for name in [*of_kind(".css"), *of_kind(".html")]:
        assert "//" not in text(name).replace("/*", ""), name
    for name in of_kind(".js"):
        assert not re.search(r"(?:fetch|EventSource|import)\(\s*[\"'`]\w+:", text(name)), name


@pytest.mark.parametrize("name", [name for name in of_kind(".js") if not name.startswith("vendor/")])
def test_scripts_accept_no_markup(name: str):
    assert not re.search(TAKES_MARKUP, text(name))


def test_page_has_no_inline_scripts_or_styles():
    markup = text(PAGE)
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:", markup)
    assert "unsafe" not in CONTENT_SECURITY_POLICY


def test_page_has_every_id_that_a_script_uses():
    ids = set(re.findall(r'\bid="([^"]+)"', text(PAGE)))
    referenced = {found for name in of_kind(".js") for found in re.findall(r'byId\("([^"]+)"\)', text(name))}
    assert referenced and referenced <= ids


def test_etag_depends_on_the_content():
    tags = {found.tag for found in page_files().values()}
    assert len(tags) == len({found.body for found in page_files().values()})
    assert all(re.fullmatch(r'"[0-9a-f]{32}"', tag) for tag in tags)
    assert page_files()["main.js"].content_type.startswith("text/javascript")


@pytest.mark.parametrize(("racks", "switches"), [(0, 1), (6, 2), (40, 1)])
def test_picture_contains_the_whole_layout(racks: int, switches: int):
    world = ready_world(make_fabric(racks, [4, 8], switches=switches))
    layout = lay_out(FabricReading().read(world.core.snapshot, None))
    drawn = json.loads(json.dumps(picture(layout)))
    assert [rack["name"] for rack in drawn["racks"]] == list(world.fabric.racks)
    assert {splitter["name"] for splitter in drawn["splitters"]} == set(world.fabric.splitters)
    for name, fibers in (("intoSwitch", layout.into_switch), ("outOfSwitch", layout.out_of_switch)):
        found = {(one["opticalSwitch"], one["port"]): one for one in drawn[name]}
        assert found.keys() == fibers.keys()
        for key, fiber in fibers.items():
            assert found[key]["near"] == [fiber.near.x, fiber.near.y] and found[key]["far"] == [
                fiber.far.x,
                fiber.far.y,
            ]
            assert found[key].get("bends", []) == [[bend.x, bend.y] for bend in fiber.bends]
    assert any("bends" in one for one in drawn["intoSwitch"]) == (racks > 16)
