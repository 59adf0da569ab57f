/** `deno task bench [row...] [--full] [--cores 1] [--json file]`: measures, and prints each figure beside its control. */
import { parseArgs } from "node:util";
import { join } from "node:path";
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
import { observingRows } from "./rows/observing.ts";
import { presenceRows } from "./rows/presence.ts";
import { reconnectRows } from "./rows/reconnect.ts";
import { restoreRows } from "./rows/restore.ts";
import { replicationRows } from "./rows/replication.ts";
import { shippingRows } from "./rows/shipping.ts";
import { scheduledLoadRows } from "./rows/scheduled_load.ts";
import { signInTimingRows } from "./rows/sign_in_timing.ts";
import { stalledRows } from "./rows/stalled.ts";
import { storageRows } from "./rows/storage.ts";
import { slowQueryRows } from "./rows/slow_query.ts";
import { streamRows } from "./rows/streams.ts";
import { subscriptionRows } from "./rows/subscriptions.ts";
import { transferRows } from "./rows/transfer.ts";
import { markdown, met, type Row } from "./table.ts";

const rowsByName: Record<string, (context: BenchContext) => Promise<Row[]>> = {
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
  observing: observingRows,
  restore: restoreRows,
  cluster: clusterRows,
  competitors: competitorRows,
  replication: async (context) => [...await replicationRows(context), ...await shippingRows(context)],
};

/** Installs and starts third-party software, so it runs only when it is named. */
const ON_REQUEST = "competitors";

const encoder = new TextEncoder();

function say(text: string): void {
  Deno.stdout.writeSync(encoder.encode(`${text}\n`));
}

const { values, positionals } = parseArgs({
  args: Deno.args,
  allowPositionals: true,
  options: {
    full: { type: "boolean", default: false },
    cores: { type: "string" },
    json: { type: "string", default: "data/bench.json" },
  },
});
const wanted = positionals.length > 0
  ? positionals
  : Object.keys(rowsByName).filter((name) => name !== ON_REQUEST);
/** `cheap` runs all of its groups. Each group ends its processes before the next starts. */
const names = wanted.flatMap((name) => name === "cheap" ? Object.keys(cheapGroups) : [name]);
const unknown = names.find((name) => !(name in rowsByName));
if (unknown !== undefined) {
  say(`There is no row "${unknown}"; there are cheap, ${Object.keys(rowsByName).join(", ")}`);
  Deno.exit(2);
}

if (values.cores !== undefined && values.cores !== "1") {
  say("--cores takes 1: the servers share one processor, their clients have another");
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
      const measured = await rowsByName[name]?.(context) ?? [];
      rows.push(...measured);
      say(`${name}: ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
    } catch (error) {
      failed = true;
      say(`${name} failed: ${error instanceof Error ? error.stack : error}`);
    }
  }
} finally {
  Deno.removeSync(dir, { recursive: true });
}
say(markdown(rows));
Deno.mkdirSync(join(values.json, ".."), { recursive: true });
const report = { at: new Date().toISOString(), deno: Deno.version.deno, full: values.full, rows };
Deno.writeTextFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
if (failed || rows.some((row) => met(row) === false)) Deno.exitCode = 1;
