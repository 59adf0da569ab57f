/** One process that makes thumbnails, as main sees it. */
import { HelperProcess } from "../../kit/processes/helper_process.ts";
import { programRoot } from "../../kit/processes/program_root.ts";
import { storageLimits } from "../limits.ts";
import {
  encodeFrame,
  type ImageFrame,
  type MadeThumbnail,
  type MakeThumbnail,
  readFrames,
} from "./frames.ts";

/** Longest answer: a thumbnail of the largest size is far below it. */
const ANSWER_BYTES_MAX = 32 * 1024 * 1024;

/** Queries and mutations go first. */
const NICENESS = 19;

/** What loading sharp takes: its native libraries, wherever the packages lie, and a look at the C library's kind. */
function permissions(): string[] {
  const packages = packagesFolder();
  return [
    `--allow-ffi=${packages}`,
    `--allow-read=${packages},/usr/bin/ldd`,
    "--allow-env=npm_package_config_libvips,MALLOC_ARENA_MAX",
  ];
}

/** Where the runtime keeps npm packages. */
function packagesFolder(): string {
  const home = Deno.env.get("HOME") ?? "/";
  const caches = Deno.build.os === "darwin" ? `${home}/Library/Caches` : `${home}/.cache`;
  const folder = Deno.env.get("DENO_DIR") ?? `${Deno.env.get("XDG_CACHE_HOME") ?? caches}/deno`;
  return `${folder}/npm`.replaceAll(",", ",,");
}

export class ImageProcess {
  readonly #child: HelperProcess;
  /** Resolves once the process has ended and everything it said was taken. */
  readonly ended: Promise<void>;
  /** Writes follow one another. */
  #written: Promise<void> = Promise.resolve();

  constructor(onAnswer: (frame: ImageFrame<MadeThumbnail>) => void) {
    this.#child = new HelperProcess({
      entry: new URL("mod/storage/thumbnails/process.ts", programRoot),
      permissions: permissions(),
      dataMiB: storageLimits.thumbnailDataMiB,
      niceness: NICENESS,
      stderr: "null",
    });
    this.ended = this.#read(onAnswer);
  }

  /** Hands over an image; a process that has ended answers nothing. */
  send(message: MakeThumbnail, bytes: Uint8Array): void {
    for (const part of encodeFrame(message, bytes)) {
      this.#written = this.#written.then(() => this.#child.input.write(part)).catch(() => {});
    }
  }

  kill(): void {
    this.#child.kill();
  }

  async #read(onAnswer: (frame: ImageFrame<MadeThumbnail>) => void): Promise<void> {
    try {
      for await (const frame of readFrames<MadeThumbnail>(this.#child.output, ANSWER_BYTES_MAX)) {
        onAnswer(frame);
      }
    } catch {
      // What it says makes no sense: it goes, as one that crashed.
    }
    this.kill();
    await this.#child.status;
    await this.#child.input.abort().catch(() => {});
  }
}
