/** Checks which tables a function may use. */
import { withHelp } from "../../../explained.ts";
import type { SchemaDefinition, TableDefinition } from "../../../engine/types.ts";
import { readableSystemTables } from "../../readable_system_tables.ts";
import type { Frame } from "../runs/call.ts";

const NO_SCHEMA =
  "The app has no tables: add a schema.ts that says `export default defineSchema({ messages: defineTable({ body: z.string() }) })`";

const NO_PROFILE =
  "The app keeps no profile of its users: export one from auth.ts, as `export const profile = defineProfile({ role: z.string().optional() })`";

/** The tables of a database, with access checks. */
export class AppTables {
  readonly #app: SchemaDefinition | null;
  readonly #system: SchemaDefinition;
  readonly #profiled: boolean;

  /** @param app `null` for an app without `schema.ts`. */
  constructor(
    { app, system, profiled = false }: {
      readonly app: SchemaDefinition | null;
      readonly system: SchemaDefinition;
      readonly profiled?: boolean;
    },
  ) {
    this.#app = app;
    this.#system = system;
    this.#profiled = profiled;
  }

  /** Returns the definition of a table that the function may read. Throws otherwise. */
  readable(frame: Frame, table: string): TableDefinition {
    const definition = this.#served(table) ?? orphanedTable(frame, table) ?? this.#refuse(table);
    if (table.startsWith("_") && !frame.system && !readableSystemTables.has(table)) {
      throw new TypeError(`Table "${table}" belongs to the service: app code cannot read it`);
    }
    return definition;
  }

  all(): { readonly name: string; readonly definition: TableDefinition; readonly ofService: boolean }[] {
    const listed = (schema: SchemaDefinition | null, ofService: boolean) =>
      [...schema ?? []].map(([name, definition]) => ({ name, definition, ofService }));
    return [...listed(this.#app, false), ...listed(this.#system, true)];
  }

  /** Throws if the function may not write to the table, or patch these fields. */
  checkWritable(frame: Frame, table: string, patched?: readonly string[]): void {
    if (table.startsWith("_") && !frame.system) {
      if (table === "_users" && patched?.every((field) => field === "profile")) {
        if (this.#profiled) return;
        throw new TypeError(NO_PROFILE);
      }
      throw new TypeError(
        `Table "${table}" belongs to the service: app code cannot write to it${
          table === "_users" ? ", but for the profile of a user: ctx.db.patch(userId, { profile })" : ""
        }`,
      );
    }
    if (this.#served(table) === undefined) this.#refuse(table);
  }

  #served(table: string): TableDefinition | undefined {
    return this.#app?.get(table) ?? this.#system.get(table);
  }

  #refuse(table: string): never {
    if (typeof table !== "string") throw new TypeError(`A table name must be a string, not ${typeof table}`);
    if (this.#app === null) throw new TypeError(NO_SCHEMA);
    const names = [...this.#app.keys()].slice(0, 20).join(", ");
    throw withHelp(
      new TypeError(`There is no table "${table}" in schema.ts; its tables are ${names || "none"}`),
      "bad_schema",
    );
  }
}

/** Returns a stored table that the schema lacks. Only queries of the service may read it. */
function orphanedTable(frame: Frame, table: string): TableDefinition | undefined {
  return frame.system ? frame.reads.inspect?.().orphaned().get(table) : undefined;
}
