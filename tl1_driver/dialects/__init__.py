"""What differs between vendors of optical switches: one dialect a file, found here by name."""

from __future__ import annotations

from tl1_driver.dialects.base import Dialect
from tl1_driver.dialects.glimmerglass import Glimmerglass

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (Glimmerglass(),)}
"""Every dialect this package speaks, by the name used in configurations."""

__all__ = ["DIALECTS", "Dialect", "Glimmerglass"]
