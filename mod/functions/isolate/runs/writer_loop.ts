/** Runs batches of mutations in the writer, and commits them in groups. */
import type { WriterDatabase } from "../../../engine/mod.ts";
import { isDiskFull } from "../../../kit/durable_files.ts";
import { isolateLimits } from "../../limits.ts";
import type { AdaptiveSpinner } from "../../../kit/adaptive_spinner.ts";
import { type FrameSender, frameText } from "../../wire/segment_frames.ts";
import type { Batch, Committing, Group, WireAnswer } from "../../wire/messages.ts";
import { type CallError, outcomeUnknown, unavailable } from "../../outcome.ts";
import { EntryPacker } from "../../wire/packed_entry.ts";
import type { App } from "../app/app.ts";
import type { ProgressFile } from "../../wire/progress_file.ts";
import { type Append, RowRefusedError } from "./append_row.ts";
import { type MutationRun, recordedRun, runMutation } from "./run_mutation.ts";
import { UndoLog } from "./undo_log.ts";

const monotonic = performance.now.bind(performance);

export interface WriterParts {
  readonly app: App;
  readonly database: WriterDatabase;
  readonly progress: Pick<ProgressFile, "storing" | "begin" | "idle">;
  readonly sender: Pick<FrameSender, "send" | "sendText">;
  /** Busy-waits for the next batch after a single call, because such callers return quickly. */
  readonly untilNext?: Pick<AdaptiveSpinner, "waitStarted" | "waitEnded">;
  /** Appends rows to a log elsewhere before their groups are committed. `null` without one. */
  readonly append?: Append | null;
  /** Monotonic time in milliseconds, for limits and durations. Default: `performance.now()`. */
  readonly monotonicNow?: () => number;
}

/** A batch that has run this long is too large: the writer returns the remaining calls to main. */
const BATCH_MS_MAX = 2 * isolateLimits.batchSliceMs;

/** Runs a batch in one group, or several if it takes long. */
export async function runBatch(parts: WriterParts, batch: Batch): Promise<void> {
  parts.untilNext?.waitEnded();
  const { monotonicNow = monotonic } = parts;
  const endsAt = monotonicNow() + BATCH_MS_MAX;
  for (let from = 0, ends = false, announced = false; from < batch.calls.length && !ends;) {
    const group = await runGroup(parts, { batch, from, endsAt, announced, roomMade: 0 });
    from += group.answers;
    ({ ends, announced } = group);
    // The database stores the text of the newest group only, so this group's answers must be sent before the next commit.
    await parts.sender.sendText(group.text);
    parts.database.maintain(group.answers);
  }
  parts.progress.idle();
  if (batch.calls.length === 1) parts.untilNext?.waitStarted();
}

/** Approximate characters of one changed document in an entry. */
const CHANGE_CHARS = 256;

interface GroupRun {
  readonly batch: Batch;
  readonly from: number;
  readonly endsAt: number;
  /** Whether main was notified that the batch is about to end. Its calls are then no longer returned to main. */
  readonly announced: boolean;
  /** How often disk space was freed, after which the calls ran again. */
  readonly roomMade: number;
}

interface RunGroup {
  readonly text: string;
  readonly answers: number;
  readonly ends: boolean;
  readonly announced: boolean;
}

