/** Time limits of a writer's start: loading the app is limited, migrating the database is not. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { isolateCommand } from "../../../mod/functions/host/process/command.ts";
import { ProcessStarter } from "../../../mod/functions/host/process/process_starter.ts";
import type { IsolateRole } from "../../../mod/functions/wire/messages.ts";
import { isolateLimits } from "../../../mod/functions/limits.ts";
import { fakeCode } from "./support/fake_code.ts";
import { FakeClock } from "../../support/fake_clock.ts";
import { RealHost } from "./support/real_host.ts";
import { until } from "../../support/waiting.ts";

const SCRIPT = fileURLToPath(new URL("./support/process_script.ts", import.meta.url));
const PROJECT = fileURLToPath(new URL("../../../", import.meta.url));
const { startMs, migrationLogMs } = isolateLimits;

/** Starts processes by a clock that the test advances. */
class Place implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly logged: string[] = [];
  readonly dir: string;
  starter!: ProcessStarter;
  /** Delays requested from the clock. */
  readonly #waits = new Set<number>();

  private constructor(dir: string) {
    this.dir = dir;
  }

  static async make(behaviour: string): Promise<Place> {
    const place = new Place(await Deno.realPath(await Deno.makeTempDir({ prefix: "syncline-start-" })));
    place.starter = await ProcessStarter.create({
      dataDir: place.dir,
      ...fakeCode(place.dir),
      env: {},
      settings: {},
      actionNet: null,
      memory: null,
      log: (level, message, fields = {}) =>
        void place.logged.push(`${level} ${message} ${JSON.stringify(fields)}`),
      clock: {
        now: () => place.clock.now(),
        after: (ms, run) => {
          place.#waits.add(ms);
          return place.clock.after(ms, run);
        },
        every: (ms, run) => place.clock.every(ms, run),
      },
      command: (paths) => {
        const { executable, args, env } = isolateCommand(paths);
        const shell = args.slice(0, args.indexOf("run"));
        const talk = `${paths.socketPath},${paths.progressPath}`;
        const own = ["run", "--quiet", "--no-prompt", `--config=${PROJECT}deno.json`];
        const flags = [
          `--allow-read=${talk}`,
          `--allow-write=${talk}`,
          `--allow-net=unix:${paths.socketPath}`,
        ];
        return { executable, args: [...shell, ...own, ...flags, SCRIPT, behaviour, paths.socketPath], env };
      },
    });
    return place;
  }

  /** Starts a process and waits until main waits for this long. */
  async start(role: IsolateRole, untilWaitOf: number) {
    const started = this.starter.start(role);
    await until(() => this.#waits.has(untilWaitOf));
    return { started };
  }

  /** Lets a process finish its work on the database. */
  async finish(): Promise<void> {
    const [runDir] = [...Deno.readDirSync(this.dir)];
    await Deno.writeFile(`${this.dir}/${runDir?.name}/1.p`, new Uint8Array(16));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.starter[Symbol.asyncDispose]();
    await Deno.remove(this.dir, { recursive: true });
  }
}

Deno.test("once the app is loaded the start limit no longer applies, and the log names the slow step", async () => {
  await using place = await Place.make("loaded");
  const { started } = await place.start("writer", migrationLogMs);
  await place.clock.advance(migrationLogMs - 1);
  assert.deepEqual(place.logged, []);
  await place.clock.advance(20 * startMs + 1 - migrationLogMs);
  assert.equal(place.logged.length, 1);
  assert.match(place.logged[0] ?? "", /^info Migrating tables and indexes .* takes a while/);
  await place.finish();
  const result = await started;
  assert.ok(result.ok, JSON.stringify(result));
  assert.deepEqual(place.logged.slice(1), [
    `info Tables and indexes are migrated to the app's schema {"seconds":${20 * startMs / 1000}}`,
  ]);
  assert.equal(place.clock.timers, 0);
});

Deno.test("work that finishes immediately is not logged", async () => {
  await using place = await Place.make("loaded");
  const { started } = await place.start("writer", migrationLogMs);
  await place.finish();
  assert.ok((await started).ok);
  assert.deepEqual([place.logged, place.clock.timers], [[], 0]);
});

Deno.test("a server that stops does not wait for it", async () => {
  await using place = await Place.make("loaded");
  const { started } = await place.start("writer", migrationLogMs);
  await place.clock.advance(2 * startMs);
  await place.starter[Symbol.asyncDispose]();
  assert.match(JSON.stringify(await started), /ended by the server/);
  assert.deepEqual([place.logged.length, place.clock.timers], [1, 0]);
});

Deno.test("the start limit applies to a writer that does not report the app as loaded", async () => {
  await using place = await Place.make("never answer");
  const { started } = await place.start("writer", startMs);
  await place.clock.advance(startMs);
  assert.match(JSON.stringify(await started), /took longer than 30 s to load/);
});

for (
  const [behaviour, role] of [
    ["loaded twice", "writer"],
    ["loaded", "reader"],
  ] as const
) {
  Deno.test(`nonsense: ${behaviour}, by a ${role}`, async () => {
    await using place = await Place.make(behaviour);
    const result = await place.starter.start(role);
    assert.match(JSON.stringify(result), /Loaded came twice or was not expected/);
    assert.equal(place.clock.timers, 0);
  });
}

Deno.test("nonsense: loaded after the answer", async () => {
  await using place = await Place.make("loaded after the answer");
  const result = await place.starter.start("writer");
  assert.ok(result.ok);
  const { cause, detail } = await result.isolate.ended;
  assert.deepEqual([cause, detail], ["crashed", "Loaded came twice or was not expected"]);
});

Deno.test("patches by the app while it loads do not affect the report that it is loaded", async () => {
  const patching = `
    const seen = [];
    for (const [object, keys] of [
      [Array.prototype, ["push", "map", "join", Symbol.iterator]],
      [Promise.prototype, ["then"]],
      [Uint8Array.prototype, ["subarray"]],
      [Object.getPrototypeOf(Uint8Array.prototype), ["subarray"]],
      [DataView.prototype, ["setUint32"]],
      [TextEncoder.prototype, ["encodeInto"]],
      [JSON, ["stringify"]],
      [String.prototype, ["slice"]],
    ]) for (const key of keys) {
      const before = object[key];
      try {
        object[key] = function (...args) {
          if (String(new Error().stack).includes("frames.ts")) seen[seen.length] = String(key);
          return Reflect.apply(before, this, args);
        };
      } catch {}
    }
  `;
  const notes = `
    import { untypedMutation } from "syncline/server";
    ${patching}
    export const met = untypedMutation(() => seen.length);
  `;
  await using host = await RealHost.start({ "notes.ts": notes });
  assert.equal(await host.mutate("notes:met"), 0);
});
