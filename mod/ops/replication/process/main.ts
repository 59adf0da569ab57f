/**
 * Entry of the process that works with a target: ships the journal, follows a replica, or rebuilds an earlier state. It
 * receives messages on standard input and sends them on standard output. It may access only the data folder and the target,
 * and exits when its input ends.
 */
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { type JournalReader, openJournalReader, UnusableDatabaseError } from "../../../engine/mod.ts";
import { writeAll } from "../../../kit/durable_files.ts";
import { LocationError } from "../../../kit/locations/object_store.ts";
import { collectWhenIdle } from "../../../kit/processes/idle_collection.ts";
import { encodeJsonLine, readJsonLines } from "../../../kit/processes/helper_process.ts";
import { ArchiveError } from "../../backups/archive/mod.ts";
import { RestoreError } from "../../backups/restore/mod.ts";
import { replicationLimits } from "../../limits.ts";
import { LogGapError } from "../follow/follower.ts";
import { SegmentLog } from "../follow/segment_log.ts";
import { fetchSnapshot, type FollowerUpdate, updateFollower } from "../follow/update_follower.ts";
import { documentHistory } from "../document_history.ts";
import { planRestore } from "../history.ts";
import { openTarget } from "../replica_target.ts";
import { listGenerations, stagePoint } from "../restore_point.ts";
import { Shipper } from "../shipper.ts";
import type { Begin, FromProcess, ToProcess } from "./messages.ts";

export interface WorkParts {
  readonly messages: AsyncGenerator<ToProcess>;
  readonly send: (message: FromProcess) => void;
  /** Resolves when all messages are written. */
  readonly sent: () => Promise<void>;
  readonly stopping: AbortController;
}

/** Answers reads in order until the input ends. */
async function followWork(
  begin: Begin & { readonly work: "follow" },
  { messages, send, sent, stopping }: WorkParts,
): Promise<void> {
  const { signal } = stopping;
  await using open = new AsyncDisposableStack();
  let log: SegmentLog | null = null;
  let next = messages.next();
  for (;;) {
    const { done, value: message } = await next;
    if (done) return;
    // Until the answer, only the end of the input can arrive. It also ends the pause before the next poll.
    next = messages.next();
    const ended = () => stopping.abort(new Error("The server has exited"));
    next.then(({ done }) => done && ended(), ended);
    if (message.type !== "ReadLog") throw new TypeError(`A follower does not accept ${message.type}`);
    try {
      if (log === null) {
        // The disk of a folder may not be mounted at present: each read opens it again.
        const target = open.use(await openTarget(begin.target, { make: false, signal }));
        log = open.use(new SegmentLog(target, { everyMs: begin.everyMs }));
      }
      const { items, newestTs, checkedAt } = await log.read(message.after, { signal });
      for (const { seq, tsBefore, ts, at, sum, body } of items) {
        for (const { piece, more } of piecesOf(body)) {
          send({ type: "LogRow", row: [seq, tsBefore, ts, at, sum], piece, more });
        }
        await sent();
      }
      send({ type: "LogBatch", newestTs, checkedAt });
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      const fault = error instanceof LogGapError
        ? "gap"
        : error instanceof LocationError
        ? error.fault
        : "away";
      send({ type: "LogFault", fault, message: text });
    }
  }
}

/** Updates the database and reports the result; stops at the end of the input. */
async function updateWork(
  begin: Begin & { readonly work: "update" },
  parts: WorkParts,
): Promise<void> {
  const { dataDir, step } = begin;
  await reportUpdate(parts, (signal) => {
    const open = () => openTarget(begin.target, { make: false, signal });
    return updateFollower(open, { dataDir, step, signal });
  });
}

/** Replaces the database with a snapshot and reports the result. */
async function fetchWork(
  begin: Begin & { readonly work: "fetch" },
  parts: WorkParts,
): Promise<void> {
  const { dataDir, name, source } = begin;
  await reportUpdate(parts, async (signal) => {
    const open = () => openTarget(begin.target, { make: false, signal });
    const ts = await fetchSnapshot(open, { dataDir, name, source, signal });
    return { kind: "updated", ts, snapshot: true, stale: null };
  });
}

