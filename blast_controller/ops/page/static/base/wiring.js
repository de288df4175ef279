/** Index of the fabric's elements by name, built once from the fabric's row. */

export class Wiring {
  constructor(fabric) {
    this.racks = new Map(fabric.racks.map((rack) => [rack.name, rack]));
    this.splitters = new Map(fabric.splitters.map((splitter) => [splitter.name, splitter]));
    this.switches = fabric.opticalSwitches;
    this.statics = fabric.staticTrees;
    this.racksOfDevice = new Map();
    for (const rack of fabric.racks) {
      this.racksOfDevice.set(rack.device, [...(this.racksOfDevice.get(rack.device) ?? []), rack.name]);
    }
  }

  /** Return the row of a unit: a rack by name, a splitter or static tree by element. */
  ownerOf(unit) {
    if (this.racks.has(unit)) return { kind: "rack", name: unit };
    const name = unit.slice(unit.indexOf(":") + 1);
    return unit.startsWith("splitter:") ? { kind: "splitter", name } : { kind: "static", name };
  }
}

/** Return the state of an element: {holder, unusable}, both optional. */
export function standing(rows, unit, element) {
  return rows.units.get(unit)?.[element] ?? {};
}
