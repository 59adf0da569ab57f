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
    const closest = closestOf(issue.errors);
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

/** Issues told by field at once. */
const FIELD_ISSUES_MAX = 100;

/** What zod found wrong, by field; of a union, what is wrong for the member that was meant. */
export function fieldIssues(
  error: z.core.$ZodError,
): { readonly path: readonly (string | number)[]; readonly message: string }[] {
  return error.issues.flatMap((issue) => placedIssues(issue, [])).slice(0, FIELD_ISSUES_MAX);
}

function placedIssues(
  issue: Issue,
  root: readonly (string | number)[],
): { readonly path: readonly (string | number)[]; readonly message: string }[] {
  const path = [...root, ...issue.path.map((key) => typeof key === "number" ? key : String(key))];
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => ({ path: [...path, key], message: "The table has no such field" }));
  }
  if (issue.code === "invalid_union" && issue.errors.length > 0) {
    const closest = closestOf(issue.errors);
    if (depth(closest) > 0) return closest.flatMap((inner) => placedIssues(inner, path));
  }
  return [{ path, message: issue.message }];
}

/** The member of a union that came furthest is the one that was meant. */
function closestOf(errors: readonly (readonly Issue[])[]): readonly Issue[] {
  return errors.reduce((best, candidate) => depth(candidate) > depth(best) ? candidate : best);
}
