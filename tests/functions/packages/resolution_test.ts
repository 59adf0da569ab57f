/** How functions come by packages: what is found, how it is loaded, and what is said of what cannot be had. */
import assert from "node:assert/strict";
import { bundleApp } from "../../../mod/functions/packages/mod.ts";
import { packageRoots } from "../../../mod/functions/packages/package_roots.ts";
import { type AppFiles, Workspace } from "../isolate/support.ts";
import { TempFolder } from "../../support/temp_folder.ts";

interface Scenario {
  readonly name: string;
  /** By path below `node_modules`. */
  readonly installed: AppFiles;
  /** Of `query.ts`: imports, and an expression that uses them. */
  readonly imports: string;
  readonly use: string;
  readonly result: unknown;
}

const named = (fields: Record<string, unknown>) => JSON.stringify({ name: "p", ...fields });

const scenarios: readonly Scenario[] = [
  {
    name: "a package of ES modules",
    installed: {
      "p/package.json": named({ type: "module", exports: { ".": "./main.js", "./sub/*": "./parts/*.js" } }),
      "p/main.js": `export { half } from "./parts/half.js"; export default "main";`,
      "p/parts/half.js": `export const half = (n) => n / 2;`,
    },
    imports: `import main, { half } from "p"; import { half as same } from "p/sub/half";`,
    use: `[main, half(4), half === same]`,
    result: ["main", 2, true],
  },
  {
    name: "a package of CommonJS files, with JSON, a folder, a circle and names of another file",
    installed: {
      "p/package.json": named({ main: "lib" }),
      "p/lib/index.js": `#!/usr/bin/env node
        exports.before = true;
        const circle = require("./circle");
        __exportStar(require("./more.js"), exports);
        function __exportStar(m, e) { for (const k in m) if (k !== "default") e[k] = m[k]; }
        exports.seen = circle.seen();
        exports.version = require("../package.json").name;
        exports.place = [__filename, __dirname].join();`,
      "p/lib/circle/index.js": `const whole = require(".."); exports.seen = () => whole.before === true;`,
      "p/lib/more.js": `exports.more = this === module.exports && typeof require.resolve("./circle");
        exports["not-a-name"] = 1;`,
      "p/lib/circle.txt": "",
    },
    imports: `import whole, { before, more, place, seen, version } from "p";`,
    use: `[before, more, place, seen, version, whole["not-a-name"], whole.more === more]`,
    result: [true, "string", "/bundle.js,/", true, "p", 1, true],
  },
  {