async function reportUpdate(
  { messages, send, stopping }: WorkParts,
  run: (signal: AbortSignal) => Promise<FollowerUpdate>,
): Promise<void> {
  void messages.next().finally(() => stopping.abort(new Error("The server has exited")));
  try {
    send({ type: "Updated", result: { ok: true, update: await run(stopping.signal) } });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const fault = error instanceof LocationError ? error.fault : null;
    send({ type: "Updated", result: { ok: false, fault, message } });
  }
}

/** Searches the replica for one document and reports its states; stops at the end of the input. */
async function historyWork(
  { target: location, id, folder }: Begin & { readonly work: "history" },
  { messages, send, stopping }: WorkParts,
): Promise<void> {
  void messages.next().finally(() => stopping.abort(new Error("The server has exited")));
  try {
    // Bytes of a segment may stop arriving.
    const deadline = AbortSignal.timeout(replicationLimits.historyMs + replicationLimits.historySnapshotMs);
    const signal = AbortSignal.any([stopping.signal, deadline]);
    await using target = await openTarget(location, { make: false, signal });
    const history = await documentHistory(target, id, { folder });
    send({ type: "History", result: { ok: true, history } });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const fault = error instanceof LocationError ? error.fault : null;
    send({ type: "History", result: { ok: false, fault, message } });
  }
}

function* piecesOf(text: string): Generator<{ readonly piece: string; readonly more: boolean }> {
  const { pieceChars } = replicationLimits;
  for (let from = 0; from === 0 || from < text.length; from += pieceChars) {
    const end = from + pieceChars;
    yield { piece: text.slice(from, end), more: end < text.length };
  }
}

/** Aborted when the server has exited. */
const stopping = new AbortController();
let sending: Promise<void> = Promise.resolve();

function send(message: FromProcess): void {
  sending = sending.then(() => writeAll(Deno.stdout, encodeJsonLine(message))).catch(() => Deno.exit(1));
}

/** Ships until the input ends, then once more. */
async function ship(
  begin: Begin & { readonly work: "ship" },
  messages: AsyncGenerator<ToProcess>,
): Promise<void> {
  const { dataDir, claim, snapshotEveryMs, keepMs } = begin;
  const target = await openTarget(begin.target, { make: true, signal: stopping.signal }).catch((error) => {
    send({ type: "Opened", fault: faultOf(error) });
    throw error;
  });
  using journal = openJournalReader(join(dataDir, "data.db"));
  await using shipper = new Shipper({
    target,
    journal,
    claim,
    snapshotEveryMs,
    keepMs,
    side: {
      confirmed({ generation, seq }) {
        send({ type: "Confirmed", generation, seq });
        // A long backlog takes many segments, so send the status after each.
        send({ type: "Status", status: shipper.status });
      },
      restart: (restart) => send({ type: "Restart", ...restart }),
      snapshotWanted: () => send({ type: "SnapshotWanted" }),
    },
  });
  const loop = new ShipLoop(shipper, { journal, dataDir });
  const opened = await shipper.open().then(() => null, faultOf);
  send({ type: "Opened", fault: opened });
  loop.ship();
  for await (const message of messages) {
    switch (message.type) {
      case "Ship":
        loop.ship();
        break;
      case "WantSnapshot":
        shipper.wantSnapshot();
        break;
      case "Snapshot":
        void shipper.addSnapshot(message.made).catch(() => {}).finally(() => {
          send({ type: "SnapshotTaken" });
          send({ type: "Status", status: shipper.status });
          loop.ship();
        });
        break;
      case "NoSnapshot":
        shipper.snapshotFailed(message.message);
        send({ type: "Status", status: shipper.status });
        break;
      case "Report":
        send({ type: "Report", id: message.id, generations: shipper.generations() });
        break;
      case "Begin":
      case "ReadLog":
        throw new TypeError(`A process that ships does not accept ${message.type}`);
      default:
        message satisfies never;
    }
  }
  await loop.end();
}

/** Ships on request, one attempt at a time, and retries after a failure. */
class ShipLoop {
  readonly #shipper: Shipper;
  readonly #journal: JournalReader;
  readonly #dataDir: string;
  #running: Promise<void> | null = null;
  #again = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;

  constructor(
    shipper: Shipper,
    { journal, dataDir }: { readonly journal: JournalReader; readonly dataDir: string },
  ) {
    this.#shipper = shipper;
    this.#journal = journal;
    this.#dataDir = dataDir;
  }

