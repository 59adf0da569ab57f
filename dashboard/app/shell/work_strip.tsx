/** What is under way, wherever a person is: long work of this page, and of the server, which goes on without the page. */
import { useEffect, useRef, useState } from "react";
import { useMutation, useQuery } from "syncline/react";
import { api } from "../server/api.ts";
import {
  IMPORT_LOOK_MS,
  type ImportEnd,
  type ImportNow,
  importNow,
  importText,
  isSentFromHere,
} from "../server/import_status.ts";
import { Button } from "../ui/button.tsx";
import { useLongWorks } from "../ui/long_work.ts";
import { attempt, note } from "../ui/notes.tsx";
import { count, countOf } from "../ui/texts.tsx";
import { BrokenWork, isBroken, type Work } from "./broken_work.tsx";
import { href } from "./route.ts";

interface Line {
  readonly key: string;
  readonly text: string;
  /** Where more of it is told. */
  readonly to: string;
  readonly stop: { readonly text: string; readonly run: () => void } | null;
}

export function WorkStrip() {
  const works = useQuery(api.work.list);
  const lines = [...useWorksHere(), ...useLeftImport(works), ...useDeletions(works), ...useMigrations()];
  const broken = works?.filter(isBroken) ?? [];
  if (lines.length + broken.length === 0) return null;
  return (
    <section aria-label="Long work">
      {broken.length > 0 && <BrokenWork works={broken} />}
      {lines.length > 0 && <UnderWay lines={lines} />}
    </section>
  );
}

function UnderWay({ lines }: { readonly lines: readonly Line[] }) {
  return (
    <ul className="work" aria-label="Under way">
      {lines.map(({ key, text, to, stop }) => (
        <li key={key}>
          <span className="spinner" aria-hidden="true" />
          <a className="grow" href={to}>{text}</a>
          {stop && <Button onClick={stop.run}>{stop.text}</Button>}
        </li>
      ))}
    </ul>
  );
}

function useWorksHere(): readonly Line[] {
  return useLongWorks().map(({ id, text, view, cancel }) => ({
    key: `here ${id}`,
    text,
    to: href([view]),
    stop: cancel && { text: "Cancel", run: cancel },
  }));
}

/** An import that was begun on another page, or on this one before it was loaded anew. */
function useLeftImport(works: readonly Work[] | undefined): readonly Line[] {
  const cancel = useMutation(api.work.cancel);
  const [left, setLeft] = useState<ImportNow["running"]>(null);
  useEffect(() => {
    let gone = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let seen = false;
    const look = async () => {
      const now = await importNow().catch(() => null);
      if (gone) return;
      // A dialog that checks a file shows how far it is.
      const running = isSentFromHere() || now?.running?.dryRun === true ? null : now?.running ?? null;
      setLeft(running);
      if (seen && now?.running === null) tellEnd(now.last);
      seen = running !== null || seen && now === null;
      if (seen) timer = setTimeout(() => void look(), IMPORT_LOOK_MS * 2);
    };
    void look();
    return () => {
      gone = true;
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
      run: () => void attempt(() => cancel({ workId: begun._id })),
    },
  }];
}

function tellEnd(last: ImportEnd | null): void {
  if (last === null) return;
  if (last.error !== null) note(last.error, { tone: "bad" });
  else if (last.imported !== null) note(`${countOf(last.imported, "document")} of ${last.table} imported.`);
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
      const told = `${count(changed)} documents of ${table} are deleted`;
      if (state === "done") note(`${told}.`);
      // What broke off stays told.
      else if (state === "canceled") note(`${told}; the rest stays.`, { tone: "bad" });
    },
  );
  return running.map(({ _id, table, changed }) => ({
    key: _id,
    text: `Documents of ${table} are deleted: ${count(changed)} so far`,
    to: href(["data", table]),
    stop: {
      text: "Cancel",
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
      if (state === "done") note(`${path} is through: ${count(documents)} documents.`);
      else if (error !== null) note(error, { tone: "bad" });
      else note(`${path} has stopped behind ${count(documents)} documents.`);
    },
  );
  return running.map(({ migrationId, path, documents }) => ({
    key: migrationId,
    text: `${path} runs: ${count(documents)} documents so far`,
    to: href(["deploying"]),
    stop: {
      text: "Stop",
      run: () => void attempt(() => halt({ migrationId })),
    },
  }));
}

/** Tells of each that ran a moment ago and does not run any more. */
function useEnded(running: ReadonlySet<string> | undefined, tell: (id: string) => void): void {
  const before = useRef<ReadonlySet<string>>(new Set());
  useEffect(() => {
    if (running === undefined) return;
    for (const id of before.current) if (!running.has(id)) tell(id);
    before.current = running;
  });
}
