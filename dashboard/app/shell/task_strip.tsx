/** Running background tasks of the server and of this page, shown below every view. */
import { useEffect, useRef, useState } from "react";
import { useMutation, useQuery } from "syncline/react";
import type { AdminRole } from "../../../mod/functions/admin_roles.ts";
import type { AdminDoc } from "../../../mod/ops/admin/tables.ts";
import { api } from "../server/api.ts";
import {
  fetchImportStatus,
  type FinishedImport,
  IMPORT_POLL_MS,
  type ImportStatusResponse,
  importText,
  isImportingHere,
} from "../server/import_status.ts";
import { Button, Icon } from "../ui/controls.tsx";
import { count, countOf } from "../ui/format.tsx";
import { usePageTasks } from "../ui/page_tasks.ts";
import { attempt, showToast } from "../ui/toasts.tsx";
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
            needs="editor"
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

interface Line {
  readonly key: string;
  readonly text: string;
  /** Address of the view with details. */
  readonly to: string;
  readonly stop: { readonly text: string; readonly needs?: AdminRole; readonly run: () => void } | null;
}

export function TaskStrip() {
  const works = useQuery(api.work.list);
  const lines = [...usePageTaskLines(), ...useOtherImport(works), ...useDeletions(works), ...useMigrations()];
  const broken = works?.filter(isFailed) ?? [];
  if (lines.length + broken.length === 0) return null;
  return (
    <section aria-label="Background tasks">
      {broken.length > 0 && <FailedTasks works={broken} />}
      {lines.length > 0 && <RunningTasks lines={lines} />}
    </section>
  );
}

function RunningTasks({ lines }: { readonly lines: readonly Line[] }) {
  return (
    <ul className="tasks" aria-label="Running tasks">
      {lines.map(({ key, text, to, stop }) => (
        <li key={key}>
          <span className="spinner" aria-hidden="true" />
          <a className="grow" href={to}>{text}</a>
          {stop && <Button needs={stop.needs} onClick={stop.run}>{stop.text}</Button>}
        </li>
      ))}
    </ul>
  );
}

function usePageTaskLines(): readonly Line[] {
  return usePageTasks().map(({ id, text, view, cancel }) => ({
    key: `here ${id}`,
    text,
    to: href([view]),
    stop: cancel && { text: "Cancel", run: cancel },
  }));
}

/** An import started on another page, or on this page before it was reloaded. */
function useOtherImport(works: readonly Work[] | undefined): readonly Line[] {
  const cancel = useMutation(api.work.cancel);
  const [left, setLeft] = useState<ImportStatusResponse["running"]>(null);
  useEffect(() => {
    let stopped = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let seen = false;
    const poll = async () => {
      const now = await fetchImportStatus().catch(() => null);
      if (stopped) return;
      // The import dialog shows the progress of a check itself.
      const running = isImportingHere() || now?.running?.dryRun === true ? null : now?.running ?? null;
      setLeft(running);
      if (seen && now?.running === null) showImportEnd(now.last);
      seen = running !== null || seen && now === null;
      if (seen) timer = setTimeout(() => void poll(), IMPORT_POLL_MS * 2);
    };
    void poll();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, []);
  if (left === null) return [];
  const begun = works?.find(({ kind, state }) => kind === "importRows" && state === "running");
  return [{
    key: "import",
    text: importText(left),
    to: href(["data", left.table]),
    stop: begun === undefined ? null : {
      text: "Cancel",
      needs: "editor",
      run: () => void attempt(() => cancel({ workId: begun._id })),
    },
  }];
}

function showImportEnd(last: FinishedImport | null): void {
  if (last === null) return;
  if (last.error !== null) showToast(last.error, { tone: "bad", stays: true });
  else if (last.imported !== null) {
    showToast(`${countOf(last.imported, "document")} of ${last.table} imported.`);
  }
}

function useDeletions(works: readonly Work[] | undefined): readonly Line[] {
  const cancel = useMutation(api.work.cancel);
  const running = works?.filter(({ kind, state }) => kind === "deleteDocuments" && state === "running") ?? [];
  useEnded(
    works === undefined ? undefined : new Set(running.map(({ _id }) => _id)),
    (id) => {
      const work = works?.find(({ _id }) => _id === id);
      if (work === undefined) return;
      const { table, changed, state } = work;
      const summary = `Deleted ${count(changed)} documents of ${table}`;
      if (state === "done") showToast(`${summary}.`);
      // Failed deletions are listed by FailedTasks.
      else if (state === "canceled") {
        showToast(`${summary}. The rest was kept.`, { tone: "bad", stays: true });
      }
    },
  );
  return running.map(({ _id, table, changed }) => ({
    key: _id,
    text: `Deleting documents of ${table}: ${count(changed)} so far`,
    to: href(["data", table]),
    stop: {
      text: "Cancel",
      needs: "editor",
      run: () => void attempt(() => cancel({ workId: _id })),
    },
  }));
}

function useMigrations(): readonly Line[] {
  const migrations = useQuery(api.migrations.list);
  const halt = useMutation(api.migrations.halt);
  const running = migrations?.filter(({ onServer }) => onServer) ?? [];
  useEnded(
    migrations === undefined ? undefined : new Set(running.map(({ migrationId }) => migrationId)),
    (id) => {
      const migration = migrations?.find(({ migrationId }) => migrationId === id);
      if (migration === undefined) return;
      const { path, documents, state, error } = migration;
      if (state === "done") showToast(`${path} finished: ${count(documents)} documents.`);
      else if (error !== null) showToast(error, { tone: "bad", stays: true });
      else showToast(`${path} stopped after ${count(documents)} documents.`);
    },
  );
  return running.map(({ migrationId, path, documents }) => ({
    key: migrationId,
    text: `Running ${path}: ${count(documents)} documents so far`,
    to: href(["deploying"]),
    stop: {
      text: "Stop",
      needs: "editor",
      run: () => void attempt(() => halt({ migrationId })),
    },
  }));
}

/** Calls `onEnd` for each ID that was running at the previous render and no longer is. */
function useEnded(running: ReadonlySet<string> | undefined, onEnd: (id: string) => void): void {
  const before = useRef<ReadonlySet<string>>(new Set());
  useEffect(() => {
    if (running === undefined) return;
    for (const id of before.current) if (!running.has(id)) onEnd(id);
    before.current = running;
  });
}
