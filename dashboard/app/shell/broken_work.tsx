/** Long work of the server that broke off: told in every view, to every administrator, until one of them closes it. */
import { useMutation } from "syncline/react";
import type { AdminDoc } from "../../../mod/ops/admin/tables.ts";
import { api } from "../server/api.ts";
import { Button } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { attempt } from "../ui/notes.tsx";
import { countOf } from "../ui/texts.tsx";
import { href } from "./route.ts";

export type Work = AdminDoc<"_admin_work">;

export function isBroken({ state }: Work): boolean {
  return state === "interrupted" || state === "failed";
}

export function BrokenWork({ works }: { readonly works: readonly Work[] }) {
  const forget = useMutation(api.work.forget);
  return (
    <ul className="work" data-tone="bad" aria-label="Broken off">
      {works.map((work) => (
        <li key={work._id}>
          <span data-tone="bad">
            <Icon name="warn" />
          </span>
          <a className="grow" href={href(["data", work.table])}>{brokenText(work)}</a>
          <Button
            aria-label={`Close: ${titleOf(work)}`}
            onClick={() => void attempt(() => forget({ workId: work._id }))}
          >
            Close
          </Button>
        </li>
      ))}
    </ul>
  );
}

function titleOf({ kind, table }: Work): string {
  switch (kind) {
    case "deleteDocuments":
      return `The deletion of documents of ${table}`;
    case "importRows":
      return `The import into ${table}`;
    default:
      return kind satisfies never;
  }
}

/** What has been done, and what a person does about it. */
function brokenText(work: Work): string {
  const { state, error = "" } = work;
  const how = state === "interrupted"
    ? "ended with the server."
    : `stopped: ${error.split("\n", 1)[0]?.replace(/\.?$/, ".")}`;
  return `${titleOf(work)} ${how} ${adviceOf(work)}`;
}

function adviceOf({ kind, mode, changed, emptied = 0 }: Work): string {
  if (kind === "deleteDocuments") {
    return `${countOf(changed, "document is", "documents are")} deleted, the rest stays. Delete it again.`;
  }
  if (changed + emptied === 0) return "Nothing was written. Import the file again.";
  if (mode === "replace") {
    return `${countOf(emptied, "document was", "documents were")} deleted, and ${
      countOf(changed, "row")
    } of the file are stored. Import the file again in the same way.`;
  }
  const stored = `The first ${countOf(changed, "row")} of the file ${changed === 1 ? "is" : "are"} stored.`;
  return `${stored} Import the rest; where rows have an _id, all of it, replacing what is there.`;
}
