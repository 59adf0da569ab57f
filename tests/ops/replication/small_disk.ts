/** A file system in memory with little room, which can be filled for good. Linux, as root. */
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { isDiskFull } from "../../../mod/kit/durable_files.ts";

const MiB = 1024 * 1024;
const BALLAST = "ballast";

async function run(program: string, ...args: string[]): Promise<string | null> {
  const output = await new Deno.Command(program, { args, stdout: "null" }).output().catch(String);
  if (typeof output === "string") return output;
  return output.success ? null : new TextDecoder().decode(output.stderr).trim();
}

/** Why there can be none here; `null` when there can. */
export async function smallDiskMissing(): Promise<string | null> {
  if (Deno.build.os !== "linux") return "file systems are mounted on Linux only";
  const folder = await Deno.makeTempDir();
  try {
    const refused = await run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder);
    if (refused === null) await run("umount", folder);
    return refused === null ? null : `mounting is not allowed: ${refused}`;
  } finally {
    await Deno.remove(folder);
  }
}

export class SmallDisk implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async mount(mib: number): Promise<SmallDisk> {
    const path = await Deno.makeTempDir({ prefix: "syncline-disk-" });
    const refused = await run("mount", "-t", "tmpfs", "-o", `size=${mib}m,mode=0700`, "tmpfs", path);
    if (refused !== null) throw new Error(`No file system was mounted at "${path}": ${refused}`);
    return new SmallDisk(path);
  }

  at(...names: string[]): string {
    return join(this.path, ...names);
  }

  /** Fills the disk with a file, except for this much space. */
  async fill({ leaveMiB = 0 }: { readonly leaveMiB?: number } = {}): Promise<void> {
    const { bavail, bsize } = await statfs(this.path);
    using file = await Deno.open(this.at(BALLAST), { write: true, createNew: true });
    for (let left = bavail * bsize - leaveMiB * MiB; left > 0;) {
      try {
        left -= await file.write(new Uint8Array(Math.min(left, MiB)));
      } catch (error) {
        // A running server has written in the meantime.
        if (isDiskFull(error)) return;
        throw error;
      }
    }
  }

  /** Removes that file. */
  async makeRoom(): Promise<void> {
    await Deno.remove(this.at(BALLAST));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A process that still has a file open there loses it later.
    if (await run("umount", this.path) !== null) await run("umount", "--lazy", this.path);
    await Deno.remove(this.path);
  }
}
