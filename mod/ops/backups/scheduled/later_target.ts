/**
 * A backup target that is opened on first use, so that startup does not wait for it. A failed open is retried by the next
 * operation.
 */
import type { BackupTarget } from "./backup_target.ts";

export class LazyTarget implements BackupTarget {
  readonly place: string;
  readonly #open: () => Promise<BackupTarget>;
  #opened: Promise<BackupTarget> | null = null;
  #closed = false;

  constructor(place: string, open: () => Promise<BackupTarget>) {
    this.place = place;
    this.#open = open;
  }

  async check(): Promise<void> {
    await (await this.#target()).check();
  }

  async list(): Promise<string[]> {
    return await (await this.#target()).list();
  }

  async put(name: string, path: string): Promise<void> {
    await (await this.#target()).put(name, path);
  }

  async fetch(name: string, path: string): Promise<boolean> {
    return await (await this.#target()).fetch(name, path);
  }

  async remove(name: string): Promise<void> {
    await (await this.#target()).remove(name);
  }

  /** The owner aborts operations in flight first. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    const target = await this.#opened?.catch(() => null);
    await target?.[Symbol.asyncDispose]();
  }

  async #target(): Promise<BackupTarget> {
    if (this.#closed) throw new Error("The backup target is closed");
    const opening = this.#opened ??= this.#open();
    try {
      return await opening;
    } catch (error) {
      if (this.#opened === opening) this.#opened = null;
      throw error;
    }
  }
}
