/** `syncline conformance`: runs a client against recorded scenarios of the protocol. */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { PlainError } from "../node/plain_error.ts";
import { filled, type Json, mismatch, type Variables } from "./frames.ts";
import { Incoming, type Patience } from "./incoming.ts";
import { type Connection, ScriptedServer } from "./scripted_server.ts";

/** One line of a scenario. It has one of the members. */
interface Step {
  /** The first line. */
  readonly scenario?: string;
  /** Features of `Connect` without which the scenario does not apply. */
  readonly needs?: readonly string[];
  /** Sent to the driver. */
  readonly command?: Json;
  /** Waits for a new connection. */
  readonly open?: true;
  /** The next frame of the client; a list: the next frames, in any order. */
  readonly client?: Json;
  readonly server?: Json;
  /** Number of WebSocket frames of `server`. */
  readonly fragments?: number;
  /** The next line of the driver; a list: the next lines, in any order, and an empty one: none so far. */
  readonly event?: Json;
  /** Sends a WebSocket ping and waits for its answer. */
  readonly ping?: true;
  /** Closes the connection with a code. */
  readonly close?: number;
  /** Ends the connection without a close frame. */
  readonly cut?: true;
  /** Waits until the client closes the connection. */
  readonly closed?: true;
}

export interface ConformanceOptions {
  readonly folder: URL;
  /** Program and arguments of the driver. */
  readonly driver: readonly string[];
  /** Names of scenarios. Default: all. */
  readonly only?: readonly string[];
  /** Time that the client has for each step. */
  readonly stepMs?: number;
  /** Called with the outcome of each scenario. */
  readonly print: (line: string) => void;
}

/** Time for the events of frames that have arrived. */
const QUIET_MS = 200;

/** Time for a driver to end after its standard input was closed. */
const END_MS = 2_000;

/** The scenario needs a feature that the client does not have. */
class Skipped extends Error {}

/** Runs the scenarios. Returns whether the client passed all that apply to it. */
export async function runConformance(
  { folder, driver, only = [], stepMs = 10_000, print }: ConformanceOptions,
): Promise<boolean> {
  const names = readdirSync(folder).filter((name) => name.endsWith(".jsonl")).map((name) => name.slice(0, -6))
    .toSorted();
  const unknown = only.find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw new PlainError(`There is no scenario "${unknown}". Known: ${names.join(", ")}`);
  }
  let failed = 0;
  for (const name of only.length === 0 ? names : only) {
    const steps = readFileSync(new URL(`${name}.jsonl`, folder), "utf8").trim().split("\n")
      .map((line) => JSON.parse(line) as Step);
    const title = `${name}: ${steps[0]?.scenario}`;
    try {
      await runScenario(steps, { driver, stepMs });
      print(`ok       ${title}`);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (!(error instanceof Skipped)) failed++;
      print(
        error instanceof Skipped ? `skipped  ${title} (${reason})` : `FAILED   ${title}\n         ${reason}`,
      );
    }
  }
  print(failed === 0 ? "The client passed" : `The client failed ${failed} scenarios`);
  return failed === 0;
}

async function runScenario(
  steps: readonly Step[],
  { driver, stepMs }: Pick<ConformanceOptions, "driver"> & { readonly stepMs: number },
): Promise<void> {
  // A message of more than 65,535 bytes.
  const variables: Variables = new Map([["$large", "x".repeat(70_000)]]);
  const faults: string[] = [];
  let fail: (reason: string) => void = () => {};
  // Node 20 has no `Promise.withResolvers`.
  const failure = new Promise<never>((_, reject) => fail = (reason) => reject(new Error(reason)));
  const failed = new AbortController();
  failure.catch(() => failed.abort());
  await using server = await ScriptedServer.start(variables, (reason) => {
    faults.push(reason);
    fail(reason);
  });
  await using client = new Driver(driver, {
    url: server.url,
    fail,
  });
  const run = new ScenarioRun({
    server,
    client,
    variables,
    patience: { ms: stepMs, signal: failed.signal },
  });
  for (const [i, step] of steps.entries()) {
    await Promise.race([run.step(step), failure]).catch((error) => {
      if (error instanceof Skipped) throw error;
      throw new Error(`line ${i + 1}: ${error.message}`);
    });
  }
  run.end();
  if (faults[0] !== undefined) throw new Error(faults[0]);
}

class ScenarioRun {
  readonly #server: ScriptedServer;
  readonly #client: Driver;
  readonly #variables: Variables;
  readonly #patience: Patience;
  #connection: Connection | null = null;
  #needs: readonly string[] = [];

  constructor({ server, client, variables, patience }: {
    readonly server: ScriptedServer;
    readonly client: Driver;
    readonly variables: Variables;
    readonly patience: Patience;
  }) {
    this.#server = server;
    this.#client = client;
    this.#variables = variables;
    this.#patience = patience;
  }

  async step(step: Step): Promise<void> {
    if (step.needs !== undefined) this.#needs = step.needs;
    if (step.command !== undefined) this.#client.send(filled(step.command, this.#variables));
    if (step.open) this.#connection = await this.#server.connections.next("A connection", this.#patience);
    if (step.client !== undefined) await this.#frames(step.client);
    if (step.server !== undefined) this.#current.send(step.server, step.fragments);
    if (step.event !== undefined) await this.#events(step.event);
    if (step.ping) {
      this.#current.socket.ping();
      await this.#current.pongs.next("The answer to a WebSocket ping", this.#patience);
    }
    if (step.close !== undefined) this.#current.socket.close(step.close, "");
    if (step.cut) this.#current.socket.terminate();
    if (step.closed) await this.#current.closed.next("The end of the connection", this.#patience);
  }

