/** The last entry of an archive: size and SHA-256 of all others, in a canonical format that readers compare. */
import { createHash, type Hash } from "node:crypto";
import { opsLimits } from "../../limits.ts";
import { ArchiveError } from "./frames.ts";

/** Computes checksums of the entries as they are streamed. */
export class Checksums {
  readonly #lines: string[] = [];
  readonly #names = new Set<string>();

  /** Starts the next entry. Throws an `ArchiveError` for too many entries or a duplicate name. */
  begin(name: string): EntrySum {
    if (this.#names.has(name)) throw new ArchiveError(`The archive contains "${name}" twice`);
    if (this.#names.size >= opsLimits.archiveEntriesMax) {
      throw new ArchiveError(
        `An archive cannot contain more than ${opsLimits.archiveEntriesMax} files`,
      );
    }
    this.#names.add(name);
    return new EntrySum((size, sha256) => this.#lines.push(JSON.stringify({ name, size, sha256 })));
  }

  /** Contents of the checksum entry. */
  text(): string {
    return `{"entries":[\n${this.#lines.join(",\n")}\n]}\n`;
  }
}

export class EntrySum {
  readonly #hash: Hash = createHash("sha256");
  readonly #whenWhole: (size: number, sha256: string) => void;
  #size = 0;

  constructor(whenWhole: (size: number, sha256: string) => void) {
    this.#whenWhole = whenWhole;
  }

  take(bytes: Uint8Array): void {
    this.#hash.update(bytes);
    this.#size += bytes.length;
  }

  /** Call after the last bytes. */
  end(): void {
    this.#whenWhole(this.#size, this.#hash.digest("hex"));
  }
}

/** Throws an `ArchiveError` naming the first entry whose size or checksum differs. */
export function compareSums(
  { listed, found }: { readonly listed: string; readonly found: string },
): void {
  if (listed === found) return;
  const listedLines = listed.split("\n");
  const at = found.split("\n").findIndex((line, index) => line !== listedLines[index]);
  const name = /"name":"([^"]*)"/.exec(listedLines[at] ?? "")?.[1];
  throw new ArchiveError(
    name === undefined
      ? "The archive is damaged: its checksum list does not match its files"
      : `The archive is damaged: wrong checksum of "${name}"`,
  );
}
