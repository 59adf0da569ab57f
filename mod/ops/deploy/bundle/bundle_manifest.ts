/** The manifest at the start of a bundle: that of a version, restricted to paths inside the bundle. */
import { z } from "zod";
import { BUNDLE_NAME, hashOf, isBelow, isHash, type Manifest } from "../../../functions/versions/mod.ts";
import { deployLimits } from "../../limits.ts";

/** An unusable bundle; the message contains the reason. */
export class BundleError extends Error {
  override readonly name = "BundleError";
}

export const MANIFEST_NAME = "version.json";
export const CODE_PREFIX = "code/";

const path = z.string().min(1).max(deployLimits.pathCharsMax)
  // deno-lint-ignore no-control-regex -- invalid file names
  .refine((text) => isBelow(text) && !/[\u0000-\u001f\u007f\\]/.test(text), "leads out of the bundle");

const texts = z.record(z.string(), z.string());
const targets = z.record(z.string(), z.record(z.string(), z.string()));
/** Of versions of format 1, which other servers of a cluster may have stored. */
const oldFormat = {
  links: z.record(path, path).optional(),
  code: z.strictObject({
    files: texts,
    scopes: z.record(z.string(), texts),
    table: z.strictObject({
      files: z.record(z.string(), z.strictObject({ requires: targets, imports: targets })),
      required: z.array(z.string()),
      deferred: z.array(z.string()),
      refusals: texts,
    }),
  }).optional(),
};

const manifestSchema = z.strictObject({
  hash: z.string().refine(isHash, "is not a hash"),
  madeFrom: z.string().max(4_096),
  functions: path,
  static: path.optional(),
  files: z.record(
    path,
    z.strictObject({ bytes: z.int().min(0), sum: z.string().regex(/^[0-9a-f]{64}$/) }),
  ),
  ...oldFormat,
});

/** Manifest of a bundle that the server has not accepted yet. */
export type BundleManifest = Omit<Manifest, "madeAt">;

/** Throws a {@linkcode BundleError} if the number or size of files exceeds the limits. */
export function checkSizes({ files }: Pick<BundleManifest, "files">): void {
  const names = Object.keys(files);
  if (names.length > deployLimits.filesMax) {
    throw new BundleError(`The bundle has ${names.length} files; the limit is ${deployLimits.filesMax}`);
  }
  const bytesOfFiles = Object.values(files).reduce((sum, file) => sum + file.bytes, 0);
  if (bytesOfFiles > deployLimits.filesBytesMax) {
    throw new BundleError(
      `The bundle has ${bytesOfFiles} bytes; the limit is ${deployLimits.filesBytesMax}`,
    );
  }
  for (const [path, file] of Object.entries(files)) {
    if (file.bytes > deployLimits.fileBytesMax) {
      throw new BundleError(
        `The bundle's "${path}" has ${file.bytes} bytes; the limit is ${deployLimits.fileBytesMax}`,
      );
    }
  }
}

export interface ManifestOptions {
  /** Accepts sources to bundle here, from other servers only: the bundler can read, and its errors quote, any file. */
  readonly sources?: boolean;
}

/** Throws a {@linkcode BundleError} with the reason if it is invalid. */
export function parseBundleManifest(
  bytes: Uint8Array,
  { sources = false }: ManifestOptions = {},
): BundleManifest {
  const manifest = shaped(bytes);
  const { files, hash } = manifest;
  checkSizes(manifest);
  checkFolders(manifest);
  const frontend = manifest.static;
  if (frontend !== undefined && !Object.keys(files).some((path) => path.startsWith(`${frontend}/`))) {
    throw new BundleError("The bundle's frontend has no files");
  }
  const isUsable = manifest.code === undefined
    ? files[BUNDLE_NAME] !== undefined
    : sources && !hasEntries(manifest.links);
  if (!isUsable) {
    throw new BundleError(
      "The bundle was made by another version of Syncline. Deploy with the version of the server",
    );
  }
  if (hashOf(manifest) !== hash) throw new BundleError("The bundle does not match its hash");
  return manifest;
}

function shaped(bytes: Uint8Array): BundleManifest {
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new BundleError(`The bundle's ${MANIFEST_NAME} is not JSON`);
  }
  const parsed = manifestSchema.safeParse(json);
  if (parsed.success) return parsed.data as BundleManifest;
  const [issue] = parsed.error.issues;
  const at = issue?.path.map(String).join(".").slice(0, 300) ?? "";
  throw new BundleError(`The bundle's ${MANIFEST_NAME} is invalid: ${at}: ${issue?.message ?? "invalid"}`);
}

function hasEntries(record: Readonly<Record<string, unknown>> = {}): boolean {
  return Object.keys(record).length > 0;
}

/** No path may go through a file. */
function checkFolders({ files }: BundleManifest): void {
  for (const name of Object.keys(files)) {
    for (let at = name.indexOf("/"); at > 0; at = name.indexOf("/", at + 1)) {
      const folder = name.slice(0, at);
      if (Object.hasOwn(files, folder)) {
        throw new BundleError(`The bundle's "${name}" is below "${folder}", which is not a folder`);
      }
    }
  }
}
