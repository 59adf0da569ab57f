/** A graph of dependencies between operations, and the search for its shortest cycles. */

/**
 * `ww`: the target appended after the source. `wr`: the target read the source's append. `rw`: the source did not read the
 * target's append. `time`: the target started after the source was answered.
 */
export type EdgeKind = "ww" | "wr" | "rw" | "time";

export interface Edge {
  readonly from: number;
  readonly to: number;
  readonly kind: EdgeKind;
  /** The list that connects the two. Absent for `time`. */
  readonly key?: string;
}

/** Searches cycles with fewer kinds of edges first, so that an anomaly gets the strongest name. */
const SEARCHES: readonly (readonly EdgeKind[])[] = [
  ["ww"],
  ["ww", "wr"],
  ["ww", "wr", "rw"],
  ["ww", "wr", "rw", "time"],
];
const CYCLES_MAX = 3;
/** Operations of a component from which a shortest cycle is searched. */
const STARTS_MAX = 200;

export class Graph {
  readonly #edges: Edge[][];
  /** Nodes below this number are operations; others are points in time. */
  readonly #operations: number;

  constructor(operations: number) {
    this.#operations = operations;
    this.#edges = Array.from({ length: operations }, () => []);
  }

  add(edge: Edge): void {
    if (edge.from !== edge.to) this.#edges[edge.from]?.push(edge);
  }

  /** Adds a point in time and returns its number. */
  addPoint(): number {
    return this.#edges.push([]) - 1;
  }

  /** The shortest cycles of some components, with the fewest kinds of edges. Paths over points in time are one edge. */
  cycles(): Edge[][] {
    for (const kinds of SEARCHES) {
      const components = this.#components(kinds).slice(0, CYCLES_MAX);
      if (components.length > 0) return components.map((component) => this.#shortest(component, kinds));
    }
    return [];
  }

  /** Strongly connected components of more than one node, by Tarjan's algorithm without recursion. */
  #components(kinds: readonly EdgeKind[]): number[][] {
    const count = this.#edges.length;
    const index = new Int32Array(count).fill(-1);
    const low = new Int32Array(count);
    const next = new Int32Array(count);
    const isOnStack = new Uint8Array(count);
    const stack: number[] = [];
    const components: number[][] = [];
    let counter = 0;
    for (let root = 0; root < count; root++) {
      if (index[root] !== -1) continue;
      const path = [root];
      while (path.length > 0) {
        const node = path.at(-1) ?? 0;
        if (index[node] === -1) {
          index[node] = low[node] = counter++;
          stack.push(node);
          isOnStack[node] = 1;
        }
        const edge = this.#edges[node]?.[next[node] ?? 0];
        if (edge !== undefined) {
          next[node] = (next[node] ?? 0) + 1;
          if (!kinds.includes(edge.kind)) continue;
          if (index[edge.to] === -1) path.push(edge.to);
          else if (isOnStack[edge.to]) low[node] = Math.min(low[node] ?? 0, index[edge.to] ?? 0);
          continue;
        }
        path.pop();
        const parent = path.at(-1);
        if (parent !== undefined) low[parent] = Math.min(low[parent] ?? 0, low[node] ?? 0);
        if (low[node] !== index[node]) continue;
        const component = stack.splice(stack.lastIndexOf(node));
        for (const member of component) isOnStack[member] = 0;
        if (component.length > 1) components.push(component);
      }
    }
    return components;
  }

  /** The cycle with the fewest operations in a component. */
  #shortest(component: readonly number[], kinds: readonly EdgeKind[]): Edge[] {
    const members = new Set(component);
    const starts = component.filter((node) => node < this.#operations).slice(0, STARTS_MAX);
    let best: Edge[] | null = null;
    for (const start of starts) {
      const cycle = this.#cycleFrom(start, { members, kinds });
      if (best === null || cycle.length < best.length) best = cycle;
    }
    return best ?? [];
  }

  /** Breadth-first search in which only steps to operations count. */
  #cycleFrom(
    start: number,
    { members, kinds }: { readonly members: ReadonlySet<number>; readonly kinds: readonly EdgeKind[] },
  ): Edge[] {
    const reachedBy = new Map<number, Edge>();
    let layer = [start];
    while (layer.length > 0) {
      const following: number[] = [];
      const pending = [...layer];
      for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
        for (const edge of this.#edges[node] ?? []) {
          if (!members.has(edge.to) || !kinds.includes(edge.kind) || reachedBy.has(edge.to)) continue;
          reachedBy.set(edge.to, edge);
          if (edge.to === start) return this.#pathTo(start, reachedBy);
          (edge.to < this.#operations ? following : pending).push(edge.to);
        }
      }
      layer = following;
    }
    return [];
  }

  /** The edges between operations of the cycle that ends in `start`. */
  #pathTo(start: number, reachedBy: ReadonlyMap<number, Edge>): Edge[] {
    const path: Edge[] = [];
    let node = start;
    do {
      const last = reachedBy.get(node);
      let edge = last;
      while (edge !== undefined && edge.from >= this.#operations) edge = reachedBy.get(edge.from);
      if (last === undefined || edge === undefined) break;
      path.unshift({ ...last, from: edge.from });
      node = edge.from;
    } while (node !== start);
    return path;
  }
}
