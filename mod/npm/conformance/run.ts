/** `syncline conformance`: runs a client against scenarios of the protocol. */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { PlainError } from "../node/plain_error.ts";
import { filled, type Json, listMismatch, mismatch, type Variables } from "./frames.ts";
import { AsyncQueue, type StepTimeout } from "./async_queue.ts";
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
  /** Number of WebSocket frames of `server`, with pings between them, whose last one has to be answered. */
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

interface ConformanceOptions {
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

/** Time for the events of frames that have arrived, and for frames and connections that no one expects. */
const QUIET_MS = 200;

/** Number of scenarios that run at the same time, each with its own server and driver. */
const PARALLEL = 4;

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
  const selected = only.length === 0 ? names : only;
  const lines: string[] = [];
  let failed = 0;
  let printed = 0;
  const queue = selected.entries();
  const work = async () => {
    for (const [at, name] of queue) {
      const { line, isFailed } = await outcome(name, { folder, driver, stepMs });
      lines[at] = line;
      if (isFailed) failed++;
      for (let next = lines[printed]; next !== undefined; next = lines[++printed]) print(next);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, work));
  print(failed === 0 ? "The client passed" : `The client failed ${failed} scenarios`);
  return failed === 0;
}

type ScenarioOptions = Required<Pick<ConformanceOptions, "driver" | "stepMs">>;

async function outcome(
  name: string,
  { folder, ...options }: ScenarioOptions & Pick<ConformanceOptions, "folder">,
): Promise<{ readonly line: string; readonly isFailed: boolean }> {
  const steps = readFileSync(new URL(`${name}.jsonl`, folder), "utf8").trim().split("\n")
    .map((line) => JSON.parse(line) as Step);
  const title = `${name}: ${steps[0]?.scenario}`;
  try {
    await runScenario(steps, options);
    return { line: `ok       ${title}`, isFailed: false };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return error instanceof Skipped
      ? { line: `skipped  ${title} (${reason})`, isFailed: false }
      : { line: `FAILED   ${title}\n         ${reason}`, isFailed: true };
  }
}

async function runScenario(steps: readonly Step[], { driver, stepMs }: ScenarioOptions): Promise<void> {
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
    timeout: { ms: stepMs, signal: failed.signal },
  });
  for (const [i, step] of steps.entries()) {
    await Promise.race([run.step(step), failure]).catch((error) => {
      if (error instanceof Skipped) throw error;
      throw new Error(`line ${i + 1}: ${error.message}`);
    });
  }
  await Promise.race([run.end(), failure]);
  if (faults[0] !== undefined) throw new Error(faults[0]);
}

class ScenarioRun {
  readonly #server: ScriptedServer;
  readonly #client: Driver;
  readonly #variables: Variables;
  readonly #timeout: StepTimeout;
  #connection: Connection | null = null;
  #needs: readonly string[] = [];

  constructor({ server, client, variables, timeout }: {
    readonly server: ScriptedServer;
    readonly client: Driver;
    readonly variables: Variables;
    readonly timeout: StepTimeout;
  }) {
    this.#server = server;
    this.#client = client;
    this.#variables = variables;
    this.#timeout = timeout;
  }

  async step(step: Step): Promise<void> {
    if (step.needs !== undefined) this.#needs = step.needs;
    if (step.command !== undefined) this.#client.send(filled(step.command, this.#variables));
    if (step.open) this.#connection = await this.#server.connections.next("A connection", this.#timeout);
    if (step.client !== undefined) await this.#frames(step.client);
    if (step.server !== undefined) this.#current.send(step.server, step.fragments);
    if (step.ping) this.#current.ping();
    if (step.ping || step.fragments !== undefined) {
      await this.#current.pongs.next("The answer to a WebSocket ping", this.#timeout);
    }
    if (step.event !== undefined) await this.#events(step.event);
    if (step.close !== undefined) this.#current.socket.close(step.close, "");
    if (step.cut) this.#current.socket.terminate();
    if (step.closed) await this.#current.closed.next("The end of the connection", this.#timeout);
  }