async function runGroup(parts: WriterParts, given: GroupRun): Promise<RunGroup> {
  const { batch, from, endsAt } = given;
  const { app, database, progress, sender, append = null, monotonicNow = monotonic } = parts;
  const answers: WireAnswer[] = [];
  const packer = new EntryPacker();
  const segments: string[] = [];
  const uses: number[] = [];
  const undos = new UndoLog();
  let opened = false;
  let isAppended = false;
  let { announced } = given;
  let begun = 0;
  let chars = 0;
  let now = monotonicNow();
  const until = now + isolateLimits.batchSliceMs;
  try {
    progress.storing();
    database.openGroup();
    opened = true;
    let since = monotonicNow();
    for (const mutation of batch.calls.slice(from)) {
      const at = progress.begin(from + begun++);
      const run = await runMutation(app, database, { mutation, at, undos });
      answers.push(packAnswer(run, segments));
      if (run.entry !== null) packer.add(run.entry);
      chars += answerChars(run);
      now = monotonicNow();
      uses.push(Math.round((now - since) * 1000) / 1000, ...run.use);
      since = now;
      if (now >= until || chars >= isolateLimits.groupCharsMax) break;
    }
    progress.storing();
    // For a single call, the notification would take longer than it saves.
    if (!announced && begun > 1 && from + begun === batch.calls.length) {
      announced = true;
      // If it cannot be sent, neither can the group, whose sending is awaited.
      sender.send({ type: "Committing", batch: batch.batch } satisfies Committing).catch(() => {});
    }
    const { tables, entries } = packer;
    const ends = !announced && now >= endsAt && from + begun < batch.calls.length;
    const more = ends ? { ends } as const : {};
    const ts = database.ts;
    const text = groupText(batch, { from, answers, uses, tables, entries, segments, ts, ...more });
    if (append !== null) {
      const row = database.prepareCommit(text);
      // Recorded answers are valid on any server. Other results need a server that is still the leader.
      if (row !== null || answers.some(([, , , replayed]) => replayed !== true)) await append(row);
      isAppended = row !== null;
    }
    database.commitGroup(text);
    return { text, answers: answers.length, ends, announced };
  } catch (error) {
    progress.storing();
    // The group is in the log but not in this database. It must not be answered as failed, and no other group may
    // be committed in its place. The error ends the isolate, and the new writer's position shows main the outcome.
    if (isAppended) throw error;
    // If even the rollback fails, the connection is unusable: the error ends the isolate, and a new one takes over.
    if (opened) database.rollbackGroup();
    undos.backTo(0);
    const { roomMade } = given;
    if (roomMade < 2 && opened && database.freeDiskSpace(error, { again: roomMade > 0 })) {
      return await runGroup(parts, { ...given, announced, roomMade: roomMade + 1 });
    }
    // If this transaction cannot begin, neither can one for the remaining calls.
    const calls = opened ? Math.max(1, begun) : batch.calls.length - from;
    return {
      text: failedGroupText(database, { batch, from, calls, failure: failureOf(error) }),
      answers: calls,
      ends: false,
      announced,
    };
  }
}

/** Converts an answer to its wire form. A result is appended to the frame's segments. */
function packAnswer({ ending, logLines, ts, replayed }: MutationRun, segments: string[]): WireAnswer {
  const result = ending.ok ? segments.push(ending.text) - 1 : ending.error;
  if (replayed) return [ts, result, logLines, replayed];
  return logLines.length === 0 ? [ts, result] : [ts, result, logLines];
}

/** Approximate size of an answer in the text of its group. */
function answerChars({ ending, logLines, entry }: MutationRun): number {
  const changes = entry?.changes.length ?? 0;
  const outcome = ending.ok ? ending.text.length : JSON.stringify(ending.error).length;
  return logLines.reduce((sum, line) => sum + line.length, outcome + changes * CHANGE_CHARS);
}

function groupText(
  { batch }: Batch,
  { segments, ...group }: Omit<Group, "type" | "batch"> & { readonly segments: readonly string[] },
): string {
  return frameText({ type: "Group", batch, ...group } satisfies Group, segments);
}

/** The text of a group that was rolled back: its calls fail, except those with a recorded answer. */
function failedGroupText(
  database: Pick<WriterDatabase, "ts" | "findRecord">,
  { batch, from, calls, failure }: {
    readonly batch: Batch;
    readonly from: number;
    readonly calls: number;
    readonly failure: CallError;
  },
): string {
  const { ts } = database;
  const segments: string[] = [];
  const answers = batch.calls.slice(from, from + calls).map((mutation): WireAnswer => {
    const recorded = recordedRun(database, mutation);
    return recorded === null ? [ts, failure] : packAnswer(recorded, segments);
  });
  return groupText(batch, { from, answers, tables: [], entries: [], segments, ts });
}

/** Returns the error for calls of a group that was not committed. */
function failureOf(error: unknown): CallError {
  if (error instanceof RowRefusedError) {
    const { message, known } = error;
    return known ? unavailable(message).error : outcomeUnknown(message).error;
  }
  const message = `The database could not commit: ${error instanceof Error ? error.message : String(error)}`;
  // The log has the details. Callers learn only that the disk is full.
  const data = isDiskFull(error) ? { code: "disk_full", data: null } : null;
  return { kind: "internal", message, data, retryable: true };
}
