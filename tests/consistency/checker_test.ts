/** The checker of list histories finds each kind of anomaly, and reports none in correct histories. */
import assert from "node:assert/strict";
import { mulberry32 } from "../support/processes/random.ts";
import { check } from "./support/checker.ts";
import type { History, Lists, Mutation, Step, View } from "./support/history.ts";

/** Appends are written `x+1`, reads `x=1,2`. */
function steps(text: string): Step[] {
  return text.split(" ").map((word): Step => {
    const [, key = "", sign, rest = ""] = /^(\w+)([+=])(.*)$/.exec(word) ?? [];
    if (sign === "+") return { type: "append", key, value: Number(rest) };
    return { type: "read", key, values: numbers(rest) };
  });
}

function numbers(text: string): number[] {
  return text === "" ? [] : text.split(",").map(Number);
}

function lists(text: string): Lists {
  return Object.fromEntries(
    text.split(" ").map((word) => {
      const [key = "", values = ""] = word.split("=");
      return [key, numbers(values)];
    }),
  );
}

/** A mutation that overlaps all others if it has no times. */
function mutation(text: string, more: Partial<Mutation> = {}): Mutation {
  const base = { machine: "m", startedAt: 0, endedAt: 100, outcome: "committed", ts: null } as const;
  return { id: text, steps: steps(text), ...base, ...more };
}

function history(final: string, more: Partial<History>): History {
  return { mutations: [], queries: [], views: [], final: lists(final), ...more };
}

function view(ts: number, text: string, more: Partial<View> = {}): View {
  return { socket: "s", ts, atLeastTs: 0, lists: lists(text), ...more };
}

const query = (text: string, startedAt = 0, machine = "m") => ({
  id: text,
  machine,
  startedAt,
  lists: lists(text),
});

const PLANTED: Readonly<Record<string, readonly [name: string, History]>> = {
  "two orders of appends": [
    "G0",
    history("x=1,2 y=4,3", { mutations: [mutation("x+1 y+3"), mutation("x+2 y+4")] }),
  ],
  "two mutations that read from each other": [
    "G1c",
    history("x=1 y=2", { mutations: [mutation("x+1 y=2"), mutation("y+2 x=1")] }),
  ],
  "an aborted append": [
    "aborted append",
    history("x=1", { mutations: [mutation("x+1", { outcome: "failed" })] }),
  ],
  "a read between two appends of a mutation": [
    "intermediate read",
    history("x=1,2", { mutations: [mutation("x+1 x+2"), mutation("x=1")] }),
  ],
  "a mutation that misses its own append": [
    "own append missing",
    history("x=1", { mutations: [mutation("x+1 x=")] }),
  ],
  "a read of half a mutation": [
    "G-single",
    history("x=1 y=1001", { mutations: [mutation("x+1 y+1001"), mutation("x=1 y=")] }),
  ],
  "a query of half a mutation": [
    "G-single",
    history("x=1 y=1001", { mutations: [mutation("x+1 y+1001")], queries: [query("x=1 y=")] }),
  ],
  "write skew": [
    "G2",
    history("x=1 y=2", { mutations: [mutation("x+1 y="), mutation("y+2 x=")] }),
  ],
  "a lost append": ["lost append", history("x=", { mutations: [mutation("x+1")] })],
  "an append that was read and is lost": [
    "lost append",
    history("x=2", {
      mutations: [mutation("x+1", { outcome: "unknown" }), mutation("x+2")],
      queries: [query("x=1")],
    }),
  ],
  "half a mutation of unknown outcome": [
    "torn mutation",
    history("x=1 y=", { mutations: [mutation("x+1 y+2", { outcome: "unknown", endedAt: Infinity })] }),
  ],
  "a duplicate append": ["duplicate append", history("x=1,1", { mutations: [mutation("x+1")] })],
  "a value that no client sent": ["unknown value", history("x=9", {})],
  "appends against the order in time": [
    "G0-realtime",
    history("x=2,1", {
      mutations: [mutation("x+1", { endedAt: 10 }), mutation("x+2", { startedAt: 20 })],
    }),
  ],
  "a mutation that reads a stale state": [
    "G-single-realtime",
    history("x=1", { mutations: [mutation("x+1", { endedAt: 10 }), mutation("x=", { startedAt: 20 })] }),
  ],
  "a stale mutation behind a chain of others": [
    "G-single-realtime",
    history("x=1 y=2", {
      mutations: [
        mutation("x+1", { endedAt: 10 }),
        mutation("y+2", { startedAt: 11, endedAt: 12 }),
        mutation("y=2 x=", { startedAt: 20 }),
      ],
    }),
  ],
  "a query older than an acknowledged append": [
    "G-single-realtime",
    history("x=1", { mutations: [mutation("x+1", { endedAt: 10 })], queries: [query("x=", 20)] }),
  ],
  "a view without an older mutation": [
    "stale read",
    history("x=1", { mutations: [mutation("x+1", { ts: 5 })], views: [view(6, "x=")] }),
  ],
  "a view with a newer mutation": [
    "stale read",
    history("x=1", {
      mutations: [mutation("x+1", { ts: 5 })],
      views: [view(4, "x=1")],
    }),
  ],
  "a torn view": [
    "torn view",
    history("x=1 y=2", {
      mutations: [mutation("x+1 y+2", { outcome: "unknown" })],
      views: [view(6, "x=1 y=")],
    }),
  ],
  "two sockets that disagree about a ts": [
    "view disagrees",
    history("x=1", {
      mutations: [mutation("x+1", { outcome: "unknown" })],
      views: [view(6, "x=1"), view(7, "x=", { socket: "t" })],
    }),
  ],
  "a socket that goes back": ["view goes back", history("x=", { views: [view(6, "x="), view(5, "x=")] })],
  "a socket older than its client": [
    "stale view",
    history("x=", { views: [view(6, "x=", { atLeastTs: 7 })] }),
  ],
  "a mutation that reads from after its ts": [
    "view disagrees",
    history("x=1 y=2", { mutations: [mutation("x+1", { ts: 9 }), mutation("x=1 y+2", { ts: 5 })] }),
  ],
};

