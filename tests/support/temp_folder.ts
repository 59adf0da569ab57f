/** A temporary folder that is removed when it is disposed. */
import { dirname, join } from "node:path";
import { HANG_MS, pause } from "./waiting.ts";

/** Time between attempts to remove a folder. */
const REMOVE_AGAIN_MS = 50;

export class TempFolder implements AsyncDisposable, Disposable {
  /** Absolute path without symbolic links. */
  readonly path: string = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "syncline-test-" }));

  /** Creates a folder with files, given as path and text. */
  static async with(files: Readonly<Record<string, string>>): Promise<TempFolder> {
    const folder = new TempFolder();
    await folder.write(files);
    return folder;
  }

  /** Returns a path inside the folder. */
  at(...names: string[]): string {
    return join(this.path, ...names);
  }

  /** Writes files by path and creates their folders. */
  async write(files: Readonly<Record<string, string>>): Promise<void> {
    for (const [name, text] of Object.entries(files)) {
      await Deno.mkdir(dirname(this.at(name)), { recursive: true });
      await Deno.writeTextFile(this.at(name), text);
    }
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.path, { recursive: true });
  }

  /** Waits for processes of a killed server, which may write to the folder until they end. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const endAt = performance.now() + HANG_MS;; await pause(REMOVE_AGAIN_MS)) {
      try {
        return await Deno.remove(this.path, { recursive: true });
      } catch (error) {
        if (!isNotEmpty(error) || performance.now() > endAt) throw error;
      }
    }
  }
}

/** Whether a file was created in the folder while it was removed. */
function isNotEmpty(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOTEMPTY";
}
