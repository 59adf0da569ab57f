/**
 * The program that `deno compile` creates. The runtime runs its launcher from its source folder. The compiled program is
 * tested if a `denort` is installed.
 */
import assert from "node:assert/strict";
import { compileLauncher, launcherFlags, writeLauncher } from "../../mod/build/compiled.ts";
import {
  childrenOf,
  commandLine,
  isAskedToEnd,
  processTree,
  resume,
  suspend,
  terminateAll,
} from "../support/processes/process_tree.ts";
import { until } from "../support/waiting.ts";
import { call, Machine, projectDir, untilEnded } from "./support/machine.ts";
import { archiveOf, sharedMachine, singleFile, writeSmallArchive } from "./support/one_file.ts";

/** Time after which a phase that takes milliseconds has failed. */
const PHASE_MS = 50_000;

/** The command line of a launcher in a folder. */
function launcherIn(folder: string): readonly string[] {
  const config = ["--config", `${folder}/deno.json`, `${folder}/main.ts`];
  return [Deno.execPath(), "run", ...launcherFlags, ...config];
}

Deno.test("the launcher unpacks once, and again if something is damaged", async (t) => {
  await using machine = await Machine.make();
  const folder = `${machine.dir}/launcher`;
  await writeLauncher(folder, writeSmallArchive);
  const launcher = launcherIn(folder);

  await t.step("several simultaneous starts unpack the files once", async () => {
    const runs = await Promise.all(Array.from({ length: 2 }, () => machine.run([...launcher, "--help"])));
    for (const { code, output } of runs) {
      assert.equal(code, 0, output);
      assert.match(output, /^Usage: syncline/);
    }
    assert.equal((await machine.unpacked()).length, 1);
  });

  await t.step("a damaged folder is replaced by the first of several starts", async () => {
    const [name] = await machine.unpacked();
    const damaged = `${machine.dir}/home/.cache/syncline/${name}/app/cli.ts`;
    await Deno.remove(damaged);
    const runs = await Promise.all(Array.from({ length: 2 }, () => machine.run([...launcher, "--help"])));
    for (const { code, output } of runs) assert.equal(code, 0, output);
    assert.ok((await Deno.stat(damaged)).isFile);
    assert.deepEqual(await machine.unpacked(), [name]);
  });

  await t.step("deno compile takes the launcher's flags and includes all files", async () => {
    const file = `${machine.dir}/compiled`;
    // A stand-in with the format of a denort that does not run the program.
    await compileLauncher(folder, { file, denort: Deno.execPath() });
    const [program, archive, runtime] = await Promise.all(
      [file, `${folder}/payload/archive`, Deno.execPath()].map(async (path) => (await Deno.stat(path)).size),
    ) as [number, number, number];
    assert.ok(program > archive + runtime);
  });

  await t.step("a signal while unpacking ends the process and leaves no files", async () => {
    const held = `${machine.dir}/held`;
    await Deno.mkdir(held);
    const wait = `until [ -e "${held}/released" ]; do /bin/sleep 0.01; done`;
    const gzip = `#!/bin/sh\n${wait}\nexec "${machine.dir}/bin/gzip" "$@"\n`;
    await Deno.writeTextFile(`${held}/gzip`, gzip, { mode: 0o755 });
    const env = { HOME: `${machine.dir}/empty`, PATH: `${held}:${machine.dir}/bin` };
    const { process } = machine.start([...launcher, "--help"], env);
    const parts = () => machine.unpacked("empty").catch(() => []);
    let suspended: number | null = null;
    try {
      await until(async () => (await parts()).length > 0, {
        what: "something is unpacked",
        timeoutMs: PHASE_MS,
      });
      const [script] = await childrenOf(process.pid);
      assert.ok(script !== undefined, "the script that unpacks");
      // Unpacking continues only when its script has received the signal that the launcher forwards.
      await suspend(suspended = script);
      process.kill("SIGTERM");
      await until(() => isAskedToEnd(script), {
        what: "the launcher forwards the signal",
        timeoutMs: PHASE_MS,
      });
    } finally {
      if (suspended !== null) await resume(suspended);
      await Deno.writeTextFile(`${held}/released`, "");
    }
    assert.equal((await process.status).code, 143);
    assert.deepEqual(await parts(), []);
  });

  await t.step("a damaged archive is reported", async () => {
    await Deno.truncate(`${folder}/payload/archive`, 100_000);
    const { code, output } = await machine.run([...launcher, "--help"], { HOME: `${machine.dir}/other` });
    assert.equal(code, 1);
    assert.match(output, /cannot unpack into .*damaged/);
    assert.deepEqual(await machine.unpacked("other"), []);
  });
});