  /** Throws if the client has sent more than the scenario expects. */
  end(): void {
    const [frame] = this.#connection?.frames.all() ?? [];
    if (frame !== undefined) throw new Error(`The client also sent ${JSON.stringify(frame)}`);
    this.#noEvents();
  }

  async #frames(pattern: Json): Promise<void> {
    const patterns = Array.isArray(pattern) ? pattern as readonly Json[] : [pattern];
    const frames: Json[] = [];
    for (const each of patterns) {
      const what = `The frame ${JSON.stringify(each)}`;
      const frame = await this.#current.frames.next(what, this.#patience);
      frames.push(frame);
      const missing = frame["type"] === "Connect" &&
        this.#needs.find((feature) => !this.#current.features.includes(feature));
      if (typeof missing === "string") throw new Skipped(`without the feature ${missing}`);
    }
    const reason = Array.isArray(pattern)
      ? mismatch(patterns, frames, this.#variables)
      : mismatch(pattern, frames[0], this.#variables);
    if (reason !== null) throw new Error(`The client sent ${JSON.stringify(frames)}: ${reason}`);
  }

  async #events(pattern: Json): Promise<void> {
    if (!Array.isArray(pattern)) {
      const event = await this.#client.events.next(`The event ${JSON.stringify(pattern)}`, this.#patience);
      const reason = mismatch(pattern, event, this.#variables);
      if (reason !== null) throw new Error(`The driver reported ${JSON.stringify(event)}: ${reason}`);
      return;
    }
    if (pattern.length === 0) {
      // A line of the driver arrives over another pipe than its last frame.
      await pause(QUIET_MS);
      return this.#noEvents();
    }
    const events: Json[] = [];
    for (const each of pattern) {
      events.push(await this.#client.events.next(`The event ${JSON.stringify(each)}`, this.#patience));
    }
    const reason = mismatch(pattern, events, this.#variables);
    if (reason !== null) throw new Error(`The driver reported ${JSON.stringify(events)}: ${reason}`);
  }

  #noEvents(): void {
    const [event] = this.#client.events.all();
    if (event !== undefined) {
      throw new Error(`The driver reported ${JSON.stringify(event)} too early or twice`);
    }
  }

  get #current(): Connection {
    if (this.#connection === null) throw new Error("The scenario has no connection here");
    return this.#connection;
  }
}

/** The process of the client: commands on standard input, events on standard output, as lines of JSON. */
class Driver implements AsyncDisposable {
  readonly events = new Incoming<Json>();
  readonly #child: ChildProcess;
  readonly #exit: Promise<void>;
  /** The last result of each query: clients may report an equal one again. */
  readonly #results = new Map<Json, string>();
  #isEnding = false;

  constructor([program = "", ...args]: readonly string[], { url, fail }: {
    readonly url: string;
    readonly fail: (reason: string) => void;
  }) {
    const env = { ...process.env, SYNCLINE_URL: url };
    this.#child = spawn(program, args, { env, stdio: ["pipe", "pipe", "inherit"] });
    this.#exit = new Promise((resolve) => {
      this.#child.on("error", (error) => {
        fail(`Cannot start the driver "${program}": ${error.message}`);
        resolve();
      });
      this.#child.on("exit", (code, signal) => {
        if (!this.#isEnding) fail(`The driver ended with ${signal ?? `exit code ${code}`}`);
        resolve();
      });
    });
    this.#child.stdin?.on("error", () => {});
    if (this.#child.stdout === null) return;
    createInterface({ input: this.#child.stdout }).on("line", (line) => {
      try {
        this.#add(JSON.parse(line) as Json);
      } catch {
        fail(`The driver printed a line that is no JSON: ${line.slice(0, 200)}`);
      }
    });
  }

  send(command: Json): void {
    this.#child.stdin?.write(`${JSON.stringify(command)}\n`);
  }

  #add(event: Json): void {
    const { event: name, id = null } = event as Readonly<Record<string, Json>>;
    if (name === "result" || name === "failed") {
      const text = JSON.stringify(event);
      if (this.#results.get(id) === text) return;
      this.#results.set(id, text);
    }
    this.events.add(event);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnding = true;
    this.#child.stdin?.end();
    const late = new AbortController();
    await Promise.race([
      this.#exit,
      pause(END_MS, undefined, { signal: late.signal }).then(
        () => void this.#child.kill("SIGKILL"),
        () => {},
      ),
    ]);
    await this.#exit;
    late.abort();
  }
}

const USAGE = `Usage: syncline conformance [--only <scenarios>] -- <driver> [arguments]

Runs a client of the sync protocol against recorded scenarios. The driver is a program that reads commands and
prints events as lines of JSON; the page "Sync protocol" of the documentation describes it.
`;

/** The command. Returns its exit code. */
export async function conformance(args: readonly string[], folder: URL): Promise<number> {
  const only: string[] = [];
  let rest = [...args];
  if (rest[0] === "--only") {
    only.push(...(rest[1] ?? "").split(","));
    rest = rest.slice(2);
  }
  const driver = rest[0] === "--" ? rest.slice(1) : rest;
  if (driver.length === 0 || driver[0]?.startsWith("-")) {
    process.stdout.write(USAGE);
    return driver.length === 0 ? 2 : 0;
  }
  const print = (line: string) => void process.stdout.write(`${line}\n`);
  return await runConformance({ folder, driver, only, print }) ? 0 : 1;
}
