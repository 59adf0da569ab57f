/** Calls over HTTP: creates, point reads and sign-ins. Each answer is checked. */
import assert from "node:assert/strict";
import type { BenchContext } from "../../context.ts";
import type { ClosedLoopResult } from "../../load/closed_loop.ts";
import type { RequestTemplate } from "../../load/request_templates.ts";
import { WORKLOAD_SEED } from "../../../tests/support/processes/random.ts";
import { Usage } from "../../support/usage.ts";
import type { Row } from "../../table.ts";
import { type Figure, inRoundRobin, rowOf, type Turns } from "../cheap/turns.ts";
import { type Pair, startPair, TEXT } from "./pair.ts";
import { ROWS_PATH } from "./pocketbase.ts";

const CALLERS = 64;
/** Ten times as many as Syncline caches results of. */
const ROWS = 100_000;
const FEW_ROWS = 100;
const PEOPLE = 8;
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

/** Both servers are called in turns. */
async function callBoth(
  context: BenchContext,
  { pair, calls, clients, durationMs = context.full ? 4_000 : 1_500 }: {
    readonly pair: Pair;
    readonly calls: Calls;
    readonly clients: number;
    readonly durationMs?: number;
  },
): Promise<Turns<ClosedLoopResult>> {
  await using inner = context.inner();
  const load = inner.load();
  const seeds = { syncline: WORKLOAD_SEED, pocketBase: WORKLOAD_SEED };
  const side = (name: keyof Calls) => ({
    pid: pair[name].pid,
    work: async () => {
      const { port } = pair[name];
      // Other documents in each round, the same ones on both sides.
      const workload = { accounts: 1, alpha: 0, seed: ++seeds[name] };
      const options = { port, clients, inFlight: 1, durationMs, workload, calls: calls[name] };
      const result = await load.run("httpLoop", options);
      assert.equal(result.failed, 0, result.failure ?? "");
      return result;
    },
  });
  return await inRoundRobin(context, {
    ours: side("syncline"),
    control: side("pocketBase"),
    count: ({ answered }) => answered,
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
  const many = await callBoth(context, { pair, calls, clients: CALLERS });
  const one = await callBoth(context, { pair, calls, clients: 1 });
  await pair.pocketBase.checkSynchronous(synchronous);
  const mode = `PocketBase with synchronous = ${synchronous.toUpperCase()}`;
  return [
    rowOf(`creates, HTTP, ${CALLERS} callers; ${mode}`, many, rate),
    rowOf(`the same: p50`, many, p50),
    rowOf(`the same: p99`, many, p99),
    rowOf(`creates, HTTP, one caller back to back; ${mode}: p50`, one, p50),
    rowOf(`the same: p99`, one, p99),
  ];
}

export async function readRows(outer: BenchContext, program: string): Promise<Row[]> {
  await using context = outer.inner();
  const pair = await startPair(context, { program, rows: ROWS });
  const read = async (count: number) => {
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
    return await callBoth(context, { pair, calls, clients: CALLERS });
  };
  const all = await read(ROWS);
  const few = await read(FEW_ROWS);
  return [
    rowOf(`point reads of ${ROWS} documents, HTTP, ${CALLERS} callers`, all, rate),
    rowOf(`the same: p50`, all, p50),
    rowOf(`the same: p99`, all, p99),
    rowOf(`point reads of ${FEW_ROWS} unchanged documents, HTTP, ${CALLERS} callers`, few, rate),
  ];
}

export async function signInRows(outer: BenchContext, program: string): Promise<Row[]> {
  await using context = outer.inner();
  const pair = await startPair(context, { program, rows: 0 });
  const keys = Array.from({ length: PEOPLE }, (_, person) => `person-${person}@example.com`);
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
  const turns = await callBoth(context, { pair, calls, clients: PEOPLE, durationMs: 4_000 });
  return [
    rowOf(`sign-ins with a password, ${PEOPLE} at once: argon2id, bcrypt`, turns, rate),
    rowOf(`the same: p50`, turns, p50),
  ];
}
