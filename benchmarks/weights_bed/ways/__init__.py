"""The ways that are compared, one file each."""

from __future__ import annotations

from weights_bed.ways.blast import ByLight, ByPipeline
from weights_bed.ways.gloo import Gloo, GlooByLayers
from weights_bed.ways.ray import Ray
from weights_bed.ways.way import Way

WAYS: dict[str, type[Way]] = {way.name: way for way in (ByLight, ByPipeline, Gloo, GlooByLayers, Ray)}
"""By name, in the order of tables."""
