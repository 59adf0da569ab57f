/**
 * Ships the journal of one database to one target: segments, snapshots, merges and retention. It runs in a
 * separate process, reads the database beside the writer, and confirms shipped rows, so that the writer can remove them.
 */
import { Buffer } from "node:buffer";
import { LocationError, type ObjectStore } from "../../kit/locations/object_store.ts";
import { firstSum, type JournalHead, type JournalReader, type JournalRow } from "../../engine/mod.ts";
import { replicationLimits } from "../limits.ts";
import { gapOf, type Generation, generationsOf, type Segment } from "./history.ts";
import { Merger, type MergeRule } from "./merger.ts";
import { generationFile, GENERATIONS, segmentFile, snapshotFile } from "./names.ts";
import {
  type Claim,
  createReplica,
  generationBytes,
  Ownership,
  removeLeftovers,
  type TargetObject,
} from "./replica_target.ts";
import { newestOf, removeExpired, RetentionClock } from "./retention.ts";
import { packSegment } from "./segment.ts";
import type { GenerationReport, ShippingStatus } from "./status.ts";

/** A snapshot of the database in a file. */
export interface MadeSnapshot {
  readonly path: string;
  readonly ts: number;
  /** ms since the epoch. */
  readonly at: number;
  readonly history: JournalHead | null;
}

/** Ends a generation and starts the next one. */
export interface JournalRestart {
  readonly generation: string;
  readonly reason: "lost" | "overflow";
}

/** Calls from the shipper to the server. They must not throw. */
export interface ShipperSide {
  /** Rows of a generation up to this one are at the target. */
  confirmed(row: { readonly generation: string; readonly seq: number }): void;
  /** The journal cannot be continued: another generation must begin. */
  restart(restart: JournalRestart): void;
  /** Requests a snapshot. The server answers with `addSnapshot` or `snapshotFailed`. */
  snapshotWanted(): void;
}

export interface ShipperOptions {
  readonly target: ObjectStore;
  readonly journal: JournalReader;
  readonly claim: Claim;
  readonly snapshotEveryMs: number;
  readonly keepMs: number;
  readonly side: ShipperSide;
  readonly merges?: readonly MergeRule[];
  readonly now?: () => number;
  /** A monotonic clock in milliseconds. */
  readonly steady?: () => number;
  readonly wait?: (ms: number) => Promise<void>;
}

/** Newest row at the target. */
interface Position {
  readonly generation: string;
  readonly seq: number;
  readonly ts: number;
  readonly sum: string;
}

const NO_ROW = Number.MAX_SAFE_INTEGER;
const { now: systemNow } = Date;
const systemSteady = performance.now.bind(performance);
const systemWait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

