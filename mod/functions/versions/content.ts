/** Computes the manifest of a version, with hashes of all files. Writes nothing. */
import { nameBelow } from "../packages/slashed_paths.ts";
import type { TimeSlicer } from "../../kit/clock.ts";
import type { AppPlace } from "../packages/package_roots.ts";
import { ChangedError, type Collected, Collector } from "./collect.ts";
import { FileSums } from "./file_sums.ts";
import type { VersionContent, VersionFile } from "./manifest.ts";

/** Cached file hashes. */
export class ContentReader {
  readonly #collector = new Collector();
  readonly #sums = new FileSums();

  /** @throws ChangedError if a file changed in the meantime, or another error if a file must not be in a version. */
  async read(
    place: AppPlace,
    turns: TimeSlicer,
  ): Promise<{ readonly content: VersionContent; readonly collected: Collected }> {
    const collected = await this.#collector.collect(place, turns);
    const { folder, files, links, code } = collected;
    const below = (path: string) => nameBelow(folder, path);
    const sums: [string, VersionFile][] = [];
    for (const path of files) {
      sums.push([below(path), this.#sums.of(path)]);
      await turns.yieldIfDue();
    }
    this.#sums.settle();
    if (!collected.unchanged()) throw new ChangedError();
    const content = {
      functions: below(place.functionsDir),
      files: Object.fromEntries(sums),
      links: Object.fromEntries([...links].map(([path, target]) => [below(path), below(target)])),
      code,
    };
    return { content, collected };
  }
}
