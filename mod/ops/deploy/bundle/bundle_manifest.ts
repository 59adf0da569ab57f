/** The manifest at the start of a bundle: that of a version, restricted to paths inside the bundle. */
import { z } from "zod";
import { checkForeignCode, hashOf, isBelow, isHash, type Manifest } from "../../../functions/versions/mod.ts";
import { deployLimits } from "../../limits.ts";
import { BundleError } from "./bundle_error.ts";

/** Entry name of the manifest. */
export const MANIFEST_NAME = "version.json";
/** Prefix of all files. */
export const CODE_PREFIX = "code/";

const target = z.union([
  z.strictObject({ file: z.string() }),
  z.strictObject({ module: z.string() }),
  z.strictObject({ refused: z.string() }),
]);
const texts = z.record(z.string(), z.string());
const targets = z.record(z.string(), target);
const path = z.string().min(1).max(deployLimits.pathCharsMax)
  // deno-lint-ignore no-control-regex -- invalid file names
  .refine((text) => isBelow(text) && !/[\u0000-\u001f\u007f\\]/.test(text), "leads out of the bundle");

const manifestSchema = z.strictObject({
  hash: z.string().refine(isHash, "is not a hash"),
  madeFrom: z.string().max(4_096),
  functions: path,
  static: path.optional(),
  files: z.record(
    path,
    z.strictObject({ bytes: z.int().min(0), sum: z.string().regex(/^[0-9a-f]{64}$/) }),
  ),
  links: z.record(path, path),
  code: z.strictObject({
    files: texts,
    scopes: z.record(z.string(), texts),
    table: z.strictObject({
      files: z.record(z.string(), z.strictObject({ requires: targets, imports: targets })),
      required: z.array(z.string()),
      deferred: z.array(z.string()),
      refusals: texts,
    }),
  }),
});

/** Manifest of a bundle that the server has not accepted yet. */
export type BundleManifest = Omit<Manifest, "madeAt">;

/** Throws a {@linkcode BundleError} if the number or size of files exceeds the limits. */
export function checkSizes({ files, links }: Pick<BundleManifest, "files" | "links">): void {
  const names = [...Object.keys(files), ...Object.keys(links)];
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

/** Throws a {@linkcode BundleError} with the reason if it is invalid. */
export function parseBundleManifest(bytes: Uint8Array): BundleManifest {
  const manifest = shaped(bytes);
  const { files, hash, code } = manifest;
  checkSizes(manifest);
  checkLinks(manifest);
  const frontend = manifest.static;
  if (frontend !== undefined && !Object.keys(files).some((path) => path.startsWith(`${frontend}/`))) {
    throw new BundleError("The bundle's front end has no files");
  }
  try {
    checkForeignCode(code);
  } catch (error) {
    throw new BundleError(error instanceof Error ? error.message : String(error));
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

/**
 * Links must be inside the functions folder and lead to a file or folder of it, and no path may go through a link or a file:
 * below a link, even a path that looks local could be anywhere.
 */
function checkLinks({ files, links, functions, static: frontend }: BundleManifest): void {
  for (const [path, to] of Object.entries(links)) {
    const inside = path.startsWith(`${functions}/`) && (to === functions || to.startsWith(`${functions}/`));
    if (!inside) {
      throw new BundleError(`The bundle's "${path}" is a link that leads out of the functions folder`);
    }
    if (Object.hasOwn(files, path)) throw new BundleError(`The bundle's "${path}" is a file and a link`);
  }
  const folders = [functions, ...frontend === undefined ? [] : [frontend]].map((folder) => `${folder}/`);
  for (const name of [...Object.keys(files), ...Object.keys(links), ...folders]) {
    for (let at = name.indexOf("/"); at > 0; at = name.indexOf("/", at + 1)) {
      const folder = name.slice(0, at);
      if (Object.hasOwn(links, folder) || Object.hasOwn(files, folder)) {
        throw new BundleError(`The bundle's "${name}" is below "${folder}", which is not a folder`);
      }
    }
  }
}