export class Shipper implements AsyncDisposable {
  readonly #options: ShipperOptions;
  readonly #now: () => number;
  readonly #steady: () => number;
  readonly #merger: Merger;
  /** Set when the target was first reached. */
  #ownership: Ownership | null = null;
  /** All known objects at the target, by name. */
  readonly #objects = new Map<string, TargetObject>();
  #position: Position | null = null;
  #reason: JournalHead["reason"] | null = null;
  /** Time of the newest snapshot of the generation, and its row; `null` without one. */
  #snapshot: { readonly at: number; readonly seq: number } | null = null;
  #snapshotRequested = false;
  #snapshotWanted = false;
  /** After a failed snapshot the next is not requested before this time, unless an administrator requests one. */
  #snapshotPauseUntil = 0;
  /** The generation whose dropped journal was reported. */
  #overflowRecorded: string | null = null;
  /** By the monotonic clock. Not run at the start: frequent restarts would speed up the stepwise removal. */
  #retentionRanAt: number;
  /** Retention clock; `null` until the earlier objects at the target are known. */
  #retentionClock: RetentionClock | null = null;
  /** Background work beside shipping; never rejects. */
  #background: Promise<void> = Promise.resolve();
  #status: Omit<ShippingStatus, "generation" | "reason" | "shippedTs" | "restorable"> = {
    pending: { rows: 0, bytes: 0, oldestAt: null },
    lastSegment: null,
    lastSnapshot: null,
    errors: [],
    takenBy: null,
    aheadMs: null,
    counts: { segments: 0, segmentBytes: 0, snapshots: 0, merges: 0, failures: 0, overflows: 0 },
  };

  constructor(options: ShipperOptions) {
    this.#options = options;
    this.#now = options.now ?? systemNow;
    this.#steady = options.steady ?? systemSteady;
    this.#retentionRanAt = this.#steady();
    const { target, merges } = options;
    this.#merger = new Merger({ target, objects: this.#objects, ...(merges && { rules: merges }) });
  }

  /** Resolves when the background work beside shipping has ended. */
  get background(): Promise<void> {
    return this.#background;
  }

  get status(): ShippingStatus {
    const { generation = null, ts = null } = this.#position ?? {};
    const restorable = this.#position !== null && this.#snapshot !== null;
    return { ...this.#status, generation, shippedTs: ts, reason: this.#reason, restorable };
  }

  generations(): GenerationReport[] {
    return generationsOf(this.#objects.values()).map(({ name, snapshots, segments, ranges }) => ({
      generation: name,
      snapshots: snapshots.length,
      segments: segments.length,
      bytes: [...snapshots, ...segments].reduce((sum, { file }) => sum + file.size, 0),
      ranges,
    }));
  }

  /**
   * Checks and claims the target. `ship` calls it if necessary. Throws a `LocationError` if the target cannot be used.
   */
  async open(): Promise<void> {
    if (this.#retentionClock !== null) return;
    if (this.#ownership === null) {
      const { target, claim } = this.#options;
      await createReplica(target);
      this.#ownership = await Ownership.take(target, claim);
    }
    await this.#list(GENERATIONS);
    // Before the first segment, which has the time of this server's clock in its name.
    const known = newestOf(generationsOf(this.#objects.values()));
    this.#retentionClock = new RetentionClock({ now: this.#now, steady: this.#steady, known });
    this.#status = { ...this.#status, aheadMs: this.#retentionClock.aheadAtStart };
  }

  /**
   * Ships the rows that are pending now. Later rows wait for the next call, or this one would never end under constant
   * load. Throws a `LocationError`, which is also in the status; the next call continues.
   */
  async ship(): Promise<void> {
    if (this.#status.takenBy !== null) return;
    try {
      await this.open();
      const upTo = this.#options.journal.read(NO_ROW).head?.seq ?? 0;
      while (await this.#shipSome(upTo));
      this.#requestDueSnapshot();
      this.#startBackground();
    } catch (error) {
      this.#recordError(error);
      throw error;
    }
  }

  /** Requests a snapshot even if none is due. */
  wantSnapshot(): void {
    this.#snapshotWanted = true;
    this.#requestDueSnapshot();
  }

  /** Uploads a snapshot. Throws a `LocationError`, which is also in the status. */
  async addSnapshot({ path, ts, at, history }: MadeSnapshot): Promise<void> {
    try {
      await this.#upload({ path, ts, at, history });
    } catch (error) {
      this.#snapshotPauseUntil = this.#now() + replicationLimits.snapshotRetryMs;
      this.#recordError(error);
      throw error;
    } finally {
      // Not earlier: a second snapshot would replace the file that is being uploaded.
      this.#snapshotRequested = false;
    }
  }

  async #upload({ path, ts, at, history }: MadeSnapshot): Promise<void> {
    const position = this.#position;
    // It may be older than the generation, which then needs another one.
    if (position === null || history?.generation !== position.generation) return;
    const { target } = this.#options;
    const { generation, seq, sum } = history;
    const name = snapshotFile({ generation, ts, seq, at, sum });
    const { size } = await Deno.stat(path);
    await target.putFile(name, path);
    if (!await this.#isOurs(name)) return;
    this.#objects.set(name, { name, size });
    this.#snapshot = { at, seq };
    const { counts } = this.#status;
    this.#status = {
      ...this.#status,
      lastSnapshot: { fromTs: ts, toTs: ts, bytes: size, at: this.#now() },
      counts: { ...counts, snapshots: counts.snapshots + 1 },
    };
    this.#retentionRanAt = -Infinity;
    this.#startBackground();
  }

  snapshotFailed(message: string): void {
    this.#snapshotRequested = false;
    this.#snapshotPauseUntil = this.#now() + replicationLimits.snapshotRetryMs;
    this.#recordError(new Error(`No snapshot could be made: ${message}`));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#background;
  }

  /** Ships at most one segment, up to a row. Returns whether there may be more rows. */
  async #shipSome(upTo: number): Promise<boolean> {
    const { journal, target, side } = this.#options;
    const { head, confirmed } = journal.read(NO_ROW);
    if (head === null || head.generation === null || confirmed === null) return false;
    if (this.#position?.generation !== head.generation) {
      this.#recordOverflow({ ...head, generation: head.generation });
      const attached = await this.#attach({ ...head, generation: head.generation }, confirmed);
      if (!attached) return false;
    }
    const position = this.#position;
    if (position === null) return false;
    const part = journal.read(position.seq);
    if (part.head?.generation !== position.generation) return true;
    this.#status = { ...this.#status, pending: part.pending };
    const [first] = part.rows;
    if (first === undefined) return false;
    if (first.seq !== position.seq + 1 || first.tsBefore !== position.ts) {
      this.#lost(position.generation, "the journal does not continue where the target ends");
      return false;
    }
    const { generation, sum: prev } = position;
    const { name, bytes } = await packSegment(part.rows, { generation, prev, level: 0 });
    const file = segmentFile(name);
    await target.put(file, bytes);
    if (!await this.#isOurs(file)) return false;
    this.#objects.set(file, { name: file, size: bytes.length });
    this.#merger.added(file, bytes);
    this.#shipped({ ...name, bytes: bytes.length, rows: part.rows });
    side.confirmed({ generation, seq: name.toSeq });
    return name.toSeq < upTo;
  }

  #shipped(
    segment: {
      readonly generation: string;
      readonly fromTs: number;
      readonly toTs: number;
      readonly toSeq: number;
      readonly sum: string;
      readonly bytes: number;
      readonly rows: readonly JournalRow[];
    },
  ): void {
    const { generation, fromTs, toTs, toSeq: seq, sum, bytes, rows } = segment;
    this.#position = { generation, seq, ts: toTs, sum };
    const { counts, pending } = this.#status;
    const packed = rows.reduce((all, { body }) => all + Buffer.byteLength(body), 0);
    this.#status = {
      ...this.#status,
      pending: {
        rows: pending.rows - rows.length,
        bytes: pending.bytes - packed,
        oldestAt: pending.rows > rows.length ? rows.at(-1)?.at ?? null : null,
      },
      lastSegment: { fromTs, toTs, bytes, at: this.#now() },
      counts: { ...counts, segments: counts.segments + 1, segmentBytes: counts.segmentBytes + bytes },
    };
  }

  /** Finds the newest row of a generation at the target. Returns whether shipping can continue from it. */
  async #attach(
    head: JournalHead & { readonly generation: string },
    confirmed: { readonly seq: number; readonly ts: number; readonly sum: string },
  ): Promise<boolean> {
    const { target } = this.#options;
    const { generation, firstSeq } = head;
    const { lateListings, lateListingMs } = replicationLimits;
    const wait = this.#options.wait ?? systemWait;
    for (let look = 0;; look++) {
      await this.#list(`${GENERATIONS}${generation}/`);
      const found = this.#generation(generation);
      const segments = found?.segments ?? [];
      const end = segments.reduce<Segment | null>((a, b) => a === null || b.toSeq > a.toSeq ? b : a, null);
      if (end === null && confirmed.seq === firstSeq) {
        const startedAt = new Date(this.#now()).toISOString();
        const facts = { generation, reason: head.reason, startedAt, ts: confirmed.ts };
        await target.put(generationFile(generation), generationBytes(facts), { ifAbsent: true });
        this.#begin(head, { generation, seq: firstSeq, ts: confirmed.ts, sum: firstSum(generation) });
        return true;
      }
      if (end !== null && end.toSeq >= confirmed.seq) {
        if (this.#sumOf(end.toSeq, confirmed) !== end.sum) break;
        this.#begin(head, { generation, seq: end.toSeq, ts: end.toTs, sum: end.sum });
        this.#options.side.confirmed({ generation, seq: end.toSeq });
        return true;
      }
      // Confirmed rows are not listed: listings may be late.
      if (look >= lateListings) break;
      await wait(lateListingMs);
    }
    this.#lost(generation, "earlier segments are missing, or belong to another history");
    return false;
  }

  #begin(head: JournalHead, position: Position): void {
    this.#position = position;
    this.#reason = head.reason;
    const found = this.#generation(position.generation);
    const newest = found?.snapshots.at(-1);
    // Only a snapshot after a gap makes the points after it restorable.
    const whole = found !== undefined && newest !== undefined && gapOf(found) === null;
    this.#snapshot = whole ? { at: newest.at, seq: newest.seq } : null;
    this.#merger.follow(position.generation);
  }

  /** Reports a dropped journal once, also while the new generation cannot be written to the target. */
  #recordOverflow({ generation, reason }: { readonly generation: string; readonly reason: string }): void {
    if (reason !== "overflow" || this.#overflowRecorded === generation) return;
    this.#overflowRecorded = generation;
    if ((this.#generation(generation)?.snapshots.length ?? 0) > 0) return;
    const { counts } = this.#status;
    this.#status = { ...this.#status, counts: { ...counts, overflows: counts.overflows + 1 } };
    this.#recordError(
      new Error(
        "The journal was dropped, because it had grown too large or the disk was full: a new generation has begun",
      ),
    );
  }

  /** Returns the chained checksum of a pending row or of the last confirmed one. */
  #sumOf(seq: number, confirmed: { readonly seq: number; readonly sum: string }): string | null {
    if (seq === confirmed.seq) return confirmed.sum;
    const row = this.#options.journal.read(seq - 1).rows[0];
    return row?.seq === seq ? row.sum : null;
  }

  #lost(generation: string, why: string): void {
    this.#recordError(new Error(`A new generation begins: ${why}`));
    this.#position = null;
    this.#options.side.restart({ generation, reason: "lost" });
  }

  /** Whether this server still owns the target. Otherwise removes the object that it has just written. */
  async #isOurs(file: string): Promise<boolean> {
    const taken = await this.#ownership?.lostTo() ?? null;
    if (taken === null) return true;
    await this.#options.target.delete(file).catch(() => {});
    const { host, since } = taken;
    this.#status = { ...this.#status, takenBy: { host, since } };
    this.#recordError(
      new LocationError(
        "target",
        `Another server, ${host}, has taken over "${this.#options.target.location}" at ${since}. This server no longer ships. ` +
          "Give each server its own target",
      ),
    );
    return false;
  }

  #requestDueSnapshot(): void {
    const position = this.#position;
    if (this.#snapshotRequested || position === null || this.#status.takenBy !== null) return;
    const { snapshotEveryMs, side } = this.#options;
    // A snapshot from the far future, taken with a wrong clock, is also outdated.
    const due = this.#snapshot === null ||
      (position.seq > this.#snapshot.seq && Math.abs(this.#now() - this.#snapshot.at) >= snapshotEveryMs);
    if (!this.#snapshotWanted && (!due || this.#now() < this.#snapshotPauseUntil)) return;
    this.#snapshotWanted = false;
    this.#snapshotRequested = true;
    side.snapshotWanted();
  }

  /** Merges segments and removes expired objects in the background, one run at a time. */
  #startBackground(): void {
    this.#background = this.#background.then(async () => {
      try {
        const merged = await this.#merger.merge();
        const { counts } = this.#status;
        this.#status = { ...this.#status, counts: { ...counts, merges: counts.merges + merged } };
        if (this.#steady() - this.#retentionRanAt < replicationLimits.retentionRunMs) return;
        this.#retentionRanAt = this.#steady();
        await this.#removeExpired();
      } catch (error) {
        this.#recordError(error);
      }
    });
  }

  async #removeExpired(): Promise<void> {
    const { target, keepMs } = this.#options;
    if (this.#retentionClock === null) return;
    const generations = generationsOf(this.#objects.values());
    const { at, jumped } = this.#retentionClock.read();
    if (jumped !== null) {
      this.#recordError(
        new Error(
          `The clock jumped ahead by ${
            Math.round(jumped / 3_600_000)
          } h: objects at the target expire by elapsed ` +
            "time instead",
        ),
      );
    }
    const current = this.#position?.generation ?? null;
    await removeExpired(target, { generations, current, before: at - keepMs, objects: this.#objects });
    await removeLeftovers(target, at);
  }

  #generation(name: string): Generation | undefined {
    const own = [...this.#objects.values()].filter((object) =>
      object.name.startsWith(`${GENERATIONS}${name}/`)
    );
    return generationsOf(own)[0];
  }

  async #list(begin: string): Promise<void> {
    for await (const object of this.#options.target.list(begin)) this.#objects.set(object.name, object);
  }

  #recordError(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    const { errors, counts } = this.#status;
    this.#status = {
      ...this.#status,
      errors: [...errors, { at: this.#now(), message }].slice(-replicationLimits.errorsKept),
      counts: { ...counts, failures: counts.failures + 1 },
    };
  }
}
