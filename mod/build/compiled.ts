/** `deno task compile [file]`: a launcher with the single-file server, whose isolates need their own permissions. */
import { join } from "node:path";
import { buildAndReport, writeOutput } from "./output_file.ts";
import { projectDir, shell, writeArchive } from "./payload.ts";
import { launcherScripts } from "./self_extractor.ts";

/** Flags of the launcher in a folder created by {@linkcode writeLauncher}. */
export const launcherFlags: readonly string[] = ["--quiet", "--no-prompt", "--no-remote", "-P=launcher"];

/** Creates the launcher's folder: `main.ts`, configuration and payload. `archive` overrides how the payload is made. */
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
  // With the project's lock file, all of its packages would be compiled in.
  const { permissions: { launcher } } = JSON.parse(await Deno.readTextFile(join(projectDir, "deno.json")));
  await Deno.writeTextFile(join(folder, "deno.json"), JSON.stringify({ permissions: { launcher } }));
}

/** Writes the program. Throws if no `denort` runtime is available and none can be downloaded. */
export async function compile(target: string): Promise<void> {
  await writeOutput(target, async ({ file, work }) => {
    const folder = join(work, "launcher");
    await writeLauncher(folder);
    await compileLauncher(folder, { file });
  });
}

/** Runs `deno compile`. `denort` overrides the runtime from `DENORT_BIN` or the download. */
export async function compileLauncher(
  folder: string,
  { file, denort }: { readonly file: string; readonly denort?: string },
): Promise<void> {
  // No code cache: it would be stored at a predictable path in a folder shared by all users.
  const flags = [...launcherFlags, "--no-lock", "--no-code-cache", "--app-name", "syncline"];
  const inputs = ["--config", join(folder, "deno.json"), "--include", join(folder, "payload")];
  await shell(
    'exec "$@"',
    [Deno.execPath(), "compile", ...flags, ...inputs, "-o", file, join(folder, "main.ts")],
    denort === undefined ? {} : { DENORT_BIN: denort },
  );
}

if (import.meta.main) await buildAndReport(compile, { usual: "dist/syncline-compiled" });
