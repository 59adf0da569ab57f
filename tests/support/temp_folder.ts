/** A temporary folder that goes with the test that made it. */
import { dirname, join } from "node:path";

export class TempFolder implements AsyncDisposable, Disposable {
  /** Absolute, without links in it. */
  readonly path: string = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "syncline-test-" }));

  /** With files by path, each with its text. */
  static async with(files: Readonly<Record<string, string>>): Promise<TempFolder> {
    const folder = new TempFolder();
    await folder.write(files);
    return folder;
  }

  /** A path inside of it. */
  at(...names: string[]): string {
    return join(this.path, ...names);
  }

  /** Writes files by path, with the folders they lie in. */
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
