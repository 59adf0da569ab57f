/** Images for the rows about thumbnails, and their control: plain sharp in a loop. */
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import type { BenchContext } from "../context.ts";
import type { Child } from "../../tests/support/processes/child.ts";

const CREATE_MS_MAX = 120_000;

export class TestImages {
  /** Different JPEG files of 2000 x 1333 pixels. */
  readonly files: readonly Uint8Array<ArrayBuffer>[];
  readonly #child: Child;

  private constructor(child: Child, files: readonly Uint8Array<ArrayBuffer>[]) {
    this.#child = child;
    this.files = files;
  }

  static async create(context: BenchContext, count: number): Promise<TestImages> {
    const folder = context.folder();
    const child = context.process({
      args: [
        ...["run", "--no-prompt", "--allow-ffi", "--allow-read", "--allow-env", `--allow-write=${folder}`],
        fileURLToPath(new URL("../controls/image_loop.ts", import.meta.url)),
        folder,
        String(count),
      ],
    });
    await child.line(/^created \d+$/, CREATE_MS_MAX);
    const files = [];
    for (let index = 0; index < count; index++) {
      files.push(await Deno.readFile(join(folder, `${index}.jpg`)));
    }
    return new TestImages(child, files);
  }

  /** Process that runs sharp. */
  get pid(): number {
    return this.#child.pid;
  }

  /** Creates a thumbnail of each image with plain sharp. Returns the thumbnails per second. */
  async resizeAll(): Promise<number> {
    const took = this.#child.line(/^took ([\d.]+)$/, CREATE_MS_MAX);
    await this.#child.write("again\n");
    return this.files.length / (Number((await took)[1]) / 1000);
  }
}
