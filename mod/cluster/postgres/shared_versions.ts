/** Stores the app's deployed versions in the cluster's database, as packed bundles that the receiver validates. */
import type { PostgresConnection } from "./connection.ts";
import { ClusterError } from "./cluster_error.ts";
import { clusterLimits } from "./limits.ts";
import type { Statements } from "./statements.ts";

export interface SharedVersion {
  readonly hash: string;
  /** Time of the newest deploy, in milliseconds since 1970. */
  readonly at: number;
  readonly by: string;
  readonly functions: Readonly<Record<string, string>>;
  /** Size of its bundle. */
  readonly bytes: number;
  /** Whether a later row of the log names another version. */
  readonly replaced: boolean;
}

export interface SharedVersionsOptions {
  readonly connection: Pick<PostgresConnection, "query">;
  readonly statements: Statements;
}

export class SharedVersions {
  readonly #options: SharedVersionsOptions;

  constructor(options: SharedVersionsOptions) {
    this.#options = options;
  }

  /** Lists deployed versions, newest first. Throws an `AwayError`. */
  async list(): Promise<readonly SharedVersion[]> {
    const { connection, statements } = this.#options;
    const rows = await connection.query(statements.versions);
    return rows.map(({ hash, served_at, served_by, functions, bytes, until_seq }) => ({
      hash: String(hash),
      at: Number(served_at),
      by: String(served_by),
      functions: JSON.parse(String(functions)),
      bytes: Number(bytes),
      replaced: until_seq !== null,
    }));
  }

  /**
   * Uploads a bundle unless it is complete, and removes unneeded versions. `named` is the version that the leader's database
   * names at row `seq`. Throws a `ClusterError` without enough space, or an `AwayError`.
   */
  async put(
    hash: string,
    pack: () => Promise<ReadableStream<Uint8Array>>,
    { named, seq }: { readonly named: string | null; readonly seq: number },
  ): Promise<void> {
    const { connection, statements } = this.#options;
    const [known] = await connection.query(statements.keepVersion, hash);
    if (known !== undefined) return;
    await connection.query(statements.dropVersion, hash);
    await connection.query(statements.replaceVersions, named ?? "", seq);
    await connection.query(statements.trimVersions, clusterLimits.versionsKept, named ?? "");
    await connection.query(statements.removePieces);
    const [kept] = await connection.query(statements.versionsBytes);
    let left = clusterLimits.versionsBytesMax - Number(kept?.["bytes"] ?? 0);
    // A concurrent upload of the same version has its own pieces.
    const upload = `${hash}/${crypto.randomUUID()}`;
    let bytes = 0;
    let piece = 0;
    try {
      for await (const part of piecesOf(await pack())) {
        left -= part.length;
        if (left < 0) {
          throw new ClusterError(
            `The cluster keeps ${clusterLimits.versionsBytesMax} bytes of versions that its servers may still need: ` +
              "deploy again after the next snapshot",
          );
        }
        await connection.query(statements.addPiece, upload, piece++, part);
        bytes += part.length;
      }
      await connection.query(statements.addVersion, hash, bytes, piece, upload);
      const [there] = await connection.query(statements.keepVersion, hash);
      if (there === undefined) throw new ClusterError("Another server is deploying at the same time");
    } finally {
      // After a failure, the next upload removes them.
      await connection.query(statements.removePieces).catch(() => {});
    }
  }

  /** Resolves with the bundle of a version; `null` if the database does not have it. Throws an `AwayError`. */
  async read(hash: string): Promise<ReadableStream<Uint8Array<ArrayBuffer>> | null> {
    const { connection, statements } = this.#options;
    const [known] = await connection.query(statements.versionBytes, hash);
    if (known === undefined) return null;
    const pieces = Number(known["pieces"]);
    let at = 0;
    return new ReadableStream<Uint8Array<ArrayBuffer>>({
      async pull(controller) {
        if (at === pieces) return controller.close();
        const [row] = await connection.query(statements.readPiece, hash, at++);
        const body = row?.["body"];
        if (!(body instanceof Uint8Array)) throw new ClusterError(`A piece of version ${hash} is missing`);
        controller.enqueue(new Uint8Array(body));
      },
    });
  }

  /** Records that a version is served from row `seq`. Throws an `AwayError`. */
  async served(version: Omit<SharedVersion, "bytes" | "replaced">, seq: number): Promise<void> {
    const { connection, statements } = this.#options;
    const { hash, at, by, functions } = version;
    await connection.query(statements.replaceVersions, hash, seq);
    await connection.query(statements.serveVersion, hash, at, by, JSON.stringify(functions));
  }
}

async function* piecesOf(bundle: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  const { versionPieceBytes: size } = clusterLimits;
  let piece = new Uint8Array(size);
  let filled = 0;
  for await (const chunk of bundle) {
    for (let from = 0; from < chunk.length;) {
      const part = chunk.subarray(from, from + size - filled);
      piece.set(part, filled);
      filled += part.length;
      from += part.length;
      if (filled < size) continue;
      yield piece;
      piece = new Uint8Array(size);
      filled = 0;
    }
  }
  if (filled > 0) yield piece.subarray(0, filled);
}
