/** Unpacks a bundle file by file as listed in its manifest, and rejects everything else. */
import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import { createTarDecoder, type ParsedTarEntry } from "modern-tar";
import { isDiskFull, writeAll } from "../../../kit/durable_files.ts";
import { ServiceError } from "../../../errors.ts";
import { hasDiskSpace } from "../../new_file.ts";
import { deployLimits } from "../../limits.ts";
import {
  BundleError,
  type BundleManifest,
  CODE_PREFIX,
  MANIFEST_NAME,
  type ManifestOptions,
  parseBundleManifest,
} from "./bundle_manifest.ts";

/** Overhead of the format per file: headers and padding. */
const ENTRY_BYTES = 8 * 512;
/** Additional overhead. */
const SLACK_BYTES = 1024 * 1024;

/** Unpacks into an empty folder, which the caller removes on a {@linkcode BundleError} (damage, size, paths outside). */
export async function unpackBundle(
  source: ReadableStream<Uint8Array<ArrayBuffer>>,
  folder: string,
  options: ManifestOptions = {},
): Promise<BundleManifest> {
  let bytesMax = deployLimits.manifestBytesMax + SLACK_BYTES;
  let bytes = 0;
  const bounded = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.length;
      if (bytes > bytesMax) {
        controller.error(new BundleError("The bundle is larger than its manifest states"));
      } else controller.enqueue(chunk);
    },
  });
  const entries = source.pipeThrough(new DecompressionStream("gzip")).pipeThrough(bounded)
    .pipeThrough(createTarDecoder({ strict: true })).getReader();
  try {
    const manifest = parseBundleManifest(await firstEntry(entries), options);
    const { files } = manifest;
    const total = Object.values(files).reduce((sum, file) => sum + file.bytes, 0);
    // The space is needed twice: unpacked, and as a version.
    if (!await hasDiskSpace(folder, 2 * total)) throw new ServiceError("disk_full");
    bytesMax += total + (Object.keys(files).length + 2) * ENTRY_BYTES;
    const missing = new Set(Object.keys(files));
    for (;;) {
      const { done, value } = await entries.read();
      if (done) break;
      const path = value.header.name.slice(CODE_PREFIX.length);
      if (!value.header.name.startsWith(CODE_PREFIX) || !missing.delete(path)) throw surplus(value);
      await extract(value, { path: join(folder, path), expected: files[path]?.sum ?? "" }).catch((error) => {
        // The folder was empty and names are unique.
        throw error instanceof Deno.errors.AlreadyExists ? oneName(Object.keys(files)) : error;
      });
    }
    const [first] = missing;
    if (first !== undefined) throw new BundleError(`The bundle is truncated: "${first}" is missing`);
    return manifest;
  } catch (error) {
    if (error instanceof BundleError || error instanceof ServiceError) throw error;
    if (isDiskFull(error)) throw new ServiceError("disk_full", undefined, { cause: error });
    throw new BundleError(`The bundle is damaged: ${error instanceof Error ? error.message : error}`, {
      cause: error,
    });
  } finally {
    await entries.cancel().catch(() => {});
  }
}

async function firstEntry(entries: ReadableStreamDefaultReader<ParsedTarEntry>): Promise<Uint8Array> {
  const { done, value } = await entries.read();
  if (done) throw new BundleError("The bundle is empty");
  const { header: { name, size, type }, body } = value;
  if (name !== MANIFEST_NAME || type !== "file") {
    throw new BundleError(`The bundle does not start with ${MANIFEST_NAME}`);
  }
  if (size > deployLimits.manifestBytesMax) {
    throw new BundleError(`The bundle's ${MANIFEST_NAME} is too large`);
  }
  return new Uint8Array(await new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer());
}

async function extract(
  { header, body }: ParsedTarEntry,
  { path, expected }: { readonly path: string; readonly expected: string },
): Promise<void> {
  if (header.type !== "file") throw surplus({ header });
  await Deno.mkdir(dirname(path), { recursive: true, mode: 0o700 });
  using file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
  const sum = createHash("sha256");
  for await (const chunk of body) {
    sum.update(chunk);
    await writeAll(file, chunk);
  }
  if (sum.digest("hex") !== expected) {
    throw new BundleError(`The bundle's ${JSON.stringify(header.name)} does not match its manifest`);
  }
}

/** Returns two names that are equal on a case-insensitive disk. */
function sameOnSomeDisks(names: readonly string[]): readonly [string, string] | null {
  const seen = new Map<string, string>();
  for (const name of names) {
    const folded = name.normalize("NFC").toLowerCase();
    const other = seen.get(folded);
    if (other !== undefined) return [other, name];
    seen.set(folded, name);
  }
  return null;
}

/** Error for names that are equal on a case-insensitive disk. */
export function oneName(names: readonly string[]): BundleError {
  const [one, other] = sameOnSomeDisks(names) ?? ["", ""];
  return new BundleError(
    `"${one}" and "${other}" are the same name on the server's case-insensitive disk. Rename one`,
  );
}

function surplus({ header: { name, type } }: Pick<ParsedTarEntry, "header">): BundleError {
  return new BundleError(
    `The bundle contains ${JSON.stringify(name.slice(0, 400))} (${type}), which its manifest does not list`,
  );
}
