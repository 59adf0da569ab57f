/** Writes during repeated backups, beside writes without a backup. */
import { type BenchContext, transferFunctions } from "../../context.ts";
import { signUpAdministrator } from "../../support/administrator.ts";
import { compare, comparisonRow } from "../../support/rounds.ts";
import { seedAccounts } from "../../support/seed.ts";
import type { Row } from "../../table.ts";
import { CLIENTS, uniform } from "./transfers.ts";

export async function backupRows(context: BenchContext): Promise<Row[]> {
  const server = await context.server(transferFunctions);
  const { pid, port } = server;
  const token = await signUpAdministrator(server);
  await seedAccounts(server, uniform.accounts);
  const load = context.load();
  const durationMs = context.full ? 4_000 : 2_000;
  const write = () => load.run("httpLoop", { port, clients: CLIENTS, durationMs, workload: uniform });
  let backups = 0;
  const writeDuringBackups = async () => {
    let isDone = false;
    const [result] = await Promise.all([
      write().finally(() => isDone = true),
      (async () => {
        for (; !isDone; backups++) await backUp(port, token);
      })(),
    ]);
    return result;
  };
  const comparison = await compare(context, {
    ours: { pid, work: writeDuringBackups },
    control: { pid, work: write },
    operations: ({ answered }) => answered,
  });
  const row = comparisonRow("writes during a backup, p99, beside none", comparison, {
    ...{ value: ({ p99Ms }) => p99Ms, unit: "ms", target: { atMost: 1.5 } },
  });
  return [{ ...row, details: { ...row.details, backups } }];
}

/** Creates a backup and removes it. */
async function backUp(port: number, token: string): Promise<void> {
  const url = `http://127.0.0.1:${port}/api/admin/backups`;
  const headers = { Authorization: `Bearer ${token}` };
  const created = await fetch(url, { method: "POST", headers });
  const backup = await created.json();
  if (!created.ok) throw new Error(JSON.stringify(backup));
  const removed = await fetch(`${url}/${backup.name}`, { method: "DELETE", headers });
  await removed.body?.cancel();
  if (!removed.ok) throw new Error(`${removed.status} ${backup.name}`);
}
