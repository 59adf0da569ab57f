/** Runs scenarios, each beside the bystander, and prints their table. */
import assert from "node:assert/strict";
import { ServerProcess } from "../../support/processes/server_process.ts";
import { HANG_MS } from "../../support/waiting.ts";
import { Bystander, type Waits } from "./bystander.ts";
import { elsewhere } from "./elsewhere.ts";
import type { LatencyLimits, Result, Scenario } from "./scenario.ts";

const LOG_LINES_MAX = 10_000;
/** Duration of the bystander's activity in each row. */
const ROW_MS_MIN = 1_000;
/** Allowed latency, as a multiple of the latency beside other programs. */
const CONTROL_FACTOR = 4;
/** If the control or the lateness is above this, the limit for 99 % of the time is not checked. */
const P99_CONCLUSIVE_MS = 100;
/** Allowed latency, as a multiple of the lateness of the bystander's pauses. A query wakes processes five times. */
const LATE_FACTOR = 10;

/** A running server and helpers for scenarios. */
class Place implements AsyncDisposable {
  readonly dataDir: string;
  readonly log: string[] = [];
  #server: ServerProcess | null = null;
  #listeners = new Set<(line: string) => void>();
  /** Whether the process has ended unexpectedly. */
  gone = false;
  #users = 0;
  /** The user of bystanders that share one. */
  bystander: string | null = null;

  private constructor(dataDir: string) {
    this.dataDir = dataDir;
  }

  static async open(flags: readonly string[]): Promise<Place> {
    const place = new Place(await Deno.makeTempDir({ prefix: "syncline-hostile-" }));
    try {
      const server = await ServerProcess.start({
        dataDir: place.dataDir,
        functions: "tests/hostile/app",
        flags,
        onLine: (line) => place.#onLine(line),
      });
      place.#server = server;
      server.exited.then(() => {
        place.gone = true;
      });
      return place;
    } catch (error) {
      await Deno.remove(place.dataDir, { recursive: true });
      throw error;
    }
  }

  get server(): ServerProcess {
    if (this.#server === null) throw new Error("The server has not started");
    return this.#server;
  }

  async signUp(): Promise<string> {
    const email = `user${this.#users++}-${crypto.randomUUID()}@example.com`;
    const response = await fetch(`http://127.0.0.1:${this.server.port}/api/auth/signup`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ email, password: "correct horse battery" }),
    });
    const answer = await response.json();
    assert.equal(response.status, 200, JSON.stringify(answer));
    return answer.accessToken;
  }

  logged(pattern: RegExp): Promise<string> {
    const printed = this.log.find((line) => pattern.test(line));
    if (printed !== undefined) return Promise.resolve(printed);
    return new Promise((resolve, reject) => {
      const listener = (line: string) => {
        if (!pattern.test(line)) return;
        clearTimeout(timer);
        this.#listeners.delete(listener);
        resolve(line);
      };
      this.#listeners.add(listener);
      const timer = setTimeout(() => {
        this.#listeners.delete(listener);
        reject(new Error(`The log does not say ${pattern}; last lines:\n${this.server.lastOutput}`));
      }, HANG_MS);
    });
  }

  #onLine(line: string): void {
    if (this.log.length < LOG_LINES_MAX) this.log.push(line);
    for (const listener of this.#listeners) listener(line);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]();
    await Deno.remove(this.dataDir, { recursive: true });
  }
}

/** Servers of a run of the suite: rows with equal flags share one. */
export class Suite implements AsyncDisposable {
  readonly results: Result[] = [];
  readonly #isMeasured: boolean;
  readonly #places = new Map<string, Place>();
  /** A query's latency in 99 % of the time on a machine with other load. */
  #controlP99Ms = 0;

  /** `isMeasured`: attacks run for their full time, and the bystander's latencies must stay within their limits. */
  constructor({ isMeasured }: { readonly isMeasured: boolean }) {
    this.#isMeasured = isMeasured;
  }

  /** Runs a scenario. Throws if its rule is violated; the row is then not in the table. */
  async run(scenario: Scenario): Promise<void> {
    if (!scenario.alone || !this.#isMeasured) {
      return await this.#runAt(await this.#place(scenario.flags ?? []), scenario);
    }
    await using place = await Place.open(scenario.flags ?? []);
    await this.#runAt(place, scenario);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#places.values()].map((place) => place[Symbol.asyncDispose]()));
    this.#places.clear();
  }