Deno.test("the launcher runs the server and ends with it", async (t) => {
  const machine = await sharedMachine();
  const folder = `${machine.dir}/launcher`;
  // Both forms carry the same payload.
  const file = await singleFile();
  await writeLauncher(folder, (path) => archiveOf(file, path));
  const launcher = launcherIn(folder);
  const serverOf = async (launcherId: number) => {
    const children = await childrenOf(launcherId);
    const lines = await Promise.all(children.map(commandLine));
    const server = children[lines.findIndex((line) => /\/syncline\/[0-9a-f]{32}\/deno run/.test(line ?? ""))];
    assert.ok(server !== undefined, lines.join("\n"));
    return server;
  };

  await t.step(
    "SIGTERM, even if repeated, ends the server and its processes in order",
    async () => {
      const { process, output, url } = await machine.serve(launcher);
      const health = await fetch(`${url}/api/health`);
      assert.equal(health.status, 200);
      await health.body?.cancel();
      await call(url, "mutation", "notes:add", { text: "hello" });
      assert.deepEqual(await call(url, "query", "notes:list"), ["HELLO"]);
      const tree = await processTree(process.pid);
      assert.ok(tree.length >= 5, "the launcher, its guard, main, a writer and a reader");
      // As service managers do that signal every process.
      await terminateAll(tree);
      assert.equal((await process.status).code, 0, output.text);
      await untilEnded(tree);
    },
  );

  await t.step("a killed launcher ends the server too", async () => {
    const { process, url } = await machine.serve(launcher);
    assert.deepEqual(await call(url, "query", "notes:list"), ["HELLO"]);
    const tree = await processTree(process.pid);
    process.kill("SIGKILL");
    await process.status;
    await untilEnded(tree);
  });

  await t.step("it ends with the server's exit code, its input is the server's", async () => {
    assert.equal((await machine.run([...launcher, "serve", "--nonsense"])).code, 2);
    const { process } = await machine.serve(launcher);
    const tree = await processTree(process.pid);
    Deno.kill(await serverOf(process.pid), "SIGKILL");
    assert.equal((await process.status).code, 137);
    await untilEnded(tree);
    const piped = `printf 'a long password\\n' | "$0" "$@"`;
    const admin = ["admin", "create", "a@example.com", "--password-stdin", "--data", "./data"];
    const { code, output } = await machine.run(["sh", "-c", piped, ...launcher, ...admin]);
    assert.equal(code, 0, output);
  });
});

Deno.test({
  name: "the compiled program serves (needs DENORT_BIN, the path of a denort)",
  ignore: Deno.env.get("DENORT_BIN") === undefined,
  async fn() {
    await using machine = await Machine.make();
    const program = `${machine.dir}/syncline`;
    const built = await new Deno.Command("deno", { args: ["task", "compile", program], cwd: projectDir })
      .output();
    assert.ok(built.success, new TextDecoder().decode(built.stderr));
    const { process, output, url } = await machine.serve([program]);
    await call(url, "mutation", "notes:add", { text: "hello" });
    assert.deepEqual(await call(url, "query", "notes:list"), ["HELLO"]);
    const tree = await processTree(process.pid);
    process.kill("SIGTERM");
    assert.equal((await process.status).code, 0, output.text);
    await untilEnded(tree);
  },
});
