/**
 * Turns the output of `tsc --watch` into one report per edit: position, message, the lines of code, and a hint where the
 * compiler's message misleads.
 */
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";

/** Status messages of the compiler. */
const STATUS = /^\s*$| - (?:Starting compilation|File change detected)/;
const FINISHED = /Found (\d+) errors?\. Watching/;
const ERROR = /^(.+?)\((\d+),(\d+)\): error (TS\d+): (.*)$/;
/** A deleted file that the compiler has not forgotten yet. It compiles again without it. */
const DELETED = /^error TS6053: File '(.+)' not found/;

/** Collects the output of each compilation. */
export class TypeReports {
  readonly #root: string;
  #lines: string[] = [];

  constructor(root: string) {
    this.#root = root;
  }

  /** Takes a line of output. Returns a report when a compilation has ended, empty without errors; otherwise `null`. */
  add(line: string): string | null {
    const found = FINISHED.exec(line);
    if (found === null) {
      if (!STATUS.test(line)) this.#lines.push(line);
      return null;
    }
    const { lines, count } = withoutDeleted(this.#lines, Number(found[1]));
    this.#lines = [];
    return count === 0 ? "" : [
      ...lines.flatMap((each) => [each, ...this.#details(each)]),
      `${count} type error${count === 1 ? "" : "s"}; the code is served anyway`,
    ].join("\n");
  }

  /** The line of code with the column marked, and a hint. */
  #details(line: string): string[] {
    const [, file = "", row = "", column = "", code = "", message = ""] = ERROR.exec(line) ?? [];
    if (file === "") return [];
    const path = resolve(this.#root, file);
    const text = existsSync(path) ? readFileSync(path, "utf8").split("\n")[Number(row) - 1] : undefined;
    const frame = text === undefined
      ? []
      : [`  ${row} | ${text}`, `  ${" ".repeat(row.length)} | ${" ".repeat(Number(column) - 1)}^`];
    const hint = hintFor({ file, code, message });
    return hint === null ? frame : [...frame, `  Hint: ${hint}`];
  }
}

function withoutDeleted(lines: readonly string[], count: number) {
  const kept: string[] = [];
  let isDeleted = false;
  for (const line of lines) {
    const path = DELETED.exec(line)?.[1];
    // Further lines of an error are indented.
    if (!/^\s/.test(line)) isDeleted = path !== undefined && !existsSync(path);
    if (!isDeleted) kept.push(line);
    else if (path !== undefined) count--;
  }
  return { lines: kept, count };
}

function hintFor(
  { file, code, message }: { readonly file: string; readonly code: string; readonly message: string },
): string | null {
  if (/^TS70(?:22|23|24)$/.test(code)) {
    return "its type depends on itself through `api` or `internal`. Write the result type of the handler, such as " +
      "`async (ctx): Promise<string> =>`";
  }
  if (/ does not exist on type 'Promise</.test(message)) {
    return "write `await` before the call that returns the promise";
  }
  if (!/^functions\b/.test(file)) return null;
  const [, module] = /(?:module|name) '(node:(?:fs|child_process|worker_threads)\b[\w/]*)'/.exec(message) ??
    [];
  if (module !== undefined) {
    return `${module} throws in functions, which have no files and processes. Store files with ctx.storage`;
  }
  if (/'process'/.test(message)) return "functions read environment variables as ctx.env.NAME, in actions";
  return null;
}
