/** Calls over HTTP: creates, point reads and sign-ins. Each response is checked. */
import type { BenchContext } from "../../context.ts";
import type { ClosedLoopResult } from "../../load/closed_loop.ts";
import type { RequestTemplate } from "../../load/request_templates.ts";
import { WORKLOAD_SEED } from "../../../tests/support/processes/random.ts";
import { compare, type Comparison, comparisonRow, type Figure } from "../../support/rounds.ts";
import { Usage } from "../../support/usage.ts";
import type { Row } from "../../table.ts";
import { type Pair, startPair, TEXT } from "./pair.ts";
import { ROWS_PATH } from "./pocketbase.ts";

const CALLERS = 64;
/** Ten times the number of results that Syncline caches. */
const ROWS = 100_000;
const FEW_ROWS = 100;
const USERS = 8;
const PASSWORD = "correct horse battery";

interface Calls {
  readonly syncline: RequestTemplate;
  readonly pocketBase: RequestTemplate;
}

const milliseconds = { unit: "ms", digits: 2, target: null } as const;
const rate: Figure<ClosedLoopResult> = {
  ...{ value: ({ perSecond }) => perSecond, unit: "/s", digits: 0, target: null },
};
const p50: Figure<ClosedLoopResult> = { ...milliseconds, value: ({ p50Ms }) => p50Ms };
const p99: Figure<ClosedLoopResult> = { ...milliseconds, value: ({ p99Ms }) => p99Ms };

async function compareCalls(
  context: BenchContext,
  { pair, calls, clients, durationMs = context.full ? 4_000 : 1_500 }: {
    readonly pair: Pair;
    readonly calls: Calls;
    readonly clients: number;
    readonly durationMs?: number;
  },
): Promise<Comparison<ClosedLoopResult>> {
  await using inner = context.inner();
  const load = inner.load();
  const seeds = { syncline: WORKLOAD_SEED, pocketBase: WORKLOAD_SEED };
  const side = (name: keyof Calls) => ({
    pid: pair[name].pid,
    work: () => {
      const { port } = pair[name];
      // Different documents in each round, but the same ones on both sides.
      const workload = { accounts: 1, alpha: 0, seed: ++seeds[name] };
      return load.run("httpLoop", { port, clients, durationMs, workload, calls: calls[name] });
    },
  });
  return await compare(context, {
    ours: side("syncline"),
    control: side("pocketBase"),
    operations: ({ answered }) => answered,
  });
}

export async function createRows(
  outer: BenchContext,
  { program, synchronous }: { readonly program: string; readonly synchronous: "normal" | "full" },
): Promise<Row[]> {
  await using context = outer.inner();
  const pair = await startPair(context, { program, synchronous, rows: 0 });
  const calls: Calls = {
    syncline: {
      ...{ method: "POST", path: "/api/mutation" },
      body: `{"path":"rows:add","args":{"number":{n},"value":0,"text":"${TEXT}"}}`,
      expected: `"number":{n},`,
    },
    pocketBase: {
      ...{ method: "POST", path: ROWS_PATH },
      body: `{"number":{n},"value":0,"text":"${TEXT}"}`,
      expected: `"number":{n},`,
    },
  };
  const many = await compareCalls(context, { pair, calls, clients: CALLERS });
  const one = await compareCalls(context, { pair, calls, clients: 1 });
  await pair.pocketBase.checkSynchronous(synchronous);
  const mode = `PocketBase with ${synchronous.toUpperCase()}`;
  return [
    comparisonRow(`creates, HTTP, ${CALLERS} callers; ${mode}`, many, rate),
    comparisonRow("the same: p50", many, p50),
    comparisonRow("the same: p99", many, p99),
    comparisonRow(`creates, HTTP, one caller back to back; ${mode}: p50`, one, p50),
    comparisonRow("the same: p99", one, p99),
  ];
}

export async function readRows(outer: BenchContext, program: string): Promise<Row[]> {
  await using context = outer.inner();
  const pair = await startPair(context, { program, rows: ROWS });
  const compareReads = async (count: number) => {
    const calls: Calls = {
      syncline: {
        ...{ method: "POST", path: "/api/query" },
        body: '{"path":"rows:read","args":{"row":"{key}"}}',
        ...{ keys: pair.ids.syncline.slice(0, count), expected: '"_id":"{key}"' },
      },
      pocketBase: {
        ...{ method: "GET", path: `${ROWS_PATH}/{key}` },
        ...{ keys: pair.ids.pocketBase.slice(0, count), expected: '"id":"{key}"' },
      },
    };
    return await compareCalls(context, { pair, calls, clients: CALLERS });
  };
  const all = await compareReads(ROWS);
  const few = await compareReads(FEW_ROWS);
  return [
    comparisonRow(`point reads of ${ROWS} documents, HTTP, ${CALLERS} callers`, all, rate),
    comparisonRow("the same: p50", all, p50),
    comparisonRow("the same: p99", all, p99),
    comparisonRow(`point reads of ${FEW_ROWS} unchanged documents, HTTP, ${CALLERS} callers`, few, rate),
  ];
}

export async function signInRows(outer: BenchContext, program: string): Promise<Row[]> {
  await using context = outer.inner();
  const pair = await startPair(context, { program, rows: 0 });
  const keys = Array.from({ length: USERS }, (_, user) => `user-${user}@example.com`);
  const usage = new Usage(pair.syncline);
  for (const email of keys) {
    await usage.post("/api/auth/signup", { email, password: PASSWORD });
    await pair.pocketBase.request({
      ...{ method: "POST", path: "/api/collections/users/records" },
      body: JSON.stringify({ email, password: PASSWORD, passwordConfirm: PASSWORD }),
    });
  }
  const calls: Calls = {
    syncline: {
      ...{ method: "POST", path: "/api/auth/signin", keys, expected: '"accessToken":"' },
      body: `{"email":"{key}","password":"${PASSWORD}"}`,
    },
    pocketBase: {
      ...{ method: "POST", path: "/api/collections/users/auth-with-password", keys, expected: '"token":"' },
      body: `{"identity":"{key}","password":"${PASSWORD}"}`,
    },
  };
  const signIns = await compareCalls(context, { pair, calls, clients: USERS, durationMs: 4_000 });
  return [
    comparisonRow(`sign-ins with a password, ${USERS} at once: argon2id, bcrypt`, signIns, rate),
    comparisonRow("the same: p50", signIns, p50),
  ];
}
