/** Whole servers that replicate: their configuration, and the status they report to administrators. */
import type { ReplicationConfig } from "../../../mod/config/config.ts";
import type { TestServer } from "../../auth/server/test_server.ts";
import { until } from "../../support/waiting.ts";

const DAY = 86_400_000;

/** Ships to a folder, often. */
export function replicationTo(path: string, parts: Partial<ReplicationConfig> = {}): ReplicationConfig {
  return {
    to: { kind: "folder", path },
    everyMs: 20,
    snapshotEveryMs: DAY,
    keepMs: 7 * DAY,
    maxPendingBytes: 2 ** 28,
    heartbeatUrl: null,
    ...parts,
  };
}

// deno-lint-ignore no-explicit-any -- responses have many shapes
export async function statusOf(server: Pick<TestServer, "url">, bearer: string): Promise<any> {
  const headers = { Authorization: `Bearer ${bearer}` };
  return await (await fetch(`${server.url}/api/admin/replication`, { headers })).json();
}

/** Resolves when all commits are in the target, after a snapshot. */
export async function shipped(
  server: Pick<TestServer, "url">,
  bearer: string,
  { what = "everything is shipped" } = {},
): Promise<Record<string, unknown>> {
  let status: Record<string, unknown> = {};
  await until(async () => {
    status = await statusOf(server, bearer);
    const generations = status.generations as { generation: string; snapshots: number }[];
    // A new generation is not listed, and cannot be restored yet.
    const current = generations.find(({ generation }) => generation === status.generation);
    return status.lagCommits === 0 && (current?.snapshots ?? 0) > 0;
  }, { what });
  return status;
}
