/** Photos for the rows about thumbnails, and plain sharp that makes thumbnails of them in a loop. */
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { Child } from "../../tests/support/processes/child.ts";

const MAKE_MS = 120_000;

export class TestPhotos implements AsyncDisposable {
  /** All different, as JPEG of 2000 x 1333 pixels. */
  readonly images: readonly Uint8Array<ArrayBuffer>[];
  readonly #child: Child;

  private constructor(child: Child, images: readonly Uint8Array<ArrayBuffer>[]) {
    this.#child = child;
    this.images = images;
  }

  static async make(
    folder: string,
    count: number,
    { starter = [] }: { readonly starter?: readonly string[] } = {},
  ): Promise<TestPhotos> {
    const child = new Child({
      args: [
        "run",
        "--no-prompt",
        "--allow-ffi",
        "--allow-read",
        "--allow-env",
        `--allow-write=${folder}`,
        fileURLToPath(new URL("../controls/image_loop.ts", import.meta.url)),
        folder,
        String(count),
      ],
      starter,
    });
    try {
      await child.line(/^made \d+$/, MAKE_MS);
      const images = [];
      for (let at = 0; at < count; at++) images.push(await Deno.readFile(join(folder, `${at}.jpg`)));
      return new TestPhotos(child, images);
    } catch (error) {
      await child.kill();
      throw error;
    }
  }

  /** Of the process that loops. */
  get pid(): number {
    return this.#child.pid;
  }

  /** Thumbnails made each second by the loop. */
  async loop(): Promise<number> {
    const looped = this.#child.line(/^looped ([\d.]+)$/, MAKE_MS);
    await this.#child.write("again\n");
    return this.images.length / (Number((await looped)[1]) / 1000);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#child[Symbol.asyncDispose]();
  }
}
