/** Requests and objects of a busy server at its target, which decide the documented costs of a day. */
import assert from "node:assert/strict";
import type { ObjectBody, ObjectInfo, ObjectStore } from "../../../mod/kit/locations/object_store.ts";
import { newHead } from "../../../mod/engine/journal/history_head.ts";
import { parseName } from "../../../mod/ops/replication/names.ts";
import { Shipper } from "../../../mod/ops/replication/shipper.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { MemoryJournal } from "./memory_journal.ts";

/** A target in memory that counts requests. */
class CountingTarget implements Omit<ObjectStore, "create" | "deleteFolder" | "check"> {
  readonly kind = "folder";
  readonly location = "memory";
  readonly objects = new Map<string, Uint8Array<ArrayBuffer>>();
  /** Concurrently existing segments, by level. */
  readonly most = [0, 0, 0];
  readonly #levels = [0, 0, 0];
  readonly counts = { list: 0, read: 0, write: 0, remove: 0, removeUnfinished: 0 };

  async *list(begin: string): AsyncGenerator<ObjectInfo> {
    this.counts.list++;
    await Promise.resolve();
    for (const [name, { length: size }] of this.objects) {
      if (name.startsWith(begin)) yield { name, size, writtenAt: 0 };
    }
  }

  head(name: string): Promise<never> {
    throw new Error(`Nobody restores "${name}" here`);
  }

  get(name: string): Promise<ObjectBody | null> {
    this.counts.read++;
    const bytes = this.objects.get(name);
    return Promise.resolve(bytes === undefined ? null : ReadableStream.from([bytes]));
  }

  put(name: string, bytes: Uint8Array<ArrayBuffer>, { ifAbsent = false } = {}): Promise<boolean> {
    if (ifAbsent && this.objects.has(name)) return Promise.resolve(false);
    this.counts.write++;
    if (!this.objects.has(name)) this.#count(name, 1);
    this.objects.set(name, bytes);
    return Promise.resolve(true);
  }

  async putFile(name: string, path: string): Promise<void> {
    await this.put(name, await Deno.readFile(path));
  }

  delete(name: string): Promise<void> {
    this.counts.remove++;
    if (this.objects.delete(name)) this.#count(name, -1);
    return Promise.resolve();
  }

  removeUnfinished(): Promise<void> {
    this.counts.removeUnfinished++;
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }

  #count(name: string, by: number): void {
    const parsed = parseName(name);
    if (parsed?.kind !== "segment") return;
    const { level } = parsed;
    const there = (this.#levels[level] ?? 0) + by;
    this.#levels[level] = there;
    this.most[level] = Math.max(this.most[level] ?? 0, there);
  }
}

Deno.test("[RP2] a commit in each second of an hour costs one put, one list and one removal each, few objects, and idle time costs nothing", async () => {
  await using folder = new TempFolder();
  await folder.write({ snapshot: "a snapshot" });
  const target = new CountingTarget();
  const journal = new MemoryJournal(newHead({ seq: 0, ts: 0, reason: "first", now: 0, after: 0 }));
  let now = 1_700_000_000_000;
  let snapshots: Promise<void> = Promise.resolve();
  await using shipper = new Shipper({
    target: target as unknown as ObjectStore,
    journal,
    claim: { instance: "one", host: "here", since: new Date(now).toISOString() },
    snapshotEveryMs: 86_400_000,
    keepMs: 7 * 86_400_000,
    now: () => now,
    steady: () => now,
    side: {
      confirmed: ({ seq }) => journal.confirm(seq),
      restart: ({ reason }) => assert.fail(reason),
      snapshotWanted() {
        const { head: history } = journal;
        const made = { path: folder.at("snapshot"), ts: history.ts, at: now, history };
        snapshots = snapshots.then(() => shipper.addSnapshot(made));
      },
    },
  });
  await shipper.ship();
  await snapshots;
  const begun = { ...target.counts };
  const SECONDS = 4_200;
  for (let second = 0; second < SECONDS; second++) {
    now += 1_000;
    const entry = { ts: journal.head.ts + 1, at: now, changes: [] };
    journal.append({ entries: [entry], records: [], lastCreationTime: now });
    await shipper.ship();
    // Background work of the shipper takes less than a second.
    await shipper[Symbol.asyncDispose]();
  }
  const { segments, merges, failures } = shipper.status.counts;
  assert.deepEqual([segments, failures], [SECONDS, 0]);
  // One of five minutes each, and one of the hour.
  assert.ok(merges >= 14 && merges <= 16, `${merges} were merged`);
  const asked = {
    list: target.counts.list - begun.list,
    read: target.counts.read - begun.read,
    write: target.counts.write - begun.write,
    remove: target.counts.remove - begun.remove,
  };
  // Leftovers of tests of the location are listed after the snapshot and once an hour.
  assert.deepEqual([asked.list, asked.write], [2, SECONDS + merges]);
  // A check for another instance. Merged rows were just written and are in memory.
  assert.ok(asked.read >= SECONDS && asked.read <= SECONDS + 60, `${asked.read} reads`);
  assert.ok(asked.remove >= SECONDS - 310 && asked.remove <= SECONDS + 60, `${asked.remove} removals`);
  // Segments are kept until the merged one exists.
  const [ofSeconds = 0, ofMinutes = 0, ofHours = 0] = target.most;
  assert.ok(ofSeconds <= 302 && ofMinutes <= 13 && ofHours === 1, `at the most ${target.most}`);

  const before = { ...target.counts };
  for (let turn = 0; turn < 20; turn++) await shipper.ship();
  await shipper[Symbol.asyncDispose]();
  assert.deepEqual(target.counts, before, "nothing is asked while there is nothing new");
});
