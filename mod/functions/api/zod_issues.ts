/** What zod found wrong, as one line that names the path. */
import type { z } from "zod";

/** Issues told at once; more are counted. */
const ISSUES_SHOWN = 5;

type Issue = z.core.$ZodIssue;

/** `args.author.name: Invalid input: ...`; several issues are joined. `root` names the checked value. */
export function issueText(error: z.core.$ZodError, root: string): string {
  const shown = error.issues.slice(0, ISSUES_SHOWN).map((issue) => oneIssue(issue, root));
  const more = error.issues.length - shown.length;
  return more > 0 ? `${shown.join("; ")}; and ${more} more` : shown.join("; ");
}

function oneIssue(issue: Issue, root: string): string {
  const path = pathText(issue.path, root);
  if (issue.code === "invalid_union" && issue.errors.length > 0) {
    // The member that came furthest is the one that was meant.
    const closest = issue.errors.reduce((best, candidate) =>
      depth(candidate) > depth(best) ? candidate : best
    );
    if (depth(closest) > 0) return closest.map((inner) => oneIssue(inner, path)).join("; ");
    const messages = new Set(issue.errors.flatMap((inner) => inner.map(({ message }) => message)));
    return `${path === "" ? "" : `${path}: `}${[...messages].join(", or: ")}`;
  }
  return path === "" ? issue.message : `${path}: ${issue.message}`;
}

function depth(issues: readonly Issue[]): number {
  return Math.max(0, ...issues.map((issue) => issue.path.length));
}

/** `root.field[0]["odd key"]`. */
export function pathText(path: readonly PropertyKey[], root: string): string {
  let text = root;
  for (const key of path) {
    if (typeof key === "number") text += `[${key}]`;
    else if (typeof key === "string" && /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(key)) {
      text += text === "" ? key : `.${key}`;
    } else text += `[${JSON.stringify(String(key))}]`;
  }
  return text;
}
