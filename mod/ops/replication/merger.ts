/**
 * Merges adjacent segments, so that a week of segments by the second is not a million objects. Pieces are removed after the
 * merged segment is written, and readers prefer the longest segment, so all rows are readable at any time.
 */
import { LRUCache } from "lru-cache";
import type { ObjectStore } from "../../kit/locations/object_store.ts";
import type { JournalRow } from "../../engine/mod.ts";
import { replicationLimits } from "../limits.ts";
import { generationsOf, type Segment } from "./history.ts";
import { GENERATIONS, parseName, segmentFile } from "./names.ts";
import { packSegment, readSegment } from "./segment.ts";
import { readTarget, type TargetObject } from "./replica_target.ts";

/** Condition for a merge: see `replicationLimits.merges`. */
export interface MergeRule {
  readonly spanMs: number;
  readonly pieces: number;
  readonly bytes: number;
}

export interface MergerOptions {
  readonly target: ObjectStore;
  readonly objects: Map<string, TargetObject>;
  /** By level. */
  readonly rules?: readonly MergeRule[];
}

export class Merger {
  readonly #target: ObjectStore;
  /** Objects at the target, by name; updated with each change. */
  readonly #objects: Map<string, TargetObject>;
  /** Recently shipped segments by name. */
  readonly #cache = new LRUCache<string, Uint8Array<ArrayBuffer>>({
    maxSize: replicationLimits.mergeCacheBytes,
    sizeCalculation: ({ length }) => Math.max(1, length),
  });
  /** By level: segments of the generation, in order, that wait for the next merge. */
  #waiting: Segment[][] = [];
  #generation: string | null = null;
  /** Pieces contained in a larger segment, which will be removed. */
  #merged: string[] = [];
  readonly #rules: readonly MergeRule[];

  constructor({ target, objects, rules = replicationLimits.merges }: MergerOptions) {
    this.#target = target;
    this.#objects = objects;
    this.#rules = rules;
  }

  follow(generation: string): void {
    this.#generation = generation;
    this.#waiting = this.#rules.map(() => []);
    this.#cache.clear();
    const own = [...this.#objects.values()].filter(({ name }) =>
      name.startsWith(`${GENERATIONS}${generation}/`)
    );
    let reached = 0;
    // Of two segments with the same start, the longer comes first.
    for (const segment of generationsOf(own)[0]?.segments ?? []) {
      if (segment.toSeq <= reached) this.#merged.push(segment.file.name);
      else this.#waiting[segment.level]?.push(segment);
      reached = Math.max(reached, segment.toSeq);
    }
  }

  /** Call when a segment was uploaded. */
  added(name: string, bytes: Uint8Array<ArrayBuffer>): void {
    const parsed = parseName(name);
    if (parsed?.kind !== "segment" || parsed.generation !== this.#generation) return;
    this.#waiting[0]?.push({ ...parsed, file: { name, size: bytes.length } });
    this.#cache.set(name, bytes);
  }

  /** Merges all due segments. Returns the number of segments made. */
  async merge(): Promise<number> {
    let made = 0;
    await this.#removeMerged();
    // Expired objects were removed from the target.
    this.#waiting = this.#waiting.map((waiting) =>
      waiting.filter(({ file }) => this.#objects.has(file.name))
    );
    for (const [level, rule] of this.#rules.entries()) {
      for (;;) {
        const waiting = this.#waiting[level] ?? [];
        const pieces = piecesOf(waiting, rule);
        if (pieces === null) break;
        const generation = this.#generation;
        if (pieces.length > 1) {
          const whole = await this.#make(pieces, level + 1);
          made++;
          // Another generation may have started in the meantime.
          if (generation === this.#generation) this.#waiting[level + 1]?.push(whole);
        } else this.#waiting[level + 1]?.push(...pieces);
        if (generation !== this.#generation) return made;
        this.#waiting[level] = waiting.slice(pieces.length);
        await this.#removeMerged();
      }
    }
    return made;
  }

  async #removeMerged(): Promise<void> {
    for (let name = this.#merged[0]; name !== undefined; name = this.#merged[0]) {
      await this.#target.delete(name);
      this.#objects.delete(name);
      this.#cache.delete(name);
      this.#merged.shift();
    }
  }

  async #make(pieces: readonly Segment[], level: number): Promise<Segment> {
    const [first] = pieces;
    if (first === undefined) throw new RangeError("There is nothing to merge");
    const { generation, prev } = first;
    const { name, bytes } = await packSegment(this.#rows(pieces), { generation, prev, level });
    const file = segmentFile(name);
    await this.#target.put(file, bytes);
    this.#objects.set(file, { name: file, size: bytes.length });
    for (const piece of pieces) this.#merged.push(piece.file.name);
    return { ...name, kind: "segment", file: { name: file, size: bytes.length } };
  }

  async *#rows(pieces: readonly Segment[]): AsyncGenerator<JournalRow> {
    for (const piece of pieces) {
      const bytes = this.#cache.get(piece.file.name) ?? await readTarget(this.#target, piece.file.name);
      if (bytes === null) throw new Error(`The segment "${piece.file.name}" is missing at the target`);
      yield* readSegment(bytes, piece);
    }
  }
}

/** Returns the first segments to merge; `null` when it is too early, or they do not follow one another. */
function piecesOf(
  waiting: readonly Segment[],
  rule: MergeRule,
): readonly Segment[] | null {
  const [first] = waiting;
  if (first === undefined) return null;
  let bytes = first.file.size;
  for (let count = 1; count <= waiting.length; count++) {
    const [last, next] = [waiting[count - 1], waiting[count]];
    if (last === undefined) return null;
    const full = count >= rule.pieces || bytes >= rule.bytes || last.maxAt - first.minAt >= rule.spanMs;
    if (full) return waiting.slice(0, count);
    if (next === undefined) return null;
    // After a gap another run starts.
    if (next.fromSeq !== last.toSeq + 1 || next.prev !== last.sum) return waiting.slice(0, count);
    bytes += next.file.size;
  }
  return null;
}
