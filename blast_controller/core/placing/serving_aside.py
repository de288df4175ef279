"""Parts that need no policy: groups within one rack, and static trees, which cost nobody else any light."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from algorithms.scheduling.job import PartName
from blast_controller.core.model.part_states import PartState
from blast_controller.core.placing.lighting import Lighting
from blast_controller.core.policy.dispatcher import Dispatcher, PartView
from blast_controller.core.policy.layout_planner import LayoutPlanner


class ServingAside:
    """Remembers who may be served so and waits."""

    def __init__(self, layouts: LayoutPlanner, dispatcher: Dispatcher, lighting: Lighting) -> None:
        self._layouts, self._dispatcher, self._lighting = layouts, dispatcher, lighting
        self._aside: dict[PartName, PartView] = {}

    def serve(self, views: Iterable[PartView], limits: Mapping[str, int], now: float) -> list[PartView]:
        """Light whom that is possible for, of these and of those that wait since earlier. Returns whom it has lit."""
        for view in [view for view in views if view.part.state is PartState.PENDING]:
            wanted, part = view.request.current, view.part
            if self._layouts.has_static(wanted, part.receivers) or not self._dispatcher.competes(wanted, part):
                self._aside[view.name] = view
        lit: list[PartView] = []
        for view in list(self._aside.values()):
            if view.part.state is not PartState.PENDING:
                del self._aside[view.name]
            elif not self._layouts.absent_datapaths(view.request.current, view.part.receivers):
                self._serve_alone(view, limits, now)
                lit += [view] if view.part.state is not PartState.PENDING else []
        return lit

    def _serve_alone(self, view: PartView, limits: Mapping[str, int], now: float) -> None:
        request, part = view.request, view.part
        if not self._dispatcher.competes(request.current, part):
            self._lighting.light(request, part, None, now)
        elif limits.get(request.current.tenant, 0) >= 0:
            tree = self._layouts.static_for(request.current, part.receivers)
            if tree is not None:
                self._lighting.light(request, part, tree, now)
