/** Permissions of a started server: its own files and nothing else, regardless of the names of its folders. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { requiredFileAccess } from "../../mod/server/permissions/narrow.ts";
import { workerConfig } from "../../mod/server/workers/boot.ts";
import { workerPermissions } from "../../mod/server/workers/worker_process.ts";
import { testConfig } from "./support/fake_backend.ts";
import { TempFolder } from "../support/temp_folder.ts";

const PROBE = fileURLToPath(new URL("./support/served_probe.ts", import.meta.url));
const CONFIG = fileURLToPath(new URL("../../deno.json", import.meta.url));

const FILES: Readonly<Record<string, string>> = {
  "app/functions/a.ts": "",
  "app/.env": "SECRET=1",
  "app/node_modules/p/package.json": "{}",
  "packages/q/package.json": "{}",
  "data/file": "",
  "public/index.html": "",
  "mails/reset.txt": "",
  "auth/config.json":
    '{"providers": {"google": {"clientId": "a", "clientSecret": {"file": "../secrets/one"}}}}',
  "secrets/one": "",
  "later/file": "",
  "backups/file": "",
  beside: "",
};

const OPTIONS = [
  ...["--functions", "app/functions", "--static", "public", "--mail-templates", "mails"],
  ...["--auth-config", "auth/config.json", "--backup-every", "1h", "--backup-to", "backups"],
];

/** Allowed only to a server with all permissions. */
const ALLOWED = [
  "read the data",
  "write the data",
  "make a link in the data",
  "bundle the functions",
  "read the functions",
  "look at the functions",
  "read packages beside the functions",
  "read a package of the same project",
  "read the static files",
  "read the mail templates",
  "read a secret that --auth-config names",
  "write the backups",
  "read its own sources",
  "listen",
  "start sh",
  "have a backup put into a folder named later",
];

async function prepared(folder: string): Promise<void> {
  for (const [path, text] of Object.entries(FILES)) {
    await Deno.mkdir(join(folder, path, ".."), { recursive: true });
    await Deno.writeTextFile(join(folder, path), text);
  }
  // As workspaces have it.
  await Deno.mkdir(join(folder, "node_modules"));
  await Deno.symlink("../packages/q", join(folder, "node_modules/q"));
}

interface Probed {
  readonly outcomes: Readonly<Record<string, string>>;
  readonly log: readonly string[];
}

async function probed(
  folder: string,
  { options = OPTIONS, permissions = ["-P=serve"] }: {
    readonly options?: readonly string[];
    readonly permissions?: readonly string[];
  } = {},
): Promise<Probed> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-prompt", "--config", CONFIG, ...permissions, PROBE, ...options],
    cwd: folder,
  }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
  return JSON.parse(new TextDecoder().decode(stdout));
}

Deno.test("[PE1] [PE2] [PE3] a started server may use its own files, and few processes and addresses", async () => {
  await using temp = new TempFolder();
  const folder = temp.path;
  await prepared(folder);
  const { outcomes, log } = await probed(folder, { options: ["--data", "data", ...OPTIONS] });
  const expected = Object.keys(outcomes).map((
    name,
  ) => [name, ALLOWED.includes(name) ? "allowed" : "refused"]);
  assert.deepEqual(outcomes, Object.fromEntries(expected));
  assert.deepEqual(ALLOWED.filter((name) => !(name in outcomes)), []);
  assert.deepEqual(log, []);
});

Deno.test("[PE1] access outside of the options is refused, and folders are resolved through links", async () => {
  await using temp = new TempFolder();
  const folder = temp.path;
  await prepared(folder);
  await Deno.rename(join(folder, "data"), join(folder, "real"));
  await Deno.symlink("real", join(folder, "data"));
  const { outcomes } = await probed(folder, { options: ["--data", "data", "--functions", "app/functions"] });
  const of = (...names: string[]) => names.map((name) => outcomes[name]);
  assert.deepEqual(of("read the data", "write the data", "read the functions"), Array(3).fill("allowed"));
  assert.deepEqual(
    of(
      "read the static files",
      "read the mail templates",
      "read a secret that --auth-config names",
      "write the backups",
    ),
    Array(4).fill("refused"),
  );
});

Deno.test("[PE1] a server started with permissions it cannot drop reports it", async () => {
  await using temp = new TempFolder();
  await prepared(temp.path);
  const permissions = ["--allow-read", "--allow-write", "--allow-env", "--allow-run=sh", "--allow-sys"];
  const { outcomes, log } = await probed(temp.path, { permissions, options: ["--data", "data", ...OPTIONS] });
  assert.equal(outcomes["read a file of the system"], "allowed");
  assert.match(log.join(), /^warn The server may read or write all files/);
});

Deno.test("[PE1] [WK10] a data folder with a short name has its sockets elsewhere if its link target is long", async () => {
  await using temp = new TempFolder();
  const long = temp.at("d".repeat(100));
  await Deno.mkdir(long);
  await Deno.symlink(long, temp.at("l"));
  const temporary = Deno.env.get("TMPDIR") || "/tmp";
  for (const [dataDir, expected] of [[temp.at("l"), true], [long, true], ["/nowhere", false]] as const) {
    const { write } = await requiredFileAccess(testConfig({ dataDir }));
    assert.equal(write.includes(temporary), expected, dataDir);
    if (!expected) continue;
    const flags = await workerPermissions({
      name: "worker-1",
      host: "127.0.0.1",
      port: 1,
      link: { path: temp.at("k"), secret: "" },
      passed: { path: temp.at("p") },
      settings: {},
      config: workerConfig(testConfig({ dataDir })),
    });
    const [, paths = ""] = flags.find((flag) => flag.startsWith("--allow-write="))?.split("=") ?? [];
    assert.ok(paths.split(",").includes(temporary), paths);
  }
});
