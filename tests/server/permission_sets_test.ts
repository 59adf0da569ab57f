/** Tries everything that each permission set of deno.json must reject or allow. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

const FILES = ["read a file", "write a file"];
/** Operators choose the addresses of mail servers, external identity providers and buckets. */
const NETWORK = ["listen", "reach another machine"];
const OWN_VARIABLES = ["read SYNCLINE_ variables"];
const EVERY_VARIABLE = [...OWN_VARIABLES, "read PATH's neighbours", "read the whole environment"];
const ROOM = ["ask for the room on a disk"];
const SH = ["start sh"];
const EVERY_PROGRAM = [...SH, "start itself", "start another program"];
const ADDRESSES = ["ask for the machine's addresses"];
const MACHINE = ["ask for the machine's name", ...ADDRESSES, ...ROOM];

/** Attempts that each set allows. All others of the probe are rejected. */
const SETS: readonly { readonly set: string; readonly name: string; readonly allows: readonly string[] }[] = [
  {
    set: "serve",
    name: "the serve set starts nothing but sh, and reads no foreign environment",
    allows: [...FILES, ...NETWORK, ...SH, ...OWN_VARIABLES, ...ROOM, ...ADDRESSES],
  },
  {
    set: "import",
    name: "the set of imports starts nothing but sh, and reads no foreign environment",
    allows: [...FILES, ...NETWORK, ...SH, ...OWN_VARIABLES],
  },
  {
    set: "restore",
    name: "the restore set reads and writes files, and has no access to processes or the network",
    allows: [...FILES, ...OWN_VARIABLES, ...ROOM],
  },
  {
    set: "restoreRemote",
    name: "[SB11] the set of restores from a bucket has access to the network in addition, and nothing else",
    allows: [...FILES, ...OWN_VARIABLES, ...ROOM, ...NETWORK],
  },
  {
    set: "deploy",
    name: "the set that deploys reads and writes files, reaches a server and starts nothing but sh",
    allows: [...FILES, ...NETWORK, ...SH, ...OWN_VARIABLES],
  },
  {
    set: "export",
    name: "the set that exports reads and writes files, and has no access to processes or the network",
    allows: [...FILES, ...OWN_VARIABLES, ...ROOM],
  },
  {
    set: "doctor",
    name:
      "[OP4] the set of the doctor reads files and checks free space, and writes nothing, without processes or network",
    allows: ["read a file", ...OWN_VARIABLES, ...ROOM],
  },
  {
    set: "backup",
    name: "the backup set reads and writes files, and has no access to processes or the network",
    allows: [...FILES, ...OWN_VARIABLES, ...ROOM],
  },
  {
    set: "appTests",
    // The bundler is started by `sh`.
    name:
      "the set that apps are tested with from Node starts nothing but sh and hides most of the environment",
    allows: [...FILES, ...NETWORK, ...SH, ...ROOM],
  },
  {
    set: "buildServer",
    name: "the set that builds the single file starts nothing but sh, and has no access to the network",
    allows: [...FILES, ...SH],
  },
  {
    set: "launcher",
    name:
      "the set of the compiled launcher starts nothing but sh, writes nothing, and has no access to the network",
    allows: ["read a file", ...SH],
  },
  {
    set: "buildClient",
    name: "the set that builds the npm package writes nothing outside of dist and reaches no machine",
    allows: ["read a file", ...EVERY_PROGRAM, ...EVERY_VARIABLE, ...MACHINE, "load a native library"],
  },
  {
    set: "buildChat",
    name: "the set that builds the chat writes nothing outside of it and reaches no machine",
    allows: ["read a file", ...EVERY_PROGRAM, ...EVERY_VARIABLE],
  },
  {
    set: "buildDocs",
    name: "the set that builds the documentation writes nothing outside of it and reaches no machine",
    allows: ["read a file", ...EVERY_PROGRAM, ...EVERY_VARIABLE, ...MACHINE],
  },
  {
    set: "buildDashboard",
    name: "the set that builds the dashboard writes nothing outside of it and reaches no machine",
    allows: ["read a file", ...EVERY_PROGRAM, ...EVERY_VARIABLE],
  },
  {
    set: "test",
    name: "the test set loads no native library",
    allows: [...FILES, ...NETWORK, ...EVERY_PROGRAM, ...EVERY_VARIABLE, ...MACHINE],
  },
  {
    set: "bench",
    name: "the bench set reaches this machine only",
    allows: [...FILES, "listen", ...EVERY_PROGRAM, ...EVERY_VARIABLE],
  },
];

const PROBE = fileURLToPath(new URL("./support/permission_probe.ts", import.meta.url));

/** Runs the probe with a set and returns the outcome of each attempt. */
async function attempts(set: string): Promise<Record<string, "allowed" | "refused">> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-prompt", `-P=${set}`, PROBE],
    env: {
      SYNCLINE_PROBE: "1",
      AWS_SECRET_ACCESS_KEY: "1",
      HOME: Deno.env.get("HOME") ?? "/",
      PATH: Deno.env.get("PATH") ?? "",
    },
  }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
  return JSON.parse(new TextDecoder().decode(stdout));
}

interface Project {
  readonly tasks: Readonly<Record<string, string>>;
  readonly permissions: Readonly<Record<string, unknown>>;
}

async function project(): Promise<Project> {
  return JSON.parse(await Deno.readTextFile(new URL("../../deno.json", import.meta.url)));
}

for (const { set, name, allows } of SETS) {
  Deno.test(name, async () => {
    const outcomes = await attempts(set);
    const expected = Object.keys(outcomes)
      .map((attempt) => [attempt, allows.includes(attempt) ? "allowed" : "refused"]);
    assert.deepEqual(outcomes, Object.fromEntries(expected));
    assert.deepEqual(allows.filter((attempt) => !(attempt in outcomes)), [], "attempts that the probe makes");
  });
}

Deno.test("every set of deno.json is tried", async () => {
  const sets = Object.keys((await project()).permissions);
  assert.deepEqual(SETS.map(({ set }) => set).toSorted(), sets.toSorted());
});

Deno.test("a set that is not in deno.json does not run at all", async () => {
  await assert.rejects(attempts("everything"), /Could not find permission set/);
});

Deno.test("every task that runs code names a permission set", async () => {
  const { tasks, permissions } = await project();
  for (const [task, command] of Object.entries(tasks)) {
    for (const [run] of command.matchAll(/deno (?:run|test|bench|serve)\b[^&|;]*/g)) {
      const set = run.match(/-P=(\w+)/)?.[1];
      assert.ok(set !== undefined && set in permissions, `${task}: ${run}`);
      assert.doesNotMatch(run, /--allow-|-A\b/, task);
    }
  }
});
