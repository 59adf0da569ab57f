/** The command `logs`, on a log that this test writes. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { exitCodes, runCommandLine } from "../../mod/cli/command_line.ts";
import { logsCommand, parametersOf, runText } from "../../mod/cli/logs_command.ts";
import { LogFile } from "../../mod/ops/log/log_file.ts";
import { loggedRun, type RunRecord } from "../../mod/ops/log/run_record.ts";
import { LogStore } from "../../mod/ops/log/store/log_store.ts";

const AT = Date.UTC(2030, 0, 1);
const retention = { keepMs: 10 ** 9, bytesMax: 10 ** 9 };

function run(path: string, lines: readonly string[] = []): RunRecord {
  const error = path === "a:fail"
    ? { kind: "internal", message: "boom", stack: "at fail (a.ts:1:2)" } as const
    : null;
  return [
    AT,
    path,
    1,
    "user:u",
    error === null ? 0 : 2,
    lines.length > 0 ? 3 : 0,
    35,
    7,
    1.5,
    0,
    0,
    0,
    0,
    0,
    error,
    lines,
  ];
}

Deno.test("[EL19] the log file can be read while it is written: the newest runs, then new ones", async () => {
  const folder = await Deno.makeTempDir();
  const path = join(folder, "logs.db");
  try {
    using store = LogStore.open(path, { retention });
    store.add([run("a:one"), run("a:two"), run("b:three"), run("a:four")]);
    using file = LogFile.open(path, new URLSearchParams({ function: "a:*" }));
    assert.deepEqual(file.newest(2).map((run) => run.function), ["a:two", "a:four"]);
    assert.deepEqual(file.more(), { runs: [], missed: false });
    store.add([run("a:five"), run("b:six"), run("a:seven")]);
    assert.deepEqual(file.more().runs.map((run) => run.function), ["a:five", "a:seven"]);
    assert.deepEqual(file.more().runs, []);
    const text = runText(loggedRun(9, run("a:fail", ["[WARN] one\ntwo \u001b[31m"])));
    assert.deepEqual(text.split("\n"), [
      "2030-01-01T00:00:00.000Z mutation a:fail error 1.5 ms user:u request=z",
      "    boom",
      "    at fail (a.ts:1:2)",
      "    [WARN] one",
      "    two ?[31m",
    ]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("[EL19] system runs are omitted unless requested, and failures are red", async () => {
  const folder = await Deno.makeTempDir();
  const path = join(folder, "logs.db");
  const all = {
    ...{ only: null, outcome: null, level: null, text: null, request: null, codeVersion: null },
    system: false,
  };
  try {
    using store = LogStore.open(path, { retention });
    store.add([run("a:one"), run("_system/scheduler:clean")]);
    const shown = (options: Partial<Parameters<typeof parametersOf>[0]>) => {
      using file = LogFile.open(path, parametersOf({ ...all, ...options }));
      return file.newest(9).map((run) => run.function);
    };
    const both = ["a:one", "_system/scheduler:clean"];
    assert.deepEqual(shown({}), ["a:one"]);
    assert.deepEqual(shown({ system: true }), both);
    assert.deepEqual(shown({ request: "z" }), both);
    assert.deepEqual(shown({ only: "_system/*" }), ["_system/scheduler:clean"]);
    assert.deepEqual(shown({ codeVersion: "ab12" }), []);
    store.add([[...run("a:two"), "ab12cd"] as unknown as RunRecord]);
    assert.deepEqual(shown({ codeVersion: "ab12" }), ["a:two"]);
    // A log that an earlier release created.
    store.database.execute("DROP TABLE versions");
    assert.deepEqual(shown({}), ["a:one", "a:two"]);
    assert.deepEqual(shown({ codeVersion: "ab12" }), []);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
  const [failed, fine] = ["a:fail", "a:one"].map((name) =>
    runText(loggedRun(9, run(name)), { colors: true })
  );
  // deno-lint-ignore no-control-regex -- colors are terminal escape codes
  assert.match(failed ?? "", /^\u001b\[31m2030[^]*a\.ts:1:2\)\u001b\[39m$/);
  assert.match(fine ?? "", /^2030.*request=z$/);
  const served = runText(loggedRun(9, [...run("a:one"), "0123456789abcdef"] as unknown as RunRecord));
  assert.match(served, /request=z version=0123456789ab$/);
});

Deno.test("[EL19] without a log, or with an invalid filter, the command reports it", async () => {
  const folder = await Deno.makeTempDir();
  const around = { env: () => undefined, out: () => {}, err: () => {} };
  const command = (...args: string[]) =>
    runCommandLine([logsCommand], { ...around, args: ["logs", "--data", folder, ...args] });
  try {
    assert.equal(await command(), exitCodes.failed);
    await Deno.writeTextFile(join(folder, "logs.db"), "no log ".repeat(1_000));
    assert.equal(await command(), exitCodes.failed);
    await Deno.remove(join(folder, "logs.db"));
    LogStore.open(join(folder, "logs.db"), { retention })[Symbol.dispose]();
    assert.equal(await command(), exitCodes.ok);
    assert.equal(await command("--level", "LOUD"), exitCodes.usage);
    assert.equal(await command("--last", "0"), exitCodes.usage);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
