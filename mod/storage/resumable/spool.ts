/** Folder of unfinished uploads: bytes, and a record with the number of durable ones. A start truncates the rest. */
import { join } from "node:path";
import { z } from "zod";
import { removeIfThere, statIfThere, syncFolder, writeDurably } from "../../kit/durable_files.ts";
import { blobName } from "../tables.ts";

const RECORD = ".json";
const BYTES = ".part";

/** Random part of an upload URL's token, used as file name. */
const tokenName = z.string().regex(/^[A-Za-z0-9_-]{22}$/);

const recordShape = z.strictObject({
  token: tokenName,
  blob: blobName,
  /** Announced size of the file in bytes. */
  length: z.int().min(0),
  /** Number of durable bytes. */
  offset: z.int().min(0),
  /** The `Upload-Metadata` header as received. */
  metadata: z.string().nullable(),
  contentType: z.string().nullable(),
  name: z.string().nullable(),
  createdBy: z.string().nullable(),
  /** Milliseconds since the epoch. */
  beganAt: z.number(),
  /** SHA-256 of the contents, set once complete. From then on the bytes may be in the blob store. */
  sha256: z.string().nullable(),
});

export type UploadRecord = Readonly<z.infer<typeof recordShape>>;

export class Spool {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async open(folder: string): Promise<Spool> {
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
    await syncFolder(join(folder, ".."));
    return new Spool(folder);
  }

  /** Returns the uploads left unfinished by an earlier server, and removes unrelated files. */
  async load(): Promise<UploadRecord[]> {
    const names: string[] = [];
    for await (const { name } of Deno.readDir(this.#folder)) names.push(name);
    const records: UploadRecord[] = [];
    for (const name of names.filter((name) => name.endsWith(RECORD))) {
      const record = await this.#read(name);
      if (record !== null) records.push(record);
    }
    const kept = new Set(records.flatMap(({ token }) => [token + RECORD, token + BYTES]));
    for (const name of names) if (!kept.has(name)) await removeIfThere(join(this.#folder, name));
    return records;
  }

  /** Creates an empty upload. */
  async create(record: UploadRecord): Promise<void> {
    try {
      await Deno.writeFile(this.path(record), new Uint8Array(), { mode: 0o600 });
      await this.save(record);
    } catch (error) {
      await this.remove(record).catch(() => {});
      throw error;
    }
  }

  /** Saves a record durably. The bytes it counts must be durable already. */
  async save(record: UploadRecord): Promise<void> {
    await writeDurably(join(this.#folder, record.token + RECORD), JSON.stringify(record));
  }

  /** Opens the file positioned after the durable bytes, truncating the rest. */
  async append(record: UploadRecord): Promise<Deno.FsFile> {
    const file = await Deno.open(this.path(record), { write: true });
    try {
      await file.seek(record.offset, Deno.SeekMode.Start);
      return file;
    } catch (error) {
      file.close();
      throw error;
    }
  }

  async remove(record: UploadRecord): Promise<void> {
    // Remove the record first: bytes without a record are removed at the next start.
    await removeIfThere(join(this.#folder, record.token + RECORD));
    await removeIfThere(this.path(record));
  }

  /** Path of an upload's bytes. */
  path({ token }: UploadRecord): string {
    return join(this.#folder, token + BYTES);
  }

  /** Returns `null` if the record is damaged or bytes are missing. */
  async #read(name: string): Promise<UploadRecord | null> {
    const text = await Deno.readTextFile(join(this.#folder, name));
    const parsed = recordShape.safeParse(jsonOrNull(text));
    if (!parsed.success || parsed.data.token + RECORD !== name) return null;
    const record = parsed.data;
    if (record.offset > record.length) return null;
    const bytes = await statIfThere(this.path(record));
    if (bytes === null) return record.sha256 === null ? null : record;
    if (bytes.size < record.offset) return null;
    if (bytes.size > record.offset) await Deno.truncate(this.path(record), record.offset);
    return record;
  }
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