  ship(): void {
    if (this.#running !== null) {
      this.#again = true;
      return;
    }
    // After a failure, new rows do not cause earlier retries.
    if (this.#timer !== undefined) return void this.#checkDisk();
    this.#running = this.#run().finally(() => {
      this.#running = null;
      if (!this.#again) return;
      this.#again = false;
      this.ship();
    });
  }

  /** Ships the remaining rows; the server ends the process if it takes too long. */
  async end(): Promise<void> {
    clearTimeout(this.#timer);
    this.#again = false;
    await this.#running;
    if (this.#failures === 0) await this.#shipper.ship().catch(() => {});
    send({ type: "Status", status: this.#shipper.status });
  }

  async #run(): Promise<void> {
    try {
      await this.#shipper.ship();
      this.#failures = 0;
    } catch {
      // The status contains the error.
      const { retryMsMin, retryMsMax } = replicationLimits;
      const pauseMs = Math.min(retryMsMax, retryMsMin * 2 ** this.#failures++);
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        this.ship();
      }, pauseMs);
      await this.#checkDisk();
    }
    send({ type: "Status", status: this.#shipper.status });
  }

  /** Drops a journal that fills the disk while it cannot be shipped: the data has priority. */
  async #checkDisk(): Promise<void> {
    const { pendingBytesKept, diskReserveBytes } = replicationLimits;
    const { head, confirmed } = this.#journal.read(Number.MAX_SAFE_INTEGER);
    const generation = head?.generation ?? null;
    if (generation === null || confirmed === null) return;
    if (this.#journal.read(confirmed.seq).pending.bytes < pendingBytesKept) return;
    const { bavail, bsize } = await statfs(this.#dataDir);
    if (bavail * bsize < diskReserveBytes) send({ type: "Restart", generation, reason: "overflow" });
  }
}

/** Rebuilds a point and stages it. The end of the input aborts it. */
async function stage(
  begin: Begin & { readonly work: "stage" },
  messages: AsyncGenerator<ToProcess>,
): Promise<void> {
  // Only the end of the input can arrive.
  void messages.next().finally(() => stopping.abort(new Error("The server has exited")));
  try {
    await using target = await openTarget(begin.target, { make: false, signal: stopping.signal });
    const plan = planRestore(await listGenerations(target), begin.point, {
      now: Date.now(),
      location: target.location,
    });
    const staged = await stagePoint(target, plan, {
      dataDir: begin.dataDir,
      localFiles: begin.localFiles,
      ...(begin.databaseTo !== undefined && { databaseTo: begin.databaseTo }),
      signal: stopping.signal,
      onProgress: (progress) => send({ type: "Progress", progress }),
    });
    send({ type: "Staged", result: { ok: true, staged } });
  } catch (error) {
    const isExpected = error instanceof LocationError || error instanceof RestoreError;
    const ofData = error instanceof ArchiveError || error instanceof UnusableDatabaseError;
    const fault = isExpected ? error.fault : ofData ? "target" as const : null;
    const message = error instanceof Error ? error.message : String(error);
    send({ type: "Staged", result: { ok: false, fault, message } });
  }
}

function faultOf(error: unknown): { readonly fault: LocationError["fault"]; readonly message: string } {
  const message = error instanceof Error ? error.message : String(error);
  return { fault: error instanceof LocationError ? error.fault : "away", message };
}

async function* messagesIn(input: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<ToProcess> {
  for await (const line of readJsonLines(input, replicationLimits.lineCharsMax)) {
    yield JSON.parse(line) as ToProcess;
  }
}

async function main(): Promise<void> {
  const messages = messagesIn(Deno.stdin.readable);
  const { value: begin } = await messages.next();
  if (begin?.type !== "Begin") return;
  const parts = { messages, send, sent: () => sending, stopping };
  switch (begin.work) {
    case "ship":
      await ship(begin, messages);
      break;
    case "stage":
      await stage(begin, messages);
      break;
    case "follow":
      await followWork(begin, parts);
      break;
    case "update":
      await updateWork(begin, parts);
      break;
    case "history":
      await historyWork(begin, parts);
      break;
    case "fetch":
      await fetchWork(begin, parts);
  }
  await sending;
}

collectWhenIdle();
await main().catch(async (error) => {
  await sending;
  // The server has already logged a `LocationError`; other errors are bugs and go to the terminal.
  if (!(error instanceof LocationError)) throw error;
  Deno.exit(1);
});
Deno.exit(0);
