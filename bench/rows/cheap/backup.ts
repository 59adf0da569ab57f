/** Writes beside a backup, which the server makes again and again, and without one. */
import assert from "node:assert/strict";
import { type BenchContext, transferFunctions } from "../../context.ts";
import type { ClosedLoopResult } from "../../load/closed_loop.ts";
import { Administrator } from "../../support/administrator.ts";
import type { Row } from "../../table.ts";
import { seedAccounts } from "../transfer.ts";
import { ACCOUNTS, uniform } from "./transfers.ts";
import { inRoundRobin, rowOf } from "./turns.ts";

export async function backupRows(context: BenchContext): Promise<Row[]> {
  const administrator = new Administrator();
  const server = await context.serverAs({ functions: transferFunctions, onLine: administrator.onLine });
  await seedAccounts(server, ACCOUNTS);
  const token = await administrator.signUp(server.port);
  const load = context.load();
  const durationMs = context.full ? 4_000 : 2_000;
  const write = async (): Promise<ClosedLoopResult> => {
    const options = { port: server.port, clients: 64, inFlight: 1, durationMs, workload: uniform };
    const result = await load.run("httpLoop", options);
    assert.equal(result.failed, 0, result.failure ?? "");
    return result;
  };
  let backups = 0;
  const beside = async () => {
    let over = false;
    const making = (async () => {
      for (; !over; backups++) await backup(server.port, token);
    })();
    const result = await write();
    over = true;
    await making;
    return result;
  };
  const turns = await inRoundRobin(context, {
    ours: { pid: server.pid, work: beside },
    control: { pid: server.pid, work: write },
    count: ({ answered }) => answered,
  });
  const row = rowOf("writes beside a backup, beside those without one: p99", turns, {
    ...{ value: ({ p99Ms }) => p99Ms, unit: "ms", target: { atMost: 1.5 } },
  });
  return [{ ...row, details: { ...row.details, backups } }];
}

/** Makes one, and removes it. */
async function backup(port: number, token: string): Promise<void> {
  const address = `http://127.0.0.1:${port}/api/admin/backups`;
  const headers = { Authorization: `Bearer ${token}` };
  const made = await fetch(address, { method: "POST", headers });
  const answer = await made.json();
  if (!made.ok) throw new Error(JSON.stringify(answer));
  const removed = await fetch(`${address}/${answer.name}`, { method: "DELETE", headers });
  await removed.body?.cancel();
  if (!removed.ok) throw new Error(`${removed.status} ${answer.name}`);
}
