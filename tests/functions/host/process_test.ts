/** Start, messages and end of a child process, in all its behaviors. */
import assert from "node:assert/strict";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { steadyClock } from "../../../mod/kit/clock.ts";
import { isolateCommand, plainEntry } from "../../../mod/functions/host/process/command.ts";
import { type IsolateMemory, usualMemory } from "../../../mod/functions/host/process/isolate_memory.ts";
import { heapFlags } from "../../../mod/functions/host/process/start_flags.ts";
import type { Isolate, IsolateFrame, StartResult } from "../../../mod/functions/host/process/isolate.ts";
import { type MemoryReader, residentBytes } from "../../../mod/functions/host/process/memory_watch.ts";
import { ProcessStarter } from "../../../mod/functions/host/process/process_starter.ts";
import type { RunAction } from "../../../mod/functions/wire/messages.ts";
import { isolateLimits } from "../../../mod/functions/limits.ts";
import { fakeCode } from "./support/fake_code.ts";
import { call } from "./support/writer_world.ts";
import { pause, until } from "../../support/waiting.ts";

const SCRIPT = fileURLToPath(new URL("./support/process_script.ts", import.meta.url));
const PROJECT = fileURLToPath(new URL("../../../", import.meta.url));

/** Starts processes of one behavior. */
class Place implements AsyncDisposable {
  readonly dir: string;
  readonly starter: ProcessStarter;
  readonly logged: string[];
  /** The names of the started processes. */
  readonly names: readonly string[];
  /** `hurry`: factor by which the starter's clock runs faster. */
  readonly speed: { hurry: number };

  private constructor(
    dir: string,
    options: {
      readonly starter: ProcessStarter;
      readonly logged: string[];
      readonly names: readonly string[];
      readonly speed: { hurry: number };
    },
  ) {
    this.dir = dir;
    this.speed = options.speed;
    this.starter = options.starter;
    this.logged = options.logged;
    this.names = options.names;
  }

  static async make(
    behaviour: string,
    { hurry = 1, folder = "", memory = null, isolateMemory = usualMemory }: {
      readonly hurry?: number;
      readonly folder?: string;
      readonly memory?: MemoryReader | null;
      readonly isolateMemory?: IsolateMemory;
    } = {},
  ): Promise<Place> {
    const dir = await Deno.realPath(await Deno.makeTempDir({ prefix: "syncline-process-" }));
    const dataDir = dir + folder;
    await Deno.mkdir(dataDir, { recursive: true });
    const logged: string[] = [];
    const names: string[] = [];
    const speed = { hurry };
    const starter = await ProcessStarter.create({
      dataDir,
      ...fakeCode(dir),
      env: { GREETING: "hello" },
      settings: {},
      actionNet: null,
      memory,
      isolateMemory,
      log: (_level, message, fields) => logged.push(`${message}: ${fields?.["text"]}`),
      clock: {
        ...steadyClock,
        after: (ms, run) => steadyClock.after(ms / speed.hurry, run),
      },
      command: (paths) => {
        names.push(basename(paths.socketPath));
        const talk = `${paths.socketPath},${paths.progressPath}`;
        const flags = [
          `--allow-read=${talk}`,
          `--allow-write=${talk}`,
          `--allow-net=unix:${paths.socketPath}`,
        ];
        const own = ["run", "--quiet", "--no-prompt", `--config=${PROJECT}deno.json`, ...flags];
        const { executable, args, env } = isolateCommand(paths);
        const shell = args.slice(0, args.indexOf("run"));
        return { executable, args: [...shell, ...own, SCRIPT, behaviour, paths.socketPath], env };
      },
    });
    return new Place(dir, { starter, logged, names, speed });
  }

  /** Starts a process that must become ready. */
  async ready(): Promise<{ isolate: Isolate; frames: IsolateFrame[]; next: () => Promise<void> }> {
    const started = await this.starter.start("runner");
    assert.ok(started.ok, JSON.stringify(started));
    const frames: IsolateFrame[] = [];
    let onFrame = () => {};
    started.isolate.receive((frame) => {
      frames.push(frame);
      onFrame();
    });
    const next = () => new Promise<void>((resolve) => onFrame = resolve);
    return { isolate: started.isolate, frames, next };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.starter[Symbol.asyncDispose]();
    await Deno.remove(this.dir, { recursive: true });
  }
}

const asks = (udfPath: string): RunAction => ({ type: "RunAction", call: 1, order: 1, ...call(udfPath) });

