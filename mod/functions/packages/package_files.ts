/** The files of an app and its packages while the graph is walked: their kinds, and what they say of other files. */
import { dirname, extname } from "node:path";
import { packageLimits } from "../limits.ts";
import { type CommonJsFacts, commonJsFacts, type ModuleFacts, moduleFacts } from "./source_facts.ts";

/** A file and what it says. */
export type PackageFile =
  | { readonly kind: "module"; readonly facts: ModuleFacts }
  | { readonly kind: "commonJs"; readonly facts: CommonJsFacts }
  | { readonly kind: "json" | "addon" | "other" };

/** What tells one state of a file from the next. */
interface Stamp {
  /** Of its content or of the file itself, such as when it was installed: installers set the time of the content. */
  readonly changedAt: number;
  readonly bytes: number;
}

interface Known {
  readonly stamp: Stamp;
  readonly file: PackageFile;
}

/** What npm, pnpm and yarn write when they have installed something. */
const INSTALL_MARKS = ["/.package-lock.json", "/.modules.yaml", "/.yarn-integrity"];

/** Remembers files from walk to walk, those of the newest walk only. */
export class PackageFiles {
  #known = new Map<string, Known>();
  #used = new Map<string, Known>();
  /** `type` of the package.json nearest to a folder, within one walk. */
  #types = new Map<string, string | null>();
  #bytes = 0;
  /** Files and folders that change when packages are installed, with their state at the newest walk. */
  #watched = new Map<string, Stamp | null>();

  /** Begins a walk over packages that lie below these folders. */
  begin(roots: readonly string[]): void {
    this.#used = new Map();
    this.#types = new Map();
    this.#bytes = 0;
    this.#watched = new Map(
      roots.flatMap((root) => ["", ...INSTALL_MARKS].map((name) => [root + name, stampOf(root + name)])),
    );
  }

  /** Forgets the files of earlier walks. */
  end(): void {
    this.#known = this.#used;
  }

  /** The files of the newest walk. */
  get paths(): string[] {
    return [...this.#used.keys()];
  }

  /** Whether the files of the newest walk are as they were. */
  get unchanged(): boolean {
    for (const [path, stamp] of this.#watched) if (!same(stampOf(path), stamp)) return false;
    for (const [path, { stamp }] of this.#known) if (!same(stampOf(path), stamp)) return false;
    return true;
  }

  /** `own`: a file of the app itself, whose `.js` are modules. Throws when it cannot be read, or past the limits. */
  read(path: string, own: boolean): PackageFile {
    const used = this.#used.get(path);
    if (used !== undefined) return used.file;
    const stamp = stampOf(path);
    if (stamp === null) throw new Error(`Cannot find the file ${path}`);
    this.#bytes += stamp.bytes;
    if (this.#used.size >= packageLimits.filesMax || this.#bytes > packageLimits.bytesMax) {
      throw new Error(
        `The app and its packages have more than ${packageLimits.filesMax} files or ${packageLimits.bytesMax} bytes of code`,
      );
    }
    const known = this.#known.get(path);
    const file = known !== undefined && same(known.stamp, stamp) ? known.file : this.#parse(path, own);
    this.#used.set(path, { stamp, file });
    return file;
  }

  #parse(path: string, own: boolean): PackageFile {
    const extension = extname(path);
    switch (extension) {
      case ".json":
        return { kind: "json" };
      case ".node":
        return { kind: "addon" };
      case ".cjs":
      case ".cts":
        return { kind: "commonJs", facts: commonJsFacts(Deno.readTextFileSync(path)) };
      case ".js":
      case ".jsx":
      case "":
        if (!own) return this.#parseByType(path);
        break;
      case ".mjs":
      case ".mts":
      case ".ts":
      case ".tsx":
        break;
      default:
        return { kind: "other" };
    }
    return { kind: "module", facts: moduleFacts(Deno.readTextFileSync(path)) };
  }

  /** A package that does not say what its files are is judged by their syntax, as Node does. */
  #parseByType(path: string): PackageFile {
    const source = Deno.readTextFileSync(path);
    const type = this.#typeOf(dirname(path));
    if (type !== "commonjs") {
      const facts = moduleFacts(source);
      if (type === "module" || facts.isModule) return { kind: "module", facts };
    }
    return { kind: "commonJs", facts: commonJsFacts(source) };
  }

  #typeOf(folder: string): string | null {
    const known = this.#types.get(folder);
    if (known !== undefined) return known;
    let type = readType(`${folder}/package.json`);
    if (type === undefined) {
      const parent = dirname(folder);
      type = parent === folder || folder.endsWith("/node_modules") ? null : this.#typeOf(parent);
    }
    this.#types.set(folder, type);
    return type;
  }
}

/** `null` when there is no such file. */
function stampOf(path: string): Stamp | null {
  try {
    const { mtime, ctime, size } = Deno.statSync(path);
    return { changedAt: Math.max(mtime?.getTime() ?? 0, ctime?.getTime() ?? 0), bytes: size };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) return null;
    throw error;
  }
}

function same(one: Stamp | null, other: Stamp | null): boolean {
  return one?.changedAt === other?.changedAt && one?.bytes === other?.bytes;
}

/** `type` of a package.json; `null` when it says nothing, `undefined` when there is no such file. */
function readType(path: string): string | null | undefined {
  try {
    const { type } = JSON.parse(Deno.readTextFileSync(path)) as { readonly type?: unknown };
    return type === "module" || type === "commonjs" ? type : null;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) return undefined;
    return null;
  }
}
