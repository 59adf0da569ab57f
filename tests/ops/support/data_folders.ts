/** Data folders with an engine database, and a process that keeps writing to one. */
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { openWriterDatabase, type WriterDatabase, type WriteTransaction } from "../../../mod/engine/mod.ts";
import { anyTable, schemaOf } from "../../engine/support.ts";

export const schema = schemaOf({ accounts: anyTable(), notes: anyTable(), _storage: anyTable() });

export class DataFolder implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async make(): Promise<DataFolder> {
    return new DataFolder(await Deno.makeTempDir({ prefix: "syncline-ops-" }));
  }

  /** Joins a path. */
  at(...names: readonly string[]): string {
    return join(this.path, ...names);
  }

  openWriter(): WriterDatabase {
    const writer = openWriterDatabase(this.at("data.db"), { now: () => Date.now() });
    writer.applySchema(schema);
    return writer;
  }

  /** Writes a file in the layout of the storage. */
  async putBlob(blob: string, bytes: Uint8Array): Promise<void> {
    await Deno.mkdir(this.at("storage", blob.slice(0, 2)), { recursive: true });
    await Deno.writeFile(this.at("storage", blob.slice(0, 2), blob), bytes);
  }

  /** Names of its contents, without SQLite's own files and locks. */
  async names(): Promise<string[]> {
    const names = await Array.fromAsync(Deno.readDir(this.path), ({ name }) => name);
    return names.filter((name) => !/-wal$|-shm$|lock$/.test(name)).sort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.path, { recursive: true });
  }
}

/** Runs one transaction in its own group. */
export function commit<Result>(writer: WriterDatabase, run: (tx: WriteTransaction) => Result): Result {
  writer.openGroup();
  const result = run(writer.beginMutation({ at: Date.now() }));
  writer.releaseMutation();
  writer.commitGroup("");
  return result;
}

/** A process that writes to a folder's database until it is stopped: see constant_writer.ts. */
export class ConstantWriter implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #lines: ReadableStreamDefaultReader<string>;

  private constructor(dataDir: string) {
    this.#child = new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "--quiet",
        "--no-prompt",
        "--allow-read",
        `--allow-write=${dataDir}`,
        fileURLToPath(new URL("./constant_writer.ts", import.meta.url)),
        dataDir,
      ],
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    this.#input = this.#child.stdin.getWriter();
    this.#lines = this.#child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  }

  /** Resolves when it has started to write. */
  static async start(dataDir: string): Promise<ConstantWriter> {
    const writer = new ConstantWriter(dataDir);
    await writer.#lines.read();
    return writer;
  }

  /** Number of its commits so far. */
  commits(): Promise<number> {
    return this.#say("?");
  }

  /** The same, starting a backup: see constant_writer.ts. */
  commitsBeforeBackup(): Promise<number> {
    return this.#say("for a backup");
  }

  async #say(line: string): Promise<number> {
    await this.#input.write(new TextEncoder().encode(`${line}\n`));
    return Number((await this.#lines.read()).value);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#input.close();
    await this.#lines.cancel();
    await this.#child.status;
  }
}
