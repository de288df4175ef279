/** Which element is where, made from the fabric's row once. */

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

  /** The row of a unit: of a rack by name, of a splitter or static tree by element. */
  ownerOf(unit) {
    if (this.racks.has(unit)) return { kind: "rack", name: unit };
    const name = unit.slice(unit.indexOf(":") + 1);
    return unit.startsWith("splitter:") ? { kind: "splitter", name } : { kind: "static", name };
  }
}

/** What is true of an element now: {holder, unusable}, both may be missing. */
export function standing(rows, unit, element) {
  return rows.units.get(unit)?.[element] ?? {};
}
