/** Unpacks a bundle in a temporary folder and stores it as a version. */
import type { Version, VersionStore } from "../../../functions/versions/mod.ts";
import { removeIfThere } from "../../../kit/durable_files.ts";
import type { ManifestOptions } from "./bundle_manifest.ts";

/** `folder` must not exist. Throws errors of `unpackBundle`, and a `VersionError`. */
export async function takeBundle(
  bundle: ReadableStream<Uint8Array<ArrayBuffer>>,
  { folder, versions, madeAt, sources }: ManifestOptions & {
    readonly folder: string;
    readonly versions: Pick<VersionStore, "adopt">;
    readonly madeAt: number;
  },
): Promise<Version> {
  const { unpackBundle } = await import("./unpack.ts");
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  await using _folder = { [Symbol.asyncDispose]: () => removeIfThere(folder) };
  const manifest = await unpackBundle(bundle, folder, { ...(sources && { sources }) });
  return await versions.adopt({ ...manifest, madeAt }, folder);
}
