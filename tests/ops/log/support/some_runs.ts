/** Runs of all kinds, and filters that match some of them. */
import { isServicePath, type RunFilter } from "../../../../mod/ops/log/run_filter.ts";
import { type RunRecord, searchedText, VERSION_INDEX } from "../../../../mod/ops/log/run_record.ts";

export const START = Date.UTC(2030, 0, 1);

/** Deterministic pseudo-random numbers. */
export function seeded(seed: number): (below: number) => number {
  return (below) => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor(seed / 2 ** 32 * below);
  };
}

const words = ["payment", "ORDER", "failed", "Über", "50%_off", 'say "hi"', "a\nb", "x"];

export function someRun(random: (below: number) => number, at: number): RunRecord {
  const lines = random(3) === 0 ? [`[INFO] ${words[random(8)]} ${words[random(8)]}`] : [];
  const failed = random(20) === 0;
  const path = `${random(4) === 0 ? "_system/" : ""}mod${random(3)}:fn${random(4)}`;
  const caller = random(2) === 0 ? null : `user:u${random(30)}`;
  const error = failed ? { kind: "internal", message: `boom ${words[random(8)]}` } as const : null;
  return [
    at,
    path,
    random(4),
    caller,
    failed ? 2 : 0,
    lines.length > 0 ? 2 + random(3) : 0,
    at * 1000,
    at,
    at % 10,
    0,
    1,
    2,
    3,
    4,
    error,
    lines,
    // Runs of an earlier release, then of two versions. One is served twice.
    [null, "aa01", "aa02", "aa01"][Math.floor((at - START) / 700) % 4] ?? null,
  ];
}

/** All kinds of filters; some match none of these runs. */
export const filters: readonly RunFilter[] = [
  {},
  { functions: ["mod1:fn2"] },
  { functions: ["mod1*", "mod2:fn0"] },
  { functions: ["nothing"] },
  { kinds: [1, 2] },
  { system: false },
  { system: true, kinds: [0] },
  { outcomes: [2] },
  { outcomes: [0, 2] },
  { level: 3 },
  { level: 1 },
  { text: "payment" },
  { text: "PAYMENT order" },
  { text: "über" },
  { text: "0%_o" },
  { text: '"hi"' },
  { text: "x" },
  { text: "a\nb" },
  { text: "absent from all lines" },
  { text: "payment", functions: ["mod0:fn0"] },
  { text: "boom", outcomes: [2], system: false },
  { caller: null },
  { caller: "user:u7" },
  { caller: "user:u7", text: "failed" },
  { caller: "user:unknown" },
  { request: (START + 777) * 1000 },
  { minMs: 5 },
  { minMs: 5, text: "payment" },
  { from: START + 500, to: START + 900 },
  { version: "aa" },
  { version: "aa01" },
  { version: "aa02", outcomes: [2] },
  { version: "aa01", text: "payment" },
  { version: "aa01", from: START + 1_000, to: START + 2_500 },
  { version: "bb" },
  { from: START + 500, level: 4, functions: ["mod*"] },
];

/** Whether a run matches a filter, one condition after the other. */
export function isWanted(filter: RunFilter, record: RunRecord): boolean {
  const [at, path, kind, caller, outcome, level, request, , durationMs] = record;
  const { functions, kinds, outcomes, text, from = -Infinity, to = Infinity } = filter;
  const matches = (name: string) => name.endsWith("*") ? path.startsWith(name.slice(0, -1)) : path === name;
  if (at < from || at >= to) return false;
  if (functions !== undefined && !functions.some(matches)) return false;
  if (kinds !== undefined && !kinds.includes(kind)) return false;
  if (filter.system !== undefined && isServicePath(path) !== filter.system) return false;
  if (outcomes !== undefined && !outcomes.includes(outcome)) return false;
  if (filter.level !== undefined && level < filter.level) return false;
  if (filter.caller !== undefined && filter.caller !== caller) return false;
  if (filter.minMs !== undefined && durationMs < filter.minMs) return false;
  const { [VERSION_INDEX]: version = null } = record;
  if (filter.version !== undefined && !version?.startsWith(filter.version)) return false;
  if (filter.request !== undefined && filter.request !== request) return false;
  const searched = searchedText(record[14], record[15]).toLowerCase();
  return text === undefined || searched.includes(text.toLowerCase());
}