  async #place(flags: readonly string[]): Promise<Place> {
    const key = JSON.stringify(flags);
    const known = this.#places.get(key);
    if (known !== undefined && !known.gone) return known;
    await known?.[Symbol.asyncDispose]();
    const place = await Place.open(flags);
    this.#places.set(key, place);
    return place;
  }

  #onThisMachine(limits: LatencyLimits, { late }: Waits): LatencyLimits {
    const { queryP99Ms } = limits;
    // If the latency is as high beside other programs, the server's share cannot be measured.
    const isConclusive = this.#controlP99Ms <= P99_CONCLUSIVE_MS && late.p99Ms <= P99_CONCLUSIVE_MS;
    if (queryP99Ms === undefined || !isConclusive) return { ...limits, queryP99Ms: Infinity };
    return {
      ...limits,
      queryP99Ms: Math.max(queryP99Ms, CONTROL_FACTOR * this.#controlP99Ms, LATE_FACTOR * late.p99Ms),
    };
  }

  async #runAt(place: Place, scenario: Scenario): Promise<void> {
    place.log.length = 0;
    // Each sign-up takes 0.1 s of processor time.
    const token = (this.#isMeasured ? null : place.bystander) ?? await place.signUp();
    place.bystander = token;
    using bystander = await Bystander.start({
      port: place.server.port,
      token,
      isMeasured: this.#isMeasured,
    });
    const startedAt = performance.now();
    const measured = await scenario.attack({
      server: place.server,
      log: place.log,
      dataDir: place.dataDir,
      isFull: this.#isMeasured,
      served: () => bystander.served(),
      signUp: () => place.signUp(),
      logged: (pattern) => place.logged(pattern),
    });
    const ms = performance.now() - startedAt;
    if (this.#isMeasured) {
      // A short attack has too few waits to measure.
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, ROW_MS_MIN - ms)));
    }
    const { figure, limits } = typeof measured === "string"
      ? { figure: measured, limits: scenario.limits }
      : measured;
    const waits = await bystander.stop();
    this.results.push({ scenario, waits, figure, ms });
    assert(!place.gone, `The server has ended; last lines:\n${place.server.lastOutput}`);
    if (scenario.isControl === true) this.#controlP99Ms = Math.max(this.#controlP99Ms, waits.query.p99Ms);
    if (scenario.mayFail !== true) assert.deepEqual(waits.failures, [], "calls of the bystander failed");
    if (this.#isMeasured && limits !== null) checkWaits(this.#onThisMachine(limits, waits), waits);
  }
}

function checkWaits(limits: LatencyLimits, waits: Waits): void {
  const { queryMs, queryP99Ms = queryMs, mutationMs, shownMs = queryMs + mutationMs } = limits;
  const waited: readonly (readonly [what: string, ms: number, mostMs: number])[] = [
    ["for a query", waits.query.longestMs, queryMs],
    ["for a query at 99 of 100 moments", waits.query.p99Ms, queryP99Ms],
    ["for a mutation", waits.mutation.longestMs, mutationMs],
    ["to be shown a mutation", waits.shown.longestMs, shownMs],
  ];
  for (const [what, ms, mostMs] of waited) {
    assert(
      ms <= mostMs,
      `the bystander waited ${ms.toFixed(0)} ms, at most ${mostMs.toFixed(0)} were right: ${what}`,
    );
  }
}

/** Formats the results as a table. */
export function tableOf(results: readonly Result[]): string {
  const ms = (value: number | undefined) => value === undefined ? "" : value.toFixed(value < 10 ? 1 : 0);
  const rows = results.map(({ scenario, waits, figure, ms: took }) => [
    scenario.rule,
    scenario.name,
    ms(waits?.query.p50Ms),
    ms(waits?.query.p99Ms),
    ms(waits?.query.longestMs),
    ms(waits?.mutation.longestMs),
    ms(waits?.shown.longestMs),
    (took / 1000).toFixed(1),
    figure,
    scenario.before ?? "",
  ]);
  const others = elsewhere.map((
    { rule, name, test, before },
  ) => [rule, name, "", "", "", "", "", "", test, before]);
  rows.push(...others);
  const head = [
    "rule",
    "attack",
    "query p50",
    "p99",
    "longest",
    "mutation ms",
    "shown ms",
    "took s",
    "figure, or test",
    "before",
  ];
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}
