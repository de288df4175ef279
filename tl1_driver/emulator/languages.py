"""Every language the emulated switch speaks, by the name of the dialect that understands it."""

from __future__ import annotations

from tl1_driver.emulator.calient import CalientLanguage, PromptingCalientLanguage
from tl1_driver.emulator.glimmerglass import GlimmerglassLanguage
from tl1_driver.emulator.language import Language
from tl1_driver.emulator.polatis import OutputFirstPolatisLanguage, PolatisLanguage

LANGUAGES: dict[str, type[Language]] = {
    "glimmerglass": GlimmerglassLanguage,
    "calient": CalientLanguage,
    "calient-prompt": PromptingCalientLanguage,
    "polatis": PolatisLanguage,
    "polatis-output-first": OutputFirstPolatisLanguage,
}
