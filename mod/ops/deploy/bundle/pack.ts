/** Packs the bundle of an app's functions and a frontend for an upload. */
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { createTarPacker, type TarPackController } from "modern-tar";
import { TimeSlicer } from "../../../kit/clock.ts";
import {
  bundleContent,
  FileSums,
  hashOf,
  type Manifest,
  type VersionContent,
  type VersionFile,
} from "../../../functions/versions/mod.ts";
import { deployLimits } from "../../limits.ts";
import {
  BundleError,
  type BundleManifest,
  checkSizes,
  CODE_PREFIX,
  MANIFEST_NAME,
} from "./bundle_manifest.ts";

/** Folder of the frontend in a version. */
const STATIC_FOLDER = ".static";

/** The path of a file, or its content. */
type Place = string | Uint8Array<ArrayBuffer>;

/** A bundle whose contents are read from disk while packing. */
export interface Bundle {
  readonly manifest: BundleManifest;
  /** Total size of the files. */
  readonly bytes: number;
  /** Returns a gzipped tar. Fails if a file no longer matches the manifest. */
  readonly packed: () => ReadableStream<Uint8Array>;
}

export interface BundleSource {
  readonly functionsDir: string;
  /** Folder with a built frontend. */
  readonly staticDir: string | null;
  /** Excluded. Absolute path. */
  readonly dataDir: string;
}

/** Throws with the reason if files are unreadable, forbidden or too large. */
export async function readBundle({ functionsDir: given, staticDir, dataDir }: BundleSource): Promise<Bundle> {
  const functionsDir = await Deno.realPath(given);
  const { content, bundle } = await bundleContent({ functionsDir, dataDir });
  // The bundle is the only file without a frontend.
  const places = new Map<string, Place>(Object.keys(content.files).map((path) => [path, bundle.code]));
  const whole = staticDir === null
    ? content
    : await withStatic(content, { staticDir, places, turns: new TimeSlicer() });
  checkSizes(whole);
  const hash = hashOf(whole);
  const manifest = { ...whole, hash, madeFrom: bundle.folder };
  const bytes = Object.values(whole.files).reduce((sum, file) => sum + file.bytes, 0);
  return { manifest, bytes, packed: () => pack(manifest, places) };
}

async function withStatic(
  content: VersionContent,
  { staticDir, places, turns }: {
    readonly staticDir: string;
    readonly places: Map<string, Place>;
    readonly turns: TimeSlicer;
  },
): Promise<VersionContent> {
  const files: Record<string, VersionFile> = { ...content.files };
  const sums = new FileSums();
  const names = staticFiles(staticDir);
  if (names.length === 0) {
    throw new BundleError(`${staticDir} contains no files to serve. Build the frontend first`);
  }
  for (const name of names) {
    const path = `${STATIC_FOLDER}/${name}`;
    files[path] = sums.of(join(staticDir, name));
    places.set(path, join(staticDir, name));
    await turns.yieldIfDue();
  }
  return { ...content, files, static: STATIC_FOLDER };
}

/** Returns paths below the folder, without links and hidden files, except for `.well-known`. */
function staticFiles(staticDir: string): string[] {
  const found: string[] = [];
  const walk = (folder: string) => {
    for (const entry of Deno.readDirSync(join(staticDir, folder))) {
      const name = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.name.startsWith(".") && name !== ".well-known") continue;
      if (entry.isDirectory) walk(name);
      else if (entry.isFile) found.push(name);
      if (found.length > deployLimits.filesMax) {
        throw new BundleError(`${staticDir} has more than ${deployLimits.filesMax} files`);
      }
    }
  };
  walk("");
  return found.sort();
}

export function packVersion(manifest: Manifest, folder: string): ReadableStream<Uint8Array> {
  const { madeAt: _, ...content } = manifest;
  return pack(content, new Map(Object.keys(content.files).map((path) => [path, join(folder, path)])));
}

function pack(manifest: BundleManifest, places: ReadonlyMap<string, Place>): ReadableStream<Uint8Array> {
  const { readable, controller } = createTarPacker();
  putAll(controller, manifest, places).catch((error: unknown) => controller.error(error));
  return (readable as ReadableStream<Uint8Array<ArrayBuffer>>).pipeThrough(new CompressionStream("gzip"));
}

async function putAll(
  controller: TarPackController,
  manifest: BundleManifest,
  places: ReadonlyMap<string, Place>,
): Promise<void> {
  const put = async (name: string, bytes: Uint8Array) => {
    const body = controller.add({ name, size: bytes.length, mode: 0o600, mtime: new Date(0) }).getWriter();
    if (bytes.length > 0) await body.write(bytes);
    await body.close();
  };
  await put(MANIFEST_NAME, Buffer.from(JSON.stringify(manifest)));
  for (const [path, { bytes }] of Object.entries(manifest.files)) {
    const place = places.get(path) ?? "";
    const content = typeof place === "string" ? await Deno.readFile(place) : place;
    if (content.length !== bytes) throw new BundleError(`${path} changed during the upload`);
    await put(`${CODE_PREFIX}${path}`, content);
  }
  controller.finalize();
}
