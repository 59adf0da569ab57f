/**
 * Builds the server with `deno compile`: `deno task compile [file]`. The program is the launcher, which carries what the
 * single file carries: a compiled server could not give its isolates permissions and import maps of their own.
 */
import { join } from "node:path";
import { buildAndTell, writeOutput } from "./output_file.ts";
import { projectDir, writeArchive } from "./payload.ts";
import { launcherScripts } from "./self_extractor.ts";
import { shell } from "./shell.ts";

/** Flags of the launcher's own, compiled or not, in a folder made by {@linkcode writeLauncher}. */
export const launcherFlags: readonly string[] = ["--quiet", "--no-prompt", "--no-remote", "-P=launcher"];

/**
 * Makes a folder with the launcher's module `main.ts`, its configuration and its payload. `archive`: makes the payload's
 * file, when not from the project, and says what is in it.
 */
export async function writeLauncher(
  folder: string,
  archive = (path: string) => writeArchive(path, { work: join(folder, "bundle") }),
): Promise<void> {
  const payload = join(folder, "payload");
  await Deno.mkdir(payload, { recursive: true });
  const name = await archive(join(payload, "archive"));
  const { unpack, start } = launcherScripts(name);
  await Deno.writeTextFile(join(payload, "unpack.sh"), unpack);
  await Deno.writeTextFile(join(payload, "start.sh"), start);
  await Deno.copyFile(join(projectDir, "mod/build/launcher/main.ts"), join(folder, "main.ts"));
  // With the project's own, all packages of its lock file would be compiled in.
  const { permissions: { launcher } } = JSON.parse(await Deno.readTextFile(join(projectDir, "deno.json")));
  await Deno.writeTextFile(join(folder, "deno.json"), JSON.stringify({ permissions: { launcher } }));
}

/** Writes the program. Throws when there is neither a runtime for it nor a way to Deno's own site. */
export async function compile(target: string): Promise<void> {
  await writeOutput(target, async ({ file, work }) => {
    const folder = join(work, "launcher");
    await writeLauncher(folder);
    await compileLauncher(folder, { file });
  });
}

/** The last step of it. `denort`: the runtime to put into the program, instead of that of `DENORT_BIN` or of Deno's site. */
export async function compileLauncher(
  folder: string,
  { file, denort }: { readonly file: string; readonly denort?: string },
): Promise<void> {
  // Without a code cache: its file would stand in a folder for all users, under a name that anybody can tell.
  const flags = [...launcherFlags, "--no-lock", "--no-code-cache", "--app-name", "syncline"];
  const inputs = ["--config", join(folder, "deno.json"), "--include", join(folder, "payload")];
  await shell(
    'exec "$@"',
    [Deno.execPath(), "compile", ...flags, ...inputs, "-o", file, join(folder, "main.ts")],
    denort === undefined ? {} : { DENORT_BIN: denort },
  );
}

if (import.meta.main) await buildAndTell(compile, { usual: "dist/syncline-compiled" });
