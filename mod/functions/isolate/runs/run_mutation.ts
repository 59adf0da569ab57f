/** Runs one mutation, or query of the service, inside an open group: replay check, handler, commit ts, recorded answer. */
import type { RecordKey, WriterDatabase, WriteTransaction } from "../../../engine/mod.ts";
import type { CommitEntry } from "../../../engine/types.ts";
import type { Ending } from "../../outcome.ts";
import type { WireMutation, WireUse } from "../../wire/messages.ts";
import { decodeRecord, encodeRecord } from "../../wire/replay_record.ts";
import { needsAdminAccess } from "../app/admin_access.ts";
import { type App, findFunction } from "../app/app.ts";
import { asCall, Call } from "./call.ts";
import { endingOfError } from "./ending.ts";
import { settleOrIdle } from "../process/idle.ts";
import { checkTaken } from "./unhandled_failures.ts";
import { useOf } from "./run_use.ts";
import { UndoLog } from "./undo_log.ts";
import { outerFrame, runFrame } from "../ctx/transaction_ctx.ts";

export interface MutationRun {
  readonly ending: Ending;
  readonly logLines: readonly string[];
  /** Commit ts, or the current ts when nothing was written. */
  readonly ts: number;
  readonly replayed: boolean;
  /** Its changes. `null` if it wrote nothing. */
  readonly entry: CommitEntry | null;
  readonly use: WireUse;
}

const unused: WireUse = [0, 0, 0, 0];

/** Runs a mutation at `at`, or returns its recorded answer. If this throws, the database failed: roll back the group. */
export async function runMutation(
  app: App,
  database: WriterDatabase,
  { mutation, at, undos = new UndoLog() }: {
    readonly mutation: WireMutation;
    readonly at: number;
    /** Undo log of the group. */
    readonly undos?: UndoLog;
  },
): Promise<MutationRun> {
  const key = recordKey(mutation);
  const recorded = recordedRun(database, mutation);
  if (recorded !== null) return recorded;
  if (mutation.failedWith !== undefined) {
    const ending: Ending = { ok: false, error: mutation.failedWith };
    if (key !== null) database.saveRecord(key, encodeRecord(ending, database.ts));
    return { ending, logLines: [], ts: database.ts, replayed: false, entry: null, use: unused };
  }
  const writes = database.beginMutation({ at });
  const { udfPath, identity, lineage } = mutation;
  const call = new Call({ udfPath, identity, at, seed: null, reads: writes, lineage, undos });
  const { mark } = undos;
  const ending = await attempt(app, call, { mutation, writes });
  let entry: CommitEntry | null = null;
  if (ending.ok) entry = database.releaseMutation();
  else {
    database.rollbackMutation();
    undos.backTo(mark);
  }
  const ts = entry?.ts ?? database.ts;
  if (key !== null) database.saveRecord(key, encodeRecord(ending, ts));
  return { ending, logLines: call.logLines.take(), ts, replayed: false, entry, use: useOf(writes.usage) };
}

export function recordedRun(
  database: Pick<WriterDatabase, "findRecord">,
  mutation: WireMutation,
): MutationRun | null {
  const key = recordKey(mutation);
  const recorded = key === null ? null : database.findRecord(key);
  if (recorded === null) return null;
  return { ...decodeRecord(recorded), logLines: [], replayed: true, entry: null, use: unused };
}

async function attempt(
  app: App,
  call: Call,
  { mutation, writes }: { readonly mutation: WireMutation; readonly writes: WriteTransaction },
): Promise<Ending> {
  const { udfPath, origin, args } = mutation;
  try {
    const isQuery = origin === "system" && app.functions.get(udfPath)?.spec.kind === "query";
    const callee = findFunction(app, udfPath, { kind: isQuery ? "query" : "mutation", origin });
    const frame = outerFrame(call, { reads: writes, writes: isQuery ? null : writes, system: callee.system });
    const requiresAdmin = needsAdminAccess(callee, origin);
    const text = await asCall(
      call,
      () => runFrame(app, frame, { callee, args, requiresAdmin, settle: settleOrIdle }),
    );
    if (frame.failures !== null) await checkTaken(frame, { call, undone: true });
    return { ok: true, text };
  } catch (error) {
    return endingOfError(error);
  }
}

function recordKey({ replay, identity }: WireMutation): RecordKey | null {
  if (replay === undefined) return null;
  return { sessionId: replay.sessionId, requestId: replay.requestId, principal: identity.principal };
}
