/** `deno task bench [group...] [--full] [--cores 1] [--json file]`: prints measured figures beside those of bare controls. */
import { parseArgs } from "node:util";
import { dirname, join } from "node:path";
import { BenchContext } from "./context.ts";
import { accountRows } from "./rows/accounts.ts";
import { browserApplyRows } from "./rows/browser_apply.ts";
import { cheapGroups } from "./rows/cheap/mod.ts";
import { clusterRows } from "./rows/cluster.ts";
import { competitorRows } from "./rows/competitors/mod.ts";
import { countingRows } from "./rows/counting.ts";
import { dataRows } from "./rows/data.ts";
import { fanOutRows } from "./rows/fan_out.ts";
import { hostileRows } from "./rows/hostile.ts";
import { intervalIndexRows } from "./rows/interval_index.ts";
import { latencyRows } from "./rows/latency.ts";
import { memoryRows } from "./rows/memory.ts";
import { observabilityRows } from "./rows/observability.ts";
import { presenceRows } from "./rows/presence.ts";
import { reconnectRows } from "./rows/reconnect.ts";
import { replicationRows } from "./rows/replication.ts";
import { restoreRows } from "./rows/restore.ts";
import { scheduledLoadRows } from "./rows/scheduled_load.ts";
import { shippingRows } from "./rows/shipping.ts";
import { signInTimingRows } from "./rows/sign_in_timing.ts";
import { slowQueryRows } from "./rows/slow_query.ts";
import { stalledRows } from "./rows/stalled.ts";
import { storageRows } from "./rows/storage.ts";
import { streamRows } from "./rows/streams.ts";
import { subscriptionRows } from "./rows/subscriptions.ts";
import { transferRows } from "./rows/transfer.ts";
import { print } from "./support/print.ts";
import { markdown, meetsTarget, type Row } from "./table.ts";

const groups: Record<string, (context: BenchContext) => Promise<Row[]>> = {
  transfer: transferRows,
  ...cheapGroups,
  latency: latencyRows,
  "fan-out": fanOutRows,
  subscriptions: subscriptionRows,
  "slow-query": slowQueryRows,
  reconnect: reconnectRows,
  presence: presenceRows,
  streams: streamRows,
  stalled: stalledRows,
  memory: memoryRows,
  accounts: accountRows,
  "sign-in-timing": signInTimingRows,
  "interval-index": intervalIndexRows,
  scheduled: scheduledLoadRows,
  "browser-apply": browserApplyRows,
  hostile: hostileRows,
  storage: storageRows,
  counting: countingRows,
  data: dataRows,
  observability: observabilityRows,
  restore: restoreRows,
  cluster: clusterRows,
  competitors: competitorRows,
  replication: async (context) => [...await replicationRows(context), ...await shippingRows(context)],
};

/** Runs only if it is named, because it installs third-party software. */
const ON_REQUEST = "competitors";

const { values, positionals } = parseArgs({
  args: Deno.args,
  allowPositionals: true,
  options: {
    full: { type: "boolean", default: false },
    cores: { type: "string" },
    json: { type: "string", default: "data/bench.json" },
  },
});
const requested = positionals.length > 0
  ? positionals
  : Object.keys(groups).filter((name) => name !== ON_REQUEST);
const names = requested.flatMap((name) => name === "cheap" ? Object.keys(cheapGroups) : [name]);
const unknown = names.find((name) => !(name in groups));
if (unknown !== undefined) {
  print(`Unknown group "${unknown}". Groups: cheap, ${Object.keys(groups).join(", ")}`);
  Deno.exit(2);
}
if (values.cores !== undefined && values.cores !== "1") {
  print("--cores must be 1: the servers use one processor and their clients another");
  Deno.exit(2);
}

const dir = Deno.makeTempDirSync({ prefix: "syncline-bench-" });
const rows: Row[] = [];
let failed = false;
try {
  for (const name of names) {
    await using context = new BenchContext({
      full: values.full,
      dir: join(dir, name.replace(":", "_")),
      cores: values.cores === undefined ? undefined : Number(values.cores),
    });
    try {
      const startedAt = performance.now();
      rows.push(...await groups[name]?.(context) ?? []);
      print(`${name}: ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
    } catch (error) {
      failed = true;
      print(`${name} failed: ${error instanceof Error ? error.stack : error}`);
    }
  }
} finally {
  Deno.removeSync(dir, { recursive: true });
}
print(markdown(rows));
Deno.mkdirSync(dirname(values.json), { recursive: true });
const report = { at: new Date().toISOString(), deno: Deno.version.deno, full: values.full, rows };
Deno.writeTextFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
if (failed || rows.some((row) => meetsTarget(row) === false)) Deno.exitCode = 1;
