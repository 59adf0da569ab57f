/**
 * Where unfinished uploads lie until they are files: for each, its bytes so far and a record of what is known of it. The
 * record says how many of the bytes are certain to be on disk; a server that starts cuts off whatever lies behind them.
 */
import { join } from "node:path";
import { z } from "zod";
import { removeIfThere, statIfThere, syncFolder, writeDurably } from "../../kit/durable_files.ts";
import { blobName } from "../blobs/blob_name.ts";

const RECORD = ".json";
const BYTES = ".part";

/** The random part of an upload URL's token; files are named after it. */
const tokenName = z.string().regex(/^[A-Za-z0-9_-]{22}$/);

const recordShape = z.strictObject({
  token: tokenName,
  /** Name of the blob that the bytes will be. */
  blob: blobName,
  /** Bytes of the whole file, as announced. */
  length: z.int().min(0),
  /** Bytes that are on disk for certain. */
  offset: z.int().min(0),
  /** The `Upload-Metadata` header, as it came. */
  metadata: z.string().nullable(),
  contentType: z.string().nullable(),
  name: z.string().nullable(),
  createdBy: z.string().nullable(),
  /** Milliseconds since the epoch. */
  beganAt: z.number(),
  /** Of the contents, in hexadecimal; known once all bytes are there. From then on the bytes may lie in the blob store. */
  sha256: z.string().nullable(),
});

/** What is known of an unfinished upload. */
export type UploadRecord = Readonly<z.infer<typeof recordShape>>;

export class Spool {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Opens a folder, made when missing. */
  static async open(folder: string): Promise<Spool> {
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
    await syncFolder(join(folder, ".."));
    return new Spool(folder);
  }

  /** The uploads that a server before this one left unfinished. What belongs to none of them is removed. */
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

  /** Begins an upload of no bytes. */
  async create(record: UploadRecord): Promise<void> {
    try {
      await Deno.writeFile(this.path(record), new Uint8Array(), { mode: 0o600 });
      await this.save(record);
    } catch (error) {
      await this.remove(record).catch(() => {});
      throw error;
    }
  }

  /** Brings a record to disk. The bytes it counts have to be there already. */
  async save(record: UploadRecord): Promise<void> {
    await writeDurably(join(this.#folder, record.token + RECORD), JSON.stringify(record));
  }

  /** The bytes of an upload, opened behind those that are certain. */
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

  /** Forgets an upload. */
  async remove(record: UploadRecord): Promise<void> {
    // The record first: bytes without one are removed at the next start.
    await removeIfThere(join(this.#folder, record.token + RECORD));
    await removeIfThere(this.path(record));
  }

  /** Where the bytes of an upload lie. */
  path({ token }: UploadRecord): string {
    return join(this.#folder, token + BYTES);
  }

  /** `null` for a record that is damaged, or whose bytes are not all there. */
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
