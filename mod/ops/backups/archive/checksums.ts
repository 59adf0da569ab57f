/**
 * The last entry of an archive: size and SHA-256 of every other one, in their order. It is written in one way only, one
 * line for each, so that a reader puts the text together itself and compares.
 */
import { createHash, type Hash } from "node:crypto";
import { opsLimits } from "../../limits.ts";
import { ArchiveError } from "./archive_error.ts";

/** Takes the bytes of the entries as they pass by. */
export class Checksums {
  readonly #lines: string[] = [];
  readonly #names = new Set<string>();

  /** Begins the next entry. Throws an `ArchiveError` when there are too many, or two of one name. */
  begin(name: string): EntrySum {
    if (this.#names.has(name)) throw new ArchiveError(`"${name}" stands twice in the archive`);
    if (this.#names.size >= opsLimits.archiveEntriesMax) {
      throw new ArchiveError(
        `There are more than ${opsLimits.archiveEntriesMax} files, too many for an archive`,
      );
    }
    this.#names.add(name);
    return new EntrySum((size, sha256) => this.#lines.push(JSON.stringify({ name, size, sha256 })));
  }

  /** The text of the entry. */
  text(): string {
    return `{"entries":[\n${this.#lines.join(",\n")}\n]}\n`;
  }
}

/** Size and sum of one entry, as its bytes come. */
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

  /** All bytes were taken. */
  end(): void {
    this.#whenWhole(this.#size, this.#hash.digest("hex"));
  }
}

/** Throws an `ArchiveError` that names the first entry whose size or sum is not as listed. */
export function compareSums(
  { listed, found }: { readonly listed: string; readonly found: string },
): void {
  if (listed === found) return;
  const listedLines = listed.split("\n");
  const at = found.split("\n").findIndex((line, index) => line !== listedLines[index]);
  const name = /"name":"([^"]*)"/.exec(listedLines[at] ?? "")?.[1];
  throw new ArchiveError(
    name === undefined
      ? "The archive is damaged: its list of checksums is not that of its files"
      : `The archive is damaged: "${name}" is not as its checksum says`,
  );
}