/** Files that a starter creates in advance: progress files and import maps. */
const FILES = ["1.p", "2.p", "3.p", "reader.m", "runner.m", "writer.m"];

function namesIn(folder: string): string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
}

/** Returns the outcome of a process with this behavior that never becomes ready. */
async function failure(behaviour: string, hurry = 1): Promise<Extract<StartResult, { ok: false }>> {
  await using place = await Place.make(behaviour, { hurry });
  const started = await place.starter.start("reader");
  assert.ok(!started.ok);
  const [runDir] = [...Deno.readDirSync(place.dir)];
  assert.deepEqual(namesIn(`${place.dir}/${runDir?.name}`), FILES, "files were left behind");
  return started;
}

Deno.test("runners, which run no functions of the service, start without them", async () => {
  const dir = await Deno.realPath(await Deno.makeTempDir({ prefix: "syncline-process-" }));
  const entries = new Map<string, string>();
  try {
    await using starter = await ProcessStarter.create({
      dataDir: dir,
      ...fakeCode(dir),
      env: {},
      settings: {},
      actionNet: null,
      memory: null,
      log: () => {},
      clock: steadyClock,
      entry: new URL("file:///service.ts"),
      command: ({ role, entry }) => {
        entries.set(role, basename(entry.pathname));
        return { executable: "sh", args: ["-c", "exit 1"], env: {} };
      },
    });
    for (const role of ["writer", "reader", "runner"] as const) await starter.start(role);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
  assert.deepEqual([...entries], [
    ["writer", "service.ts"],
    ["reader", "service.ts"],
    ["runner", basename(plainEntry.pathname)],
  ]);
});

Deno.test("a process that exits before it connects is a failed start with a reason", async () => {
  const { broken, message } = await failure("exit before connecting");
  assert.equal(broken, false);
  assert.match(message, /ended while it started: exit code 3: error: there is no such flag/);
});

Deno.test("a process that ends before it answers is a failed start", async () => {
  assert.match((await failure("exit before answering")).message, /exit code 4/);
});

Deno.test("a broken app is a failed start with the app's own message", async () => {
  assert.deepEqual(await failure("broken"), { ok: false, broken: true, message: "messages.ts:3: nonsense" });
});

for (const behaviour of ["answer with something else", "answer garbage", "announce a huge frame"]) {
  Deno.test(`processes that ${behaviour} are ended`, async () => {
    assert.equal((await failure(behaviour)).broken, false);
  });
}

for (const behaviour of ["never connect", "never answer"]) {
  Deno.test(`processes that ${behaviour} are ended after a time`, async () => {
    const { message } = await failure(behaviour, isolateLimits.startMs / 700);
    assert.match(
      message,
      /took longer than 30 s to load: at the top of one of its files, .* an await that does not settle/,
    );
  });
}

Deno.test("a missing program is a failed start", async () => {
  await using place = await Place.make("");
  const starter = await ProcessStarter.create({
    dataDir: place.dir,
    ...fakeCode(place.dir),
    env: {},
    settings: {},
    actionNet: null,
    log: () => {},
    clock: steadyClock,
    command: () => ({ executable: "/nowhere/syncline", args: [], env: {} }),
  });
  const started = await starter.start("reader");
  assert.ok(!started.ok);
  await starter[Symbol.asyncDispose]();
});

Deno.test("the next isolate uses the progress file of a start that could not listen", async () => {
  await using place = await Place.make("serve");
  const [runDir] = [...Deno.readDirSync(place.dir)];
  const path = `${place.dir}/${runDir?.name}`;
  await Deno.mkdir(`${path}/runner-1`);
  assert.ok(!(await place.starter.start("runner")).ok);
  for (let i = 0; i < 3; i++) await place.ready();
  const files = [...Deno.readDirSync(path)].map(({ name }) => name).filter((name) => name.endsWith(".p"));
  assert.deepEqual(files.sort(), ["1.p", "2.p", "3.p"]);
});

Deno.test("messages and segments are sent in both directions in order, after Boot and Ready", async () => {
  await using place = await Place.make("serve");
  const { isolate, frames, next } = await place.ready();
  const boot = JSON.parse(isolate.ready.lastGroup ?? "").message;
  assert.deepEqual([boot.type, boot.role, boot.bundle, boot.env], [
    "Boot",
    "runner",
    `${place.dir}/bundle.js`,
    { GREETING: "hello" },
  ]);
  const values = ['"é😀"', JSON.stringify("x".repeat(300_000)), "null"];
  isolate.send(asks("a"), values);
  isolate.send(asks("b"));
  while (frames.length < 2) await next();
  assert.deepEqual(frames.map(({ message }) => message as unknown), [asks("a"), asks("b")]);
  assert.deepEqual(frames.map(({ segments }) => segments), [values, []]);
});

Deno.test("only main's isolate can connect: its socket is removed once it has connected", async () => {
  await using place = await Place.make("serve");
  await place.ready();
  const [runDir] = [...Deno.readDirSync(place.dir)];
  const path = `${place.dir}/${runDir?.name}`;
  assert.equal(((await Deno.stat(path)).mode ?? 0) & 0o777, 0o700);
  assert.deepEqual(namesIn(path), FILES);
});

Deno.test("the notes of an isolate can be read while it runs and after it ended", async () => {
  await using place = await Place.make("serve");
  const { isolate, next } = await place.ready();
  assert.equal(isolate.progress(), null);
  isolate.send(asks("note"));
  await next();
  assert.deepEqual(isolate.progress(), { position: 5, startedAt: 99 });
  isolate.kill();
  const looks = setInterval(() => assert.deepEqual(isolate.progress(), { position: 5, startedAt: 99 }), 0);
  const death = await isolate.ended;
  clearInterval(looks);
  assert.deepEqual(isolate.progress(), { position: 5, startedAt: 99 });
  assert.deepEqual(death, {
    cause: "asked",
    detail: "ended by the server",
    progress: { position: 5, startedAt: 99 },
  });
});

Deno.test("the ways a process ended are distinguished: exit, protocol error, closed socket", async () => {
  await using place = await Place.make("serve");
  const deaths = await Promise.all(["exit", "garbage", "close", "linger"].map(async (how) => {
    const { isolate } = await place.ready();
    isolate.send(asks(how));
    const { cause, detail } = await isolate.ended;
    return [how, cause, detail.split(":")[0]];
  }));
  assert.deepEqual(deaths.slice(0, 2), [
    ["exit", "crashed", "exit code 0"],
    ["garbage", "crashed", deaths[1]?.[2]],
  ]);
  assert.equal(deaths[2]?.[1], "crashed");
  assert.deepEqual(deaths[3], ["linger", "crashed", "it closed its socket"]);
});

Deno.test("SIGKILL from outside is blamed on no call", async () => {
  await using place = await Place.make("serve");
  const { isolate } = await place.ready();
  const { stdout } = await new Deno.Command("pgrep", { args: ["-P", String(Deno.pid), "-f", place.dir] })
    .output();
  const pids = new TextDecoder().decode(stdout).trim().split("\n");
  assert.equal(pids.length, 1);
  Deno.kill(Number(pids[0]), "SIGKILL");
  const { cause } = await isolate.ended;
  assert.equal(cause, "killed");
});

Deno.test("output of an isolate appears in the log", async () => {
  await using place = await Place.make("serve");
  const { isolate, next } = await place.ready();
  isolate.send(asks("print"));
  await next();
  await isolate.close();
  assert.match(place.logged.join("\n"), /^Isolate output: first\n(?:second|Isolate output: second)$/);
});

Deno.test("an isolate that receives Close exits, or is killed after a time limit", async () => {
  for (const behaviour of ["serve", "stay"]) {
    await using place = await Place.make(behaviour);
    const { isolate } = await place.ready();
    place.speed.hurry = 20;
    await isolate.close();
    assert.equal((await isolate.ended).cause, "asked");
  }
});

Deno.test("sending to an ended isolate does nothing", async () => {
  await using place = await Place.make("serve");
  const { isolate } = await place.ready();
  isolate.kill();
  await isolate.ended;
  isolate.send(asks("late"));
  isolate.kill();
  await isolate.close();
});

Deno.test("a data folder too deep for a socket path works, and leaves nothing elsewhere", async () => {
  const folder = `/${"deep".repeat(30)}`;
  await using place = await Place.make("serve", { folder });
  await place.ready();
  assert.deepEqual([...Deno.readDirSync(place.dir + folder)], []);
});

Deno.test("the next server removes the remains of a killed one", async () => {
  const dir = await Deno.makeTempDir();
  await Deno.mkdir(`${dir}/run-0123`);
  await Deno.writeTextFile(`${dir}/run-0123/writer-1`, "");
  await Deno.writeTextFile(`${dir}/run-of-the-mill.txt`, "");
  await using starter = await ProcessStarter.create({
    dataDir: dir,
    ...fakeCode(dir),
    env: {},
    settings: {},
    actionNet: null,
    log: () => {},
    clock: steadyClock,
    command: isolateCommand,
  });
  const names = [...Deno.readDirSync(dir)].map(({ name }) => name);
  assert.equal(names.length, 2);
  assert.ok(names.includes("run-of-the-mill.txt") && !names.includes("run-0123"));
  await starter[Symbol.asyncDispose]();
  await Deno.remove(dir, { recursive: true });
});

Deno.test("disposal ends every process and leaves no file", async () => {
  const place = await Place.make("serve");
  const isolates = await Promise.all([place.ready(), place.ready()]);
  await place.starter[Symbol.asyncDispose]();
  for (const { isolate } of isolates) assert.equal((await isolate.ended).cause, "asked");
  assert.deepEqual([...Deno.readDirSync(place.dir)], []);
  const late = await place.starter.start("reader");
  assert.ok(!late.ok);
  await Deno.remove(place.dir);
});

Deno.test("disposal waits for starts, which remove their files", async () => {
  // It is still starting, however late the disposal is.
  await using place = await Place.make("never answer");
  let settled = false;
  const start = place.starter.start("reader").finally(() => {
    settled = true;
  });
  await until(() => place.names.length === 1);
  await place.starter[Symbol.asyncDispose]();
  assert.ok(settled);
  assert.ok(!(await start).ok);
});

Deno.test("VE17 with little memory the host keeps no spare isolates, and starts only a writer ahead", async () => {
  for (const sparing of [false, true]) {
    await using place = await Place.make("serve", { isolateMemory: { ...usualMemory, sparing } });
    if (sparing) place.starter.standBy();
    using _prepared = await place.starter.prepare(fakeCode(place.dir).version);
    assert.deepEqual(place.names.toSorted(), sparing ? ["writer-1"] : ["reader-2", "writer-1"]);
  }
});

Deno.test("only an isolate whose memory is too large at the check is ended", async () => {
  let guilty = 0;
  const seen = new Map<number, number>();
  const memory: MemoryReader = async (pids) => {
    const sizes = new Map(await residentBytes(pids));
    for (const [pid, bytes] of sizes) seen.set(pid, bytes);
    if (sizes.has(guilty)) sizes.set(guilty, 1_001 * 1024 * 1024);
    return sizes;
  };
  await using place = await Place.make("serve", {
    memory,
    isolateMemory: { ...usualMemory, dataMiB: 1_000 },
  });
  const one = await place.ready();
  const other = await place.ready();
  // Only the checks are frequent: starts have all their time.
  place.speed.hurry = 4;
  // At first they may still be the shell that starts them.
  const started = () => seen.size === 2 && seen.values().every((bytes) => bytes > 10e6);
  await until(started);
  // The size that ps reports is that of a small process.
  for (const bytes of seen.values()) assert.ok(bytes < 400e6, `${bytes}`);
  guilty = [...seen.keys()][0] ?? 0;
  const { cause, detail } = await Promise.race([one.isolate.ended, other.isolate.ended]);
  assert.deepEqual({ cause, detail }, { cause: "crashed", detail: "out of memory" });
  const left = new Set([one.isolate.ended, other.isolate.ended]);
  await pause(200);
  const states = await Promise.all([...left].map((ended) => Promise.race([ended, Promise.resolve("runs")])));
  assert.equal(states.filter((state) => state === "runs").length, 1);
});

Deno.test("the heap of new objects is larger in writers, and the old one bounded in all", () => {
  for (const role of ["writer", "reader", "runner"] as const) {
    const flags = heapFlags(role).split(",");
    assert.ok(flags.includes(`--max-old-space-size=${isolateLimits.heapMiB}`));
    assert.equal(flags.some((flag) => flag.startsWith("--max-semi-space-size=")), role === "writer");
    const small = heapFlags(role, { ...usualMemory, heapMiB: 200, writerSemiSpaceMiB: 8 }).split(",");
    assert.equal(small[0], "--max-old-space-size=200");
    assert.equal(small[1], role === "writer" ? "--max-semi-space-size=8" : undefined);
    const smaller = heapFlags(role, { ...usualMemory, writerSemiSpaceMiB: 8, semiSpaceMiB: 4 }).split(",");
    assert.equal(smaller[1], `--max-semi-space-size=${role === "writer" ? 8 : 4}`);
  }
});
