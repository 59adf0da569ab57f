/** Makes thumbnails in a child process, on demand: an image that crashes or blocks it affects no other request. */
import { ServiceError } from "../../errors.ts";
import { storageLimits } from "../limits.ts";
import {
  encodeFrame,
  type ImageFrame,
  type MadeThumbnail,
  type MakeThumbnail,
  readFrames,
} from "./frames.ts";
import type { ThumbnailSpec } from "./spec.ts";
import { HelperProcess } from "../../kit/processes/helper_process.ts";
import { entryModule } from "../../kit/processes/program_root.ts";

/** Makes thumbnails. Tests provide their own. */
export interface ThumbnailMaker extends AsyncDisposable {
  /** Returns a thumbnail; `load` is called in its slot. Throws `image_too_large`, `invalid_image`, `overloaded`, `unavailable`. */
  make(
    load: () => Promise<Uint8Array<ArrayBuffer>>,
    spec: ThumbnailSpec,
  ): Promise<Uint8Array<ArrayBuffer>>;
}

interface Job {
  readonly number: number;
  readonly load: () => Promise<Uint8Array<ArrayBuffer>>;
  readonly spec: ThumbnailSpec;
  readonly resolve: (thumbnail: Uint8Array<ArrayBuffer>) => void;
  readonly reject: (error: unknown) => void;
  /** Whether a process crashed while it was running. It then runs alone, to identify the image that causes crashes. */
  suspect: boolean;
  /** Whether its process was killed because it took too long. */
  late: boolean;
  timer: ReturnType<typeof setTimeout> | undefined;
}

export class ProcessThumbnailMaker implements ThumbnailMaker {
  #process: ImageProcess | null = null;
  readonly #waiting: Job[] = [];
  readonly #running = new Map<number, Job>();
  #jobs = 0;
  #idleTimer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;
  readonly #timeoutMs: number;

  /** `timeoutMs`: of `load`, so that a stalled download does not occupy a slot, and of the process. */
  constructor({ timeoutMs = storageLimits.thumbnailMs }: { readonly timeoutMs?: number } = {}) {
    this.#timeoutMs = timeoutMs;
  }

  make(
    load: () => Promise<Uint8Array<ArrayBuffer>>,
    spec: ThumbnailSpec,
  ): Promise<Uint8Array<ArrayBuffer>> {
    if (this.#closed) throw new ServiceError("unavailable");
    if (this.#waiting.length >= storageLimits.thumbnailsQueuedMax) throw new ServiceError("overloaded");
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array<ArrayBuffer>>();
    this.#waiting.push({
      number: ++this.#jobs,
      load,
      spec,
      resolve,
      reject,
      suspect: false,
      late: false,
      timer: undefined,
    });
    this.#dispatch();
    return promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#idleTimer);
    for (const job of this.#waiting.splice(0)) job.reject(new ServiceError("unavailable"));
    const process = this.#process;
    process?.kill();
    await process?.ended;
  }

  #dispatch(): void {
    clearTimeout(this.#idleTimer);
    for (;;) {
      const [next] = this.#waiting;
      if (next === undefined || !this.#mayStart(next)) break;
      this.#waiting.shift();
      void this.#begin(next);
    }
    if (this.#process !== null && this.#running.size === 0) {
      this.#idleTimer = setTimeout(() => this.#process?.kill(), storageLimits.thumbnailIdleMs);
      Deno.unrefTimer(this.#idleTimer);
    }
  }

  #mayStart(job: Job): boolean {
    if (job.suspect) return this.#running.size === 0;
    const besideSuspect = this.#running.values().some(({ suspect }) => suspect);
    return !besideSuspect && this.#running.size < storageLimits.thumbnailsAtOnceMax;
  }

  async #begin(job: Job): Promise<void> {
    this.#running.set(job.number, job);
    try {
      const bytes = await this.#load(job);
      if (this.#closed) throw new ServiceError("unavailable");
      const process = this.#process ??= this.#start();
      job.timer = setTimeout(() => {
        job.late = true;
        process.kill();
      }, this.#timeoutMs);
      process.send({ job: job.number, ...job.spec }, bytes);
    } catch (error) {
      this.#end(job, () => job.reject(error));
    }
  }

  async #load({ load }: Job): Promise<Uint8Array<ArrayBuffer>> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(new ServiceError("unavailable")), this.#timeoutMs);
    try {
      return await Promise.race([load(), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  #start(): ImageProcess {
    const process = new ImageProcess((frame) => this.#onAnswer(frame));
    process.ended.then(() => this.#onEnded(process));
    return process;
  }

  #onAnswer({ message, bytes }: ImageFrame<MadeThumbnail>): void {
    const job = this.#running.get(message.job);
    if (job === undefined) return;
    this.#end(job, () => message.ok ? job.resolve(bytes) : job.reject(new ServiceError(message.error)));
  }

  #onEnded(process: ImageProcess): void {
    if (this.#process === process) this.#process = null;
    // Jobs that are still loading start with the next process.
    for (const job of [...this.#running.values()].filter(({ timer }) => timer !== undefined).reverse()) {
      if (this.#closed) this.#end(job, () => job.reject(new ServiceError("unavailable")));
      else if (job.suspect) {
        // Late because of a busy machine rather than the image.
        const code = job.late ? "overloaded" : "invalid_image";
        this.#end(job, () => job.reject(new ServiceError(code)));
      } else this.#again(job);
    }
    this.#dispatch();
  }

  #again(job: Job): void {
    clearTimeout(job.timer);
    this.#running.delete(job.number);
    this.#waiting.unshift({ ...job, suspect: true, late: false, timer: undefined });
  }

  #end(job: Job, settle: () => void): void {
    clearTimeout(job.timer);
    this.#running.delete(job.number);
    settle();
    this.#dispatch();
  }
}

/** Maximum response size, far above a thumbnail of the maximum size. */
const ANSWER_BYTES_MAX = 32 * 1024 * 1024;

/** Permissions for loading sharp: its native libraries in the package folder, and detecting the C library. */
function permissions(): string[] {
  const packages = packagesFolder();
  return [
    `--allow-ffi=${packages}`,
    `--allow-read=${packages},/usr/bin/ldd`,
    "--allow-env=npm_package_config_libvips,MALLOC_ARENA_MAX",
  ];
}

function packagesFolder(): string {
  const home = Deno.env.get("HOME") ?? "/";
  const caches = Deno.build.os === "darwin" ? `${home}/Library/Caches` : `${home}/.cache`;
  const folder = Deno.env.get("DENO_DIR") ?? `${Deno.env.get("XDG_CACHE_HOME") ?? caches}/deno`;
  return `${folder}/npm`.replaceAll(",", ",,");
}

class ImageProcess {
  readonly #child: HelperProcess;
  /** Resolves after the process has exited and all its output was handled. */
  readonly ended: Promise<void>;
  /** Serializes writes. */
  #written: Promise<void> = Promise.resolve();

  constructor(onAnswer: (frame: ImageFrame<MadeThumbnail>) => void) {
    this.#child = new HelperProcess({
      entry: entryModule("mod/storage/thumbnails/process.ts"),
      permissions: permissions(),
      dataMiB: storageLimits.thumbnailDataMiB,
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
