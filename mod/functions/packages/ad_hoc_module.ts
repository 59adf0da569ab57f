/** Turns the TypeScript of an ad hoc query into JavaScript, in a child process that runs none of it. */
import { AD_HOC_MODULE, SOURCES_URL } from "../wire/app_sources.ts";
import { failureOf } from "./bundle_errors.ts";
import { runBundler, splitMap, withMap } from "./bundler_process.ts";

/** A folder that every system has. The bundler reads no files for a single module. */
const FOLDER = "/";

/**
 * Returns a module whose default export is the query. A source without imports and exports is the expression of a
 * function.
 *
 * @param functions Name of the functions folder in the names of sources.
 * @throws BundleFailure with the line of a syntax error.
 */
export async function adHocModule(source: string, functions: string): Promise<string> {
  const isModule = /^\s*(?:export|import)\s/m.test(source);
  const { ok, output, report } = await runBundler({
    flags: [
      "--loader=ts",
      "--format=esm",
      "--target=esnext",
      "--sourcemap=inline",
      "--sources-content=false",
      "--log-level=error",
      "--log-limit=0",
      "--color=false",
      "--tsconfig-raw={}",
      `--sourcefile=functions/${AD_HOC_MODULE.name}`,
    ],
    input: isModule ? source : `export default ${source}`,
    folder: FOLDER,
  });
  if (!ok) throw failureOf(report, { functionsDir: "/functions", quoted: FOLDER });
  const { code, map } = splitMap(output);
  return withMap(code, { ...map, sources: [`${SOURCES_URL}${functions}/${AD_HOC_MODULE.name}`] });
}
