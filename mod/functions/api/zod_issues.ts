/** Formats zod issues as one line with paths. */
import type { z } from "zod";

/** Issues shown at once; further ones are counted. */
const ISSUES_SHOWN = 5;

type Issue = z.core.$ZodIssue;

/** Returns `args.author.name: Invalid input: ...`, joining several issues. `root` names the validated value. */
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

/** Returns `root.field[0]["odd key"]`. */
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

/** Issues by field returned at once. */
const FIELD_ISSUES_MAX = 100;

/** Returns zod issues by field; for a union, those of the most likely member. */
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
    return issue.keys.map((key) => ({ path: [...path, key], message: "Unknown field" }));
  }
  if (issue.code === "invalid_union" && issue.errors.length > 0) {
    const closest = closestOf(issue.errors);
    if (depth(closest) > 0) return closest.flatMap((inner) => placedIssues(inner, path));
  }
  return [{ path, message: issue.message }];
}

/** The member of a union that matched furthest is the most likely one. */
function closestOf(errors: readonly (readonly Issue[])[]): readonly Issue[] {
  return errors.reduce((best, candidate) => depth(candidate) > depth(best) ? candidate : best);
}
