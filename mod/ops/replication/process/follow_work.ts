/** Work of a follower's process: reads the requested rows of a replica, and updates a database to its newest state. */
import { LocationError } from "../../../kit/locations/object_store.ts";
import { replicationLimits } from "../../limits.ts";
import { fetchSnapshot, type FollowerUpdate, updateFollower } from "../follow/update_follower.ts";
import { LogGapError } from "../follow/commit_log.ts";
import { SegmentLog } from "../follow/segment_log.ts";
import { openTarget } from "../replica_target.ts";
import type { Begin, FromProcess, ToProcess } from "./messages.ts";

export interface WorkParts {
  readonly messages: AsyncGenerator<ToProcess>;
  readonly send: (message: FromProcess) => void;
  /** Resolves when all messages are written. */
  readonly sent: () => Promise<void>;
  readonly stopping: AbortController;
}

/** Answers reads in order until the input ends. */
export async function followWork(
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
export async function updateWork(
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
export async function fetchWork(
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

function* piecesOf(text: string): Generator<{ readonly piece: string; readonly more: boolean }> {
  const { pieceChars } = replicationLimits;
  for (let from = 0; from === 0 || from < text.length; from += pieceChars) {
    const end = from + pieceChars;
    yield { piece: text.slice(from, end), more: end < text.length };
  }
}
