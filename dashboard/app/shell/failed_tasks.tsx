/** Failed background tasks of the server, shown in every view until an administrator dismisses them. */
import { useMutation } from "syncline/react";
import type { AdminDoc } from "../../../mod/ops/admin/tables.ts";
import { api } from "../server/api.ts";
import { Button } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { attempt } from "../ui/toasts.tsx";
import { countOf } from "../ui/format.tsx";
import { href } from "./route.ts";

export type Work = AdminDoc<"_admin_work">;

export function isFailed({ state }: Work): boolean {
  return state === "interrupted" || state === "failed";
}

export function FailedTasks({ works }: { readonly works: readonly Work[] }) {
  const forget = useMutation(api.work.forget);
  return (
    <ul className="tasks" data-tone="bad" aria-label="Failed tasks">
      {works.map((work) => (
        <li key={work._id}>
          <span data-tone="bad">
            <Icon name="warn" />
          </span>
          <a className="grow" href={href(["data", work.table])}>{failureText(work)}</a>
          <Button
            aria-label={`Dismiss: ${titleOf(work)}`}
            onClick={() => void attempt(() => forget({ workId: work._id }))}
          >
            Dismiss
          </Button>
        </li>
      ))}
    </ul>
  );
}

function titleOf({ kind, table }: Work): string {
  switch (kind) {
    case "deleteDocuments":
      return `Deleting documents of ${table}`;
    case "importRows":
      return `Importing into ${table}`;
    default:
      return kind satisfies never;
  }
}

/** Describes how far the task got and what to do about it. */
function failureText(work: Work): string {
  const { state, error = "" } = work;
  const how = state === "interrupted"
    ? "was interrupted when the server stopped."
    : `failed: ${error.split("\n", 1)[0]?.replace(/\.?$/, ".")}`;
  return `${titleOf(work)} ${how} ${adviceOf(work)}`;
}

function adviceOf({ kind, mode, changed, emptied = 0 }: Work): string {
  if (kind === "deleteDocuments") {
    return `${
      countOf(changed, "document was", "documents were")
    } deleted. Run the deletion again to delete the rest.`;
  }
  if (changed + emptied === 0) return "Nothing was written. Import the file again.";
  if (mode === "replace") {
    return `${countOf(emptied, "document was", "documents were")} deleted, and ${
      countOf(changed, "row")
    } imported. Import the file again with the same settings.`;
  }
  const stored = `The first ${countOf(changed, "row")} ${changed === 1 ? "was" : "were"} imported.`;
  return `${stored} Import the remaining rows. If the rows have an _id, import the whole file and replace existing documents.`;
}
