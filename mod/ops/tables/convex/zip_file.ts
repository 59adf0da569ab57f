/** Random access to the entries of a zip archive. */
import { open } from "yauzl";
import type { Readable } from "node:stream";

/** The used part of the library, which has no types. */
interface Entry {
  readonly fileName: string;
  readonly uncompressedSize: number;
}
interface Library {
  readEntry(): void;
  openReadStream(entry: Entry, done: (error: Error | null, stream?: Readable) => void): void;
  on(event: "entry", listener: (entry: Entry) => void): void;
  on(event: "end", listener: () => void): void;
  on(event: "error", listener: (error: Error) => void): void;
  close(): void;
}
type Open = (
  path: string,
  options: { readonly lazyEntries: true; readonly autoClose: false },
  done: (error: Error | null, zip?: Library) => void,
) => void;

export class ZipFile implements Disposable {
  readonly #zip: Library;
  readonly #entries: ReadonlyMap<string, Entry>;

  private constructor(zip: Library, entries: ReadonlyMap<string, Entry>) {
    this.#zip = zip;
    this.#entries = entries;
  }

  /** Reads the directory. Throws if the file is not a zip archive, is damaged, or has more entries than `entriesMax`. */
  static async open(path: string, { entriesMax }: { readonly entriesMax: number }): Promise<ZipFile> {
    const zip = await new Promise<Library>((resolve, reject) =>
      (open as Open)(path, { lazyEntries: true, autoClose: false }, (error, zip) => {
        if (zip === undefined) reject(error ?? new Error("Cannot open the archive"));
        else resolve(zip);
      })
    );
    try {
      return new ZipFile(zip, await entriesOf(zip, entriesMax));
    } catch (error) {
      zip.close();
      throw error;
    }
  }

  get names(): readonly string[] {
    return [...this.#entries.keys()];
  }

  /** Uncompressed size of an entry in bytes. */
  size(name: string): number {
    return this.#entries.get(name)?.uncompressedSize ?? 0;
  }

  /** Reads an entry. Throws if it does not exist. */
  async *read(name: string): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void> {
    const entry = this.#entries.get(name);
    if (entry === undefined) throw new Error(`The archive has no ${name}`);
    const stream = await new Promise<Readable>((resolve, reject) =>
      this.#zip.openReadStream(entry, (error, stream) => {
        if (stream === undefined) reject(error ?? new Error(`Cannot read ${name}`));
        else resolve(stream);
      })
    );
    try {
      for await (const chunk of stream) yield chunk as Uint8Array<ArrayBuffer>;
    } finally {
      stream.destroy();
    }
  }

  [Symbol.dispose](): void {
    this.#zip.close();
  }
}

function entriesOf(zip: Library, entriesMax: number): Promise<Map<string, Entry>> {
  const entries = new Map<string, Entry>();
  return new Promise((resolve, reject) => {
    zip.on("entry", (entry) => {
      if (!entry.fileName.endsWith("/")) entries.set(entry.fileName, entry);
      if (entries.size > entriesMax) return reject(new RangeError(`It has more than ${entriesMax} files`));
      zip.readEntry();
    });
    zip.on("end", () => resolve(entries));
    zip.on("error", reject);
    zip.readEntry();
  });
}
