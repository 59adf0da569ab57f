/**
 * Starts like `serve` with the given arguments until it drops permissions. Then it tries operations and
 * prints the outcomes as JSON. Runs in a folder that has `app`, `data`, `public` and `mails`, `apart`
 * and a file `beside`.
 */
import { join } from "node:path";
import { runCommandLine } from "../../../mod/cli/command_line.ts";
import { resolveConfig } from "../../../mod/config/resolve_config.ts";
import { VersionStore } from "../../../mod/functions/versions/mod.ts";
import { makeLinks } from "../../../mod/kit/durable_files.ts";
import { BackupTarget } from "../../../mod/ops/backups/scheduled/mod.ts";
import { scheduledName } from "../../../mod/ops/backups/scheduled/backup_target.ts";
import { narrowPermissions, networkInterfaces } from "../../../mod/server/permissions/narrow.ts";

type Attempt = () => unknown;

const folder = Deno.cwd();
const at = (...path: string[]) => join(folder, ...path);

function writes(folder: string): Attempt {
  const path = join(folder, "written");
  return async () => {
    await Deno.writeTextFile(path, "");
    await Deno.remove(path);
  };
}

const attempts: Record<string, Attempt> = {
  "read the data": () => Deno.readTextFile(at("data/file")),
  "write the data": writes(at("data")),
  "make a link in the data": async () => {
    await makeLinks([{ path: at("data/link"), target: "file" }]);
    await Deno.readTextFile(at("data/link"));
  },
  "bundle the functions": async () => {
    const store = await VersionStore.open(at("data"));
    const { bundle } = await store.make({ functionsDir: at("app/functions") });
    await Deno.link(bundle, at("data/standing.js"));
    await Deno.readTextFile(at("data/standing.js"));
  },
  "read the functions": () => Deno.readTextFile(at("app/functions/a.ts")),
  "look at the functions": () => Deno.watchFs(at("app/functions")).close(),
  "read packages beside the functions": () => Deno.readTextFile(at("app/node_modules/p/package.json")),
  "read a package of the same project": () => Deno.readTextFile(at("packages/q/package.json")),
  "read the static files": () => Deno.readTextFile(at("public/index.html")),
  "read the mail templates": () => Deno.readTextFile(at("mails/reset.txt")),
  "read a secret that --auth-config names": () => Deno.readTextFile(at("secrets/one")),
  "write the backups": writes(at("backups")),
  "read its own sources": () => Deno.readTextFile(new URL("../../../mod/limits.ts", import.meta.url)),
  "listen": () => Deno.listen({ port: 0, hostname: "127.0.0.1" }).close(),
  "start sh": () => new Deno.Command("sh", { args: ["-c", "true"] }).output(),
  "have a backup put into a folder named later": async () => {
    await using target = new BackupTarget({ kind: "folder", path: at("later") });
    await target.open();
    await Deno.writeTextFile(at("data/archive"), "all of it");
    const name = scheduledName(new Date());
    await target.check();
    await target.put(name, at("data/archive"));
    const names = await target.list();
    if (names.join() !== name) throw new Error(`there are ${names}`);
    await target.remove(name);
    if ((await target.list()).length > 0) throw new Error("it was not removed");
  },
  "read a file of the system": () => Deno.readTextFile("/etc/passwd"),
  "read a file beside the data": () => Deno.readTextFile(at("beside")),
  "read a file beside the functions": () => Deno.readTextFile(at("app/.env")),
  "write beside the data": writes(folder),
  "write the functions": writes(at("app/functions")),
  "write the static files": writes(at("public")),
  "write its own sources": writes(new URL("../../../mod", import.meta.url).pathname),
  "rename out of the data": () => Deno.rename(at("data/file"), at("file")),
  "link what is outside into the data": () => Deno.symlink(at("beside"), at("data/beside")),
  "make a temporary file": () => Deno.makeTempFile(),
  "use a folder that was named later": writes(at("later")),
  "start another program": () => new Deno.Command("/bin/ls", { stdout: "null" }).output(),
  "start the runtime": () => new Deno.Command(Deno.execPath(), { args: ["--version"] }).output(),
  "read the whole environment": () => Deno.env.toObject(),
  "reach the credentials of a cloud": () => Deno.connect({ hostname: "169.254.169.254", port: 80 }),
  "ask for the machine's addresses": () => Deno.networkInterfaces(),
  "load a native library": () => Deno.dlopen("libm.so.6", {}).close(),
};

async function outcomeOf(attempt: Attempt): Promise<string> {
  try {
    await attempt();
    return "allowed";
  } catch (error) {
    return error instanceof Deno.errors.NotCapable ? "refused" : `failed: ${error}`;
  }
}

const log: string[] = [];
const code = await runCommandLine([{
  name: "serve",
  description: "",
  async run(options, _argument, given) {
    await narrowPermissions(
      await resolveConfig(options, given),
      (level, text) => log.push(`${level} ${text}`),
    );
    // The loopback is everywhere.
    if ((await networkInterfaces()).length === 0) log.push("warn there are no addresses");
    const outcomes: Record<string, string> = {};
    for (const [name, attempt] of Object.entries(attempts)) outcomes[name] = await outcomeOf(attempt);
    // deno-lint-ignore no-console -- the answer to the test that started this
    console.log(JSON.stringify({ outcomes, log }));
    return 0;
  },
}], {
  args: ["serve", ...Deno.args],
  env: (name) => Deno.env.get(name),
  out: () => {},
  err: (text) => Deno.stderr.writeSync(new TextEncoder().encode(text)),
});
Deno.exit(code);