for (const [what, [name, planted]] of Object.entries(PLANTED)) {
  Deno.test(`the checker finds ${what}`, () => {
    const [anomaly] = check(planted);
    // Both bounds of a commit are known: which read is wrong does not matter.
    const names = name === "view disagrees" || name === "stale read"
      ? ["view disagrees", "stale read"]
      : [name];
    assert.ok(names.includes(anomaly?.name ?? "none"), JSON.stringify(anomaly));
  });
}

const KEYS = ["x", "y", "z"];

/** Executes mutations one after the other on a model, with times that overlap. */
function serialHistory(seed: number, count: number): { -readonly [Name in keyof History]: History[Name] } {
  const random = mulberry32(seed);
  const pick = (below: number) => Math.floor(random() * below);
  const state: Record<string, number[]> = Object.fromEntries(KEYS.map((key) => [key, []]));
  const copy = () => Object.fromEntries(Object.entries(state).map(([key, values]) => [key, [...values]]));
  const mutations: Mutation[] = [];
  const views: View[] = [];
  const queries = [];
  for (let ts = 1; ts <= count; ts++) {
    const steps = Array.from({ length: 1 + pick(4) }, (_, at): Step => {
      const key = KEYS[pick(KEYS.length)] ?? "x";
      const values = state[key] ?? [];
      if (random() < 0.5) return { type: "read", key, values: [...values] };
      values.push(ts * 10 + at);
      return { type: "append", key, value: ts * 10 + at };
    });
    const isKnown = random() < 0.9;
    mutations.push({
      id: `mutation ${ts}`,
      machine: `m${pick(2)}`,
      steps: isKnown ? steps : steps.map((step) => step.type === "read" ? { ...step, values: null } : step),
      startedAt: ts - 5 * random(),
      endedAt: isKnown ? ts + 5 * random() : Infinity,
      outcome: isKnown ? "committed" : "unknown",
      ts: isKnown ? ts : null,
    });
    if (random() < 0.3) views.push({ socket: "s", ts, atLeastTs: 0, lists: copy() });
    if (random() < 0.3) {
      queries.push({ id: `query ${ts}`, machine: "m0", startedAt: ts - random() * 3, lists: copy() });
    }
  }
  return { mutations, queries, views, final: copy() };
}

Deno.test("the checker finds nothing in serial histories with unknown outcomes", () => {
  for (let seed = 1; seed <= 20; seed++) assert.deepEqual(check(serialHistory(seed, 60)), [], `seed ${seed}`);
});

Deno.test("the checker finds one wrong read in a long history, with a short counterexample", () => {
  const history = serialHistory(1, 2_000);
  const at = history.mutations.findIndex(({ steps, outcome }, at) =>
    at > 1_000 && outcome === "committed" &&
    steps.every((step) => step.type === "read" && (step.values?.length ?? 0) > 50)
  );
  const wrong = history.mutations[at];
  assert.ok(wrong !== undefined);
  const before = (values: readonly number[]) => values.filter((value) => value < (at - 100) * 10);
  history.mutations = history.mutations.with(at, {
    ...wrong,
    steps: wrong.steps.map((step) =>
      step.type === "read" ? { ...step, values: before(step.values ?? []) } : step
    ),
  });
  const [anomaly] = check(history);
  assert.match(anomaly?.name ?? "", /^G-single/);
  assert.match(anomaly?.text ?? "", /^[23] operations/);
  assert.ok(anomaly?.text.includes(wrong.id));
});