  /** Throws if the client sends more than the scenario expects. */
  async end(): Promise<void> {
    await pause(QUIET_MS);
    if (this.#server.connections.all().length > 0) throw new Error("The client opened another connection");
    const [frame] = this.#connection?.frames.all() ?? [];
    if (frame !== undefined) throw new Error(`The client also sent ${JSON.stringify(frame)}`);
    this.#noEvents();
  }

  async #frames(pattern: Json): Promise<void> {
    const patterns = Array.isArray(pattern) ? pattern as readonly Json[] : [pattern];
    const frames: Json[] = [];
    for (const each of patterns) {
      const what = `The frame ${JSON.stringify(each)}`;
      const frame = await this.#current.frames.next(what, this.#timeout);
      frames.push(frame);
      const missing = frame["type"] === "Connect" &&
        this.#needs.find((feature) => !this.#current.features.includes(feature));
      if (typeof missing === "string") throw new Skipped(`without the feature ${missing}`);
    }
    const reason = Array.isArray(pattern)
      ? listMismatch(patterns, frames, this.#variables)
      : mismatch(pattern, frames[0] ?? null, this.#variables);
    if (reason !== null) throw new Error(`The client sent ${JSON.stringify(frames)}: ${reason}`);
  }

  async #events(pattern: Json): Promise<void> {
    if (!Array.isArray(pattern)) {
      const event = await this.#client.events.next(`The event ${JSON.stringify(pattern)}`, this.#timeout);
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
      events.push(await this.#client.events.next(`The event ${JSON.stringify(each)}`, this.#timeout));
    }
    const reason = listMismatch(pattern, events, this.#variables);
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

/** Elsewhere, a signal reaches only the driver itself. */
const HAS_GROUPS = process.platform !== "win32";

/** Drivers that run. */
const drivers = new Set<Driver>();

/** The process of the client: commands on standard input, events on standard output, as lines of JSON. */
class Driver implements AsyncDisposable {
  readonly events = new AsyncQueue<Json>();
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
    this.#child = spawn(program, args, { env, stdio: ["pipe", "pipe", "inherit"], detached: HAS_GROUPS });
    drivers.add(this);
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

  /** Ends the driver and the processes that it started, such as those of a shell or of npx. */
  kill(signal: "SIGTERM" | "SIGKILL"): void {
    const { pid } = this.#child;
    try {
      if (HAS_GROUPS && pid !== undefined) process.kill(-pid, signal);
      else this.#child.kill(signal);
    } catch {
      // They have ended.
    }
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
    const timer = setTimeout(() => this.kill("SIGKILL"), END_MS);
    await this.#exit;
    clearTimeout(timer);
    // Processes of the group may have outlived the driver.
    this.kill("SIGKILL");
    this.#child.stdout?.destroy();
    drivers.delete(this);
  }
}

const USAGE = `Usage: syncline conformance [--only <scenarios>] -- <driver> [arguments]

Runs a client of the sync protocol against scenarios. The driver is a program that reads commands and prints
events as lines of JSON; the page "Sync protocol" of the documentation describes it.
`;

interface Arguments {
  readonly only: readonly string[];
  readonly driver: readonly string[];
  readonly help: boolean;
}

/** Options end before `--` or the driver. */
function parsed(args: readonly string[]): Arguments {
  let end = 0;
  while (args[end]?.startsWith("-") && args[end] !== "--") end += args[end] === "--only" ? 2 : 1;
  const options = { only: { type: "string" }, help: { type: "boolean", short: "h" } } as const;
  try {
    const { only, help = false } = parseArgs({ args: args.slice(0, end), options }).values;
    const driver = args.slice(args[end] === "--" ? end + 1 : end);
    if (driver.length === 0 && !help) throw new PlainError("Pass the driver after --");
    return { only: only?.split(",") ?? [], driver, help };
  } catch (error) {
    throw new PlainError((error as Error).message);
  }
}

/** The command. Returns its exit code. */
export async function conformance(args: readonly string[], folder: URL): Promise<number> {
  const interrupted = () => end(130);
  const terminated = () => end(143);
  try {
    const { only, driver, help } = parsed(args);
    if (help) {
      process.stdout.write(USAGE);
      return 0;
    }
    process.on("SIGINT", interrupted).on("SIGTERM", terminated);
    const print = (line: string) => void process.stdout.write(`${line}\n`);
    return await runConformance({ folder, driver, only, print }) ? 0 : 1;
  } catch (error) {
    // Of this module, which is bundled apart from the other commands.
    if (!(error instanceof PlainError)) throw error;
    process.stderr.write(`syncline: ${error.message}\n\n${USAGE}`);
    return 2;
  } finally {
    process.off("SIGINT", interrupted).off("SIGTERM", terminated);
  }
}

/** Ends with the drivers, which have process groups of their own. */
function end(code: number): void {
  // Shells start background processes that ignore SIGINT.
  for (const driver of drivers) driver.kill("SIGTERM");
  process.exit(code);
}
