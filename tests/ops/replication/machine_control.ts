/**
 * What the machine does to a process that writes a small file now and then, as the one that ships does: how late its turn
 * comes, and how long the disk takes. Run by itself it is that process.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { syncFolder, writeAll } from "../../../mod/kit/durable_files.ts";
import { Child } from "../../bench/support/child.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { until } from "../../support/waiting.ts";

/** One file written, from when it was due to when it was on the disk. */
export interface Turn {
  /** ms since the epoch. */
  readonly dueAt: number;
  readonly ms: number;
}

const EVERY_MS = 50;
const FILE_BYTES = 16 * 1024;
/** As that of the process that ships. */
const NICENESS = "5";
const TURNS_KEPT = 2_000;
const clock = () => performance.timeOrigin + performance.now();

export class MachineControl implements AsyncDisposable {
  readonly #folder: TempFolder;
  readonly #child: Child;
  readonly #turns: Turn[] = [];

  private constructor() {
    this.#folder = new TempFolder();
    const { path } = this.#folder;
    this.#child = new Child({
      starter: ["nice", "-n", NICENESS],
      args: [
        ...["run", "--quiet", "--no-prompt", "--no-check", `--allow-read=${path}`, `--allow-write=${path}`],
        ...[fileURLToPath(import.meta.url), path],
      ],
      onLine: (line) => {
        const [, dueAt, ms] = /^turn (\S+) (\S+)$/.exec(line) ?? [];
        if (dueAt !== undefined) this.#turns.push({ dueAt: Number(dueAt), ms: Number(ms) });
        if (this.#turns.length > TURNS_KEPT) this.#turns.shift();
      },
    });
  }

  static async start(): Promise<MachineControl> {
    const control = new MachineControl();
    await control.turnsUntil(clock());
    return control;
  }

  /** Its turns up to a time, and the one behind it. */
  async turnsUntil(at: number): Promise<readonly Turn[]> {
    await until(() => (this.#turns.at(-1)?.dueAt ?? 0) > at, { what: "the control has another turn" });
    return [...this.#turns];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.kill();
    await this.#folder[Symbol.asyncDispose]();
  }
}

async function main([folder = ""]: readonly string[]): Promise<void> {
  const bytes = crypto.getRandomValues(new Uint8Array(FILE_BYTES));
  for (let number = 0;; number = (number + 1) % 10) {
    const dueAt = clock() + EVERY_MS;
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    const path = join(folder, String(number));
    {
      using file = await Deno.open(`${path}.partial`, { write: true, create: true, truncate: true });
      await writeAll(file, bytes);
      await file.sync();
    }
    await Deno.rename(`${path}.partial`, path);
    await syncFolder(folder);
    await writeAll(Deno.stdout, new TextEncoder().encode(`turn ${dueAt} ${clock() - dueAt}\n`));
  }
}

if (import.meta.main) await main(Deno.args);
