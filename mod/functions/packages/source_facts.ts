/** What a source file says about other files, read without running it. Too much is harmless, too little is not. */
import { initSync as initCommonJs, parse as parseCommonJs } from "cjs-module-lexer";
import { parse as parseModule } from "es-module-lexer/js";

/** Facts of an ES module. Texts of specifiers, each once. */
export interface ModuleFacts {
  /** Whether it has `import`, `export` or `import.meta`. */
  readonly isModule: boolean;
  /** Needed to load it. */
  readonly imports: readonly string[];
  /** Named in `import("...")`. */
  readonly deferred: readonly string[];
}

/** Facts of a CommonJS file. */
export interface CommonJsFacts {
  readonly requires: readonly string[];
  /** Named in `import("...")`. */
  readonly deferred: readonly string[];
  /** Names it exports. */
  readonly names: readonly string[];
  /** Files whose names it exports too. */
  readonly reexports: readonly string[];
}

const REQUIRE = /\brequire(?:\.resolve)?\s*\(\s*(["'`])([^"'`\\\n$]+)\1\s*\)/g;
/** For sources that the lexer does not understand, JSX above all. */
const IMPORT = /\b(?:from|import)\s*\(?\s*(["'])([^"'\\\n]+)\1/g;

export function moduleFacts(source: string): ModuleFacts {
  try {
    const [references, , , isModule] = parseModule(source);
    const imports = new Set<string>();
    const deferred = new Set<string>();
    for (const reference of references) {
      if (reference.type === "dynamic" && reference.specifier !== undefined) {
        deferred.add(reference.specifier);
      } else if ((reference.type === "static" || reference.type === "reexport-star") && !reference.typeOnly) {
        imports.add(reference.specifier);
      }
    }
    return { isModule, imports: [...imports], deferred: [...deferred] };
  } catch {
    return { isModule: true, imports: matches(source, IMPORT), deferred: [] };
  }
}

let ready = false;

export function commonJsFacts(source: string): CommonJsFacts {
  if (!ready) initCommonJs();
  ready = true;
  return {
    requires: matches(source, REQUIRE),
    deferred: source.includes("import(") ? moduleFacts(source).deferred : [],
    ...namesOf(source),
  };
}

function namesOf(source: string): { names: readonly string[]; reexports: readonly string[] } {
  try {
    const { exports, reexports } = parseCommonJs(source);
    return { names: [...new Set(exports)], reexports: [...new Set(reexports)] };
  } catch {
    // What is wrong with it is told when it runs.
    return { names: [], reexports: [] };
  }
}

function matches(source: string, pattern: RegExp): string[] {
  return [...new Set([...source.matchAll(pattern)].map(([, , specifier = ""]) => specifier))];
}
