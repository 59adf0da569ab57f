/** The command `migrate`: runs an internal mutation for every document of a table, in batches, while the app runs. */
import { StartError } from "../../config/start_error.ts";
import { StopSignals } from "../../server/signals.ts";
import type { CommandSpec } from "../command_line.ts";
import { ConsoleProgress } from "../console_progress.ts";
import { counted } from "./deploy_text.ts";
import { type CallServer, withRunningServer } from "../running_server.ts";

export const migrateCommand: CommandSpec = {
  name: "migrate",
  description: "Run an internal mutation for every document of a table of a running server",
  argument: {
    name: "path",
    description: "Path of an internal mutation that takes { id }, such as notes:addKind",
  },
  run: ({ data, table, dryRun, fromStart }, path) =>
    withRunningServer(data, async (call) => {
      if (table === null) throw new StartError("Missing table: pass --table", { code: "option" });
      return dryRun ? await tryOut(call, { path, table }) : await migrate(call, { path, table, fromStart });
    }),
};

interface MigrationTarget {
  readonly path: string;
  readonly table: string;
}

async function tryOut(call: CallServer, { path, table }: MigrationTarget): Promise<string> {
  const { documents, changed } = await call("_admin/migrations:tryOut", { path, table }) as {
    readonly documents: number;
    readonly changed: number;
  };
  return `Tried ${counted(documents, "document")} of ${table}: ${changed} would change. Nothing has changed.`;
}

async function migrate(
  call: CallServer,
  { path, table, fromStart }: MigrationTarget & { readonly fromStart: boolean },
): Promise<string> {
  using signals = new StopSignals();
  let stopped = false;
  void signals.first.then(() => stopped = true);
  const all = await documentsOf(call, table);
  const begun = await call("_admin/migrations:begin", { path, table, fromStart }) as {
    readonly migrationId: string;
    readonly documents: number;
    readonly resumed: boolean;
  };
  const before = begun.documents;
  using progress = new ConsoleProgress();
  const what = begun.resumed
    ? `Migrating ${table}: continuing after ${counted(before, "document")}`
    : `Migrating ${table}`;
  const of = all === null ? null : Math.max(0, all - before);
  const show = (documents: number) =>
    progress.show({ what, done: documents - before, of, unit: "documents" });
  show(before);
  let rows: number | undefined;
  for (;;) {
    const { documents, done, rows: next } = await call("_admin/migrations:step", {
      migrationId: begun.migrationId,
      ...(rows !== undefined && { rows }),
    }) as { readonly documents: number; readonly done: boolean; readonly rows: number };
    show(documents);
    if (done) return `Migrated ${counted(documents, "document")} of ${table}.`;
    if (stopped) {
      throw new StartError(
        `Stopped after ${counted(documents, "document")}: run the same command to continue`,
      );
    }
    rows = next;
  }
}

async function documentsOf(call: CallServer, table: string): Promise<number | null> {
  const { tables } = await call("_admin/data:sizes", {}) as {
    readonly tables: readonly { readonly table: string; readonly documents: number }[];
  };
  return tables.find((known) => known.table === table)?.documents ?? null;
}
