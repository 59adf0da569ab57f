/** Handle of one image process in the main process. */
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

/** Maximum response size, far above a thumbnail of the maximum size. */
const ANSWER_BYTES_MAX = 32 * 1024 * 1024;

/** Queries and mutations take precedence. */
const NICENESS = 19;

/** Permissions for loading sharp: its native libraries in the package folder, and detecting the C library. */
function permissions(): string[] {
  const packages = packagesFolder();
  return [
    `--allow-ffi=${packages}`,
    `--allow-read=${packages},/usr/bin/ldd`,
    "--allow-env=npm_package_config_libvips,MALLOC_ARENA_MAX",
  ];
}

/** The runtime's folder of npm packages. */
function packagesFolder(): string {
  const home = Deno.env.get("HOME") ?? "/";
  const caches = Deno.build.os === "darwin" ? `${home}/Library/Caches` : `${home}/.cache`;
  const folder = Deno.env.get("DENO_DIR") ?? `${Deno.env.get("XDG_CACHE_HOME") ?? caches}/deno`;
  return `${folder}/npm`.replaceAll(",", ",,");
}

export class ImageProcess {
  readonly #child: HelperProcess;
  /** Resolves after the process has exited and all its output was handled. */
  readonly ended: Promise<void>;
  /** Serializes writes. */
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

  /** Sends an image. A process that has exited never responds. */
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
      // Invalid output is handled like a crash.
    }
    this.kill();
    await this.#child.status;
    await this.#child.input.abort().catch(() => {});
  }
}
