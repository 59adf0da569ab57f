/** Unpacks a bundle in a temporary folder and stores it as a version. */
import { dirname, join } from "node:path";
import { hashOf, type Manifest, type Version, type VersionStore } from "../../../functions/versions/mod.ts";
import { removeIfThere } from "../../../kit/durable_files.ts";
import { type BundleManifest, checkSizes, type ManifestOptions } from "./bundle_manifest.ts";

/** A version whose frontend is added to bundles without one. */
export interface FrontendSource {
  readonly manifest: Manifest;
  /** Folder with its files. */
  readonly folder: string;
}

/** `folder` must not exist. Throws errors of `unpackBundle`, and a `VersionError`. */
export async function takeBundle(
  bundle: ReadableStream<Uint8Array<ArrayBuffer>>,
  { folder, versions, madeAt, sources, frontend = null }: ManifestOptions & {
    readonly folder: string;
    readonly frontend?: FrontendSource | null;
    readonly versions: Pick<VersionStore, "adopt">;
    readonly madeAt: number;
  },
): Promise<Version> {
  const { unpackBundle } = await import("./unpack.ts");
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  await using _folder = { [Symbol.asyncDispose]: () => removeIfThere(folder) };
  const manifest = await unpackBundle(bundle, folder, { ...(sources && { sources }) });
  const isWhole = frontend === null || manifest.static !== undefined;
  const whole = isWhole ? manifest : await withFrontend(manifest, { frontend, folder });
  return await versions.adopt({ ...whole, madeAt }, folder);
}

/** Adds the frontend of another version to an unpacked bundle. */
async function withFrontend(
  manifest: BundleManifest,
  { frontend, folder }: { readonly frontend: FrontendSource; readonly folder: string },
): Promise<BundleManifest> {
  const { static: name, files: theirs } = frontend.manifest;
  if (name === undefined) return manifest;
  const files = { ...manifest.files };
  for (const [path, file] of Object.entries(theirs)) {
    if (!path.startsWith(`${name}/`)) continue;
    files[path] = file;
    const target = join(folder, path);
    await Deno.mkdir(dirname(target), { recursive: true, mode: 0o700 });
    await Deno.copyFile(join(frontend.folder, path), target);
  }
  const whole = { ...manifest, files, static: name };
  checkSizes(whole);
  return { ...whole, hash: hashOf(whole) };
}
