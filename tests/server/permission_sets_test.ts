/** What each permission set of deno.json must refuse is tried, and is refused. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

const PROBE = fileURLToPath(new URL("./support/permission_probe.ts", import.meta.url));

/** Runs the probe under a set and gives what each attempt came to. */
async function attempts(set: string): Promise<Record<string, "allowed" | "refused">> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-prompt", `-P=${set}`, PROBE],
    env: { SYNCLINE_PROBE: "1", HOME: Deno.env.get("HOME") ?? "/", PATH: Deno.env.get("PATH") ?? "" },
  }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
  return JSON.parse(new TextDecoder().decode(stdout));
}

Deno.test("the serve set starts nothing but sh, and reads no foreign environment", async () => {
  assert.deepEqual(await attempts("serve"), {
    "read a file": "allowed",
    "write a file": "allowed",
    "listen": "allowed",
    "start sh": "allowed",
    "start itself": "refused",
    "start another program": "refused",
    "read SYNCLINE_ variables": "allowed",
    "read PATH's neighbours": "refused",
    "read the whole environment": "refused",
    "load a native library": "refused",
    "ask for the machine's name": "refused",
    "ask for the room on a disk": "allowed",
    "import from the web": "refused",
    "import from a host Deno trusts": "refused",
    // Mail, external identity providers and S3 are wherever the operator says.
    "reach another machine": "allowed",
  });
});

Deno.test("the set of imports starts nothing but sh, and reads no foreign environment", async () => {
  const result = await attempts("import");
  assert.equal(result["start sh"], "allowed");
  assert.equal(result["read SYNCLINE_ variables"], "allowed");
  for (
    const attempt of [
      "start itself",
      "start another program",
      "read PATH's neighbours",
      "read the whole environment",
      "load a native library",
      "ask for the machine's name",
      "import from the web",
      "import from a host Deno trusts",
    ]
  ) assert.equal(result[attempt], "refused", attempt);
});

Deno.test("the restore set reads and writes files, starts nothing and reaches nobody", async () => {
  const result = await attempts("restore");
  for (const attempt of ["read a file", "write a file", "read SYNCLINE_ variables"]) {
    assert.equal(result[attempt], "allowed", attempt);
  }
  for (
    const attempt of [
      "listen",
      "start sh",
      "start itself",
      "start another program",
      "read PATH's neighbours",
      "read the whole environment",
      "load a native library",
      "ask for the machine's name",
      "import from the web",
      "import from a host Deno trusts",
      "reach another machine",
    ]
  ) assert.equal(result[attempt], "refused", attempt);
});

Deno.test("[SB11] the set of restores from a bucket has the network beside that, and nothing else", async () => {
  const [file, remote] = [await attempts("restore"), await attempts("restoreRemote")];
  assert.deepEqual(remote, { ...file, "listen": "allowed", "reach another machine": "allowed" });
});

Deno.test("the bench set reaches this machine only", async () => {
  const result = await attempts("bench");
  for (
    const attempt of [
      "reach another machine",
      "load a native library",
      "ask for the machine's name",
      "import from the web",
      "import from a host Deno trusts",
    ]
  ) assert.equal(result[attempt], "refused", attempt);
});

Deno.test("the set that exports reads and writes files, starts nothing and reaches nobody", async () => {
  assert.deepEqual(await attempts("export"), {
    "read a file": "allowed",
    "write a file": "allowed",
    "listen": "refused",
    "start sh": "refused",
    "start itself": "refused",
    "start another program": "refused",
    "read SYNCLINE_ variables": "allowed",
    "read PATH's neighbours": "refused",
    "read the whole environment": "refused",
    "load a native library": "refused",
    "ask for the machine's name": "refused",
    "ask for the room on a disk": "allowed",
    "import from the web": "refused",
    "import from a host Deno trusts": "refused",
    "reach another machine": "refused",
  });
});

Deno.test("the backup set reads and writes files, starts nothing and reaches nobody", async () => {
  const result = await attempts("backup");
  for (
    const attempt of ["read a file", "write a file", "read SYNCLINE_ variables", "ask for the room on a disk"]
  ) {
    assert.equal(result[attempt], "allowed", attempt);
  }
  for (
    const attempt of [
      "listen",
      "start sh",
      "start itself",
      "start another program",
      "read PATH's neighbours",
      "read the whole environment",
      "load a native library",
      "ask for the machine's name",
      "import from the web",
      "import from a host Deno trusts",
      "reach another machine",
    ]
  ) assert.equal(result[attempt], "refused", attempt);
});

Deno.test("the set that builds the single file starts nothing but sh and reaches nobody", async () => {
  const result = await attempts("buildServer");
  for (
    const attempt of [
      "listen",
      "start itself",
      "start another program",
      "read PATH's neighbours",
      "read the whole environment",
      "load a native library",
      "import from the web",
      "reach another machine",
    ]
  ) assert.equal(result[attempt], "refused", attempt);
});

Deno.test("the set of the compiled launcher starts nothing but sh, writes nothing and reaches nobody", async () => {
  const result = await attempts("launcher");
  assert.equal(result["start sh"], "allowed");
  for (
    const attempt of [
      "write a file",
      "listen",
      "start itself",
      "start another program",
      "read SYNCLINE_ variables",
      "read the whole environment",
      "load a native library",
      "ask for the machine's name",
      "import from the web",
      "reach another machine",
    ]
  ) assert.equal(result[attempt], "refused", attempt);
});

Deno.test("the set that builds the npm package writes nothing outside of dist and reaches no machine", async () => {
  const result = await attempts("buildClient");
  for (
    const attempt of [
      "write a file",
      "listen",
      "reach another machine",
      "import from the web",
      "import from a host Deno trusts",
    ]
  ) assert.equal(result[attempt], "refused", attempt);
});

Deno.test("a set that is not in deno.json does not run at all", async () => {
  await assert.rejects(attempts("everything"), /Could not find permission set/);
});

Deno.test("every task that runs code names a permission set", async () => {
  const project = JSON.parse(await Deno.readTextFile(new URL("../../deno.json", import.meta.url))) as {
    tasks: Record<string, string>;
    permissions: Record<string, unknown>;
  };
  for (const [task, command] of Object.entries(project.tasks)) {
    for (const [run] of command.matchAll(/deno (?:run|test|bench|serve)\b[^&|;]*/g)) {
      const set = run.match(/-P=(\w+)/)?.[1];
      assert.ok(set !== undefined && set in project.permissions, `${task}: ${run}`);
      assert.doesNotMatch(run, /--allow-|-A\b/, task);
    }
  }
});
