/** A temporary folder that is removed when it is disposed. */
import { dirname, join } from "node:path";

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

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.path, { recursive: true });
  }
}
