/**
 * `deno task build:zod`: prints zod as one module, because each isolate loads it twice and its files load slowly. The module
 * works with frozen prototypes: zod adds members to a prototype with the first schema, check or error of a kind.
 */
import { build, type Plugin, stop } from "esbuild";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

type Edit = readonly [text: string, replacement: string];

/** Edits by file. Members that a frozen prototype lacks go to a frozen object above it, or to one instance. */
const EDITS: Readonly<Record<string, readonly Edit[]>> = {
  "core/core.js": [
    [
      "export /*@__NO_SIDE_EFFECTS__*/ function $constructor(",
      `const onKind = globalThis.__zod_onKind;
const layers = new WeakSet();
function layerOver(own, target, protoMembers) {
    const layer = Object.create(own);
    installMembers(layer, protoMembers);
    for (let up = own; up && up !== target; up = Object.getPrototypeOf(up)) {
        if (!layers.has(up)) for (const key of Reflect.ownKeys(up)) delete layer[key];
    }
    layers.add(layer);
    return Object.freeze(layer);
}
export /*@__NO_SIDE_EFFECTS__*/ function $constructor(`,
    ],
    [
      "const initialized = protoMembers && new WeakSet();",
      "const initialized = protoMembers && new WeakSet(); const layerOf = protoMembers && new WeakMap();",
    ],
    [
      `if (!initialized.has(target)) {
                initialized.add(target);
                installMembers(target, protoMembers);
            }`,
      `if (!initialized.has(target)) {
                if (Object.isExtensible(target)) {
                    initialized.add(target);
                    installMembers(target, protoMembers);
                }
                else {
                    let layer = layerOf.get(own);
                    if (!layer) layerOf.set(own, layer = layerOver(own, target, protoMembers));
                    Object.setPrototypeOf(inst, layer);
                }
            }`,
    ],
    [
      `Object.defineProperty(_, "name", { value: name });
    return _;`,
      `Object.defineProperty(_, "name", { value: name });
    onKind?.(_, zodProto, Definition.prototype);
    return _;`,
    ],
  ],
  "core/util.js": [
    [
      "return sentinel in proto ? undefined : proto;",
      "return sentinel in proto ? undefined : membersOf(inst);",
    ],
    [
      "/** Returns the prototype to install on, or `undefined` if",
      `export function membersOf(inst) {
    const proto = Object.getPrototypeOf(inst);
    return Object.isExtensible(proto) ? proto : inst;
}
/** Returns the prototype to install on, or \`undefined\` if`,
    ],
    [
      "export const propertyKeyTypes = /* @__PURE__*/ new Set([",
      `class FixedSet {
    #items;
    constructor(items) {
        this.#items = items;
    }
    has(item) {
        return this.#items.includes(item);
    }
}
export const propertyKeyTypes = /* @__PURE__*/ new FixedSet([`,
    ],
    [
      "export const primitiveTypes = /* @__PURE__*/ new Set([",
      "export const primitiveTypes = /* @__PURE__*/ new FixedSet([",
    ],
    ["const proto = Object.getPrototypeOf(inst._zod);", "let proto = Object.getPrototypeOf(inst._zod);"],
    [
      "installing = inst._zod;\n",
      `installing = inst._zod;
    if (!Object.isExtensible(proto)) Object.setPrototypeOf(inst._zod, proto = Object.create(proto));
`,
    ],
  ],
  "core/errors.js": [
    [
      `const proto = Object.getPrototypeOf(inst);
    if (!_installedToString.has(proto)) {`,
      `let proto = Object.getPrototypeOf(inst);
    if (!_installedToString.has(proto)) {
        proto = util.membersOf(inst);`,
    ],
  ],
  "classic/errors.js": [
    [
      `const proto = Object.getPrototypeOf(inst);
    if (_installedErrorProtos.has(proto))
        return;`,
      `let proto = Object.getPrototypeOf(inst);
    if (_installedErrorProtos.has(proto))
        return;
    proto = util.membersOf(inst);`,
    ],
  ],
};

/** Not possible on a frozen regular expression, even with the same value. */
const RESET = /([\w.]+|\$\{patternConst\})\.lastIndex = 0;/g;

const withEdits: Plugin = {
  name: "edits",
  setup({ onLoad }) {
    onLoad({ filter: /[/\\]v4[/\\](core|classic)[/\\]\w+\.js$/ }, async ({ path }) => {
      const name = path.split(/[/\\]/).slice(-2).join("/");
      let contents = await Deno.readTextFile(path);
      for (const [text, replacement] of EDITS[name] ?? []) {
        if (contents.split(text).length !== 2) {
          throw new Error(`${name} of zod has not exactly one "${text}"`);
        }
        contents = contents.replace(text, () => replacement);
      }
      return { contents: contents.replace(RESET, "if ($1.lastIndex !== 0) $1.lastIndex = 0;") };
    });
  },
};

/** Returns the source of the module. */
export async function isolateZod(): Promise<string> {
  const entry = fileURLToPath(import.meta.resolve("zod"));
  const license = await Deno.readTextFile(join(dirname(entry), "LICENSE"));
  const { outputFiles: [file] } = await build({
    entryPoints: [entry],
    bundle: true,
    format: "esm",
    target: "esnext",
    minifyWhitespace: true,
    plugins: [withEdits],
    banner: {
      js:
        `/* Built by "deno task build:zod" from the package zod, changed for frozen prototypes:\n\n${license.trim()}\n*/`,
    },
    write: false,
    logLevel: "warning",
  });
  await stop();
  if (file === undefined) throw new Error("esbuild produced no output");
  return file.text;
}

if (import.meta.main) await Deno.stdout.write(new TextEncoder().encode(await isolateZod()));
