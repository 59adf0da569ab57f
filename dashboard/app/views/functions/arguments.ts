/** Arguments entered in this page, by function: the edited ones, and those of recent runs. In memory only. */
import { useEffect, useRef, useState } from "react";
import type { LoggedRun } from "../../../../mod/ops/log/run_record.ts";
import type { FunctionFacts } from "../../../../mod/functions/api/system_context.ts";
import { exampleOf } from "../../../../mod/openapi/examples.ts";
import { adminSession } from "../../server/admin_session.ts";
import { initialValueOf, type Schema } from "../../server/json_schema.ts";
import { isWhole } from "../../server/logged_args.ts";
import { useRoute } from "../../shell/route.ts";
import type { Fields } from "../../ui/schema_form.tsx";

export interface PastRun {
  readonly id: number;
  readonly at: number;
  /** The arguments as JSON. */
  readonly text: string;
  readonly ok: boolean;
}

interface Entered {
  readonly text: string | null;
  readonly runs: readonly PastRun[];
}

const RUNS_MAX = 10;
const FUNCTIONS_MAX = 50;
const NOTHING: Entered = { text: null, runs: [] };

/** The last used function is at the end. */
const entered = new Map<string, Entered>();
let nextId = 1;

function remember(path: string, changes: Partial<Entered>): void {
  const before = entered.get(path) ?? NOTHING;
  entered.delete(path);
  entered.set(path, { ...before, ...changes });
  for (const oldest of entered.keys()) {
    if (entered.size <= FUNCTIONS_MAX) break;
    entered.delete(oldest);
  }
}

export interface Arguments {
  /** JSON. */
  readonly text: string;
  readonly setText: (text: string) => void;
  /** The logged run whose arguments these were at first. `null` if no run was logged with its arguments. */
  readonly recorded: LoggedRun | null | undefined;
  /** Newest first. */
  readonly runs: readonly PastRun[];
  readonly addRun: (run: Omit<PastRun, "id">) => void;
}

function initialOf(args: Schema | null): unknown {
  return initialValueOf(args) ?? {};
}

/** Returns the arguments for code: those entered, or an example while none were. */
export function argumentsForCode({ args }: FunctionFacts, fields: Fields | null): Fields {
  const isEntered = fields !== null && JSON.stringify(fields) !== JSON.stringify(initialOf(args));
  if (isEntered || args === null) return fields ?? {};
  return (exampleOf(args, (ref) => definitionOf(args, ref)) ?? fields ?? {}) as Fields;
}

/** Returns the schema that a reference such as `#/$defs/node` names. */
function definitionOf(schema: Schema, ref: string): Schema | undefined {
  const names = ref.split("/").slice(1);
  return names.reduce<Schema | undefined>((part, name) => part?.[name] as Schema | undefined, schema);
}

/** Maximum number of runs that are searched for the slowest one. */
const SEARCHED_RUNS = 100;

/** Returns the slowest of the last runs with complete arguments, `null` if no run has them, and `undefined` without runs. */
async function slowestRecorded(path: string, signal: AbortSignal): Promise<LoggedRun | null | undefined> {
  const query = new URLSearchParams({ function: path, limit: String(SEARCHED_RUNS) });
  const response = await adminSession.fetch(`/api/admin/logs?${query}`, { signal });
  const { runs } = await response.json() as { readonly runs: readonly LoggedRun[] };
  const [slowest] = runs.filter(({ args }) => args !== null && isWhole(args))
    .toSorted((a, b) => b.durationMs - a.durationMs);
  return slowest ?? (runs.length === 0 ? undefined : null);
}

/**
 * Begins with the arguments in the address, or those edited before, so that leaving a function does not lose them. A query,
 * which changes nothing, otherwise begins with those of a slow run.
 */
export function useArguments({ path, kind, args }: FunctionFacts): Arguments {
  const given = useRoute().search.get("args");
  const [text, setText] = useState(() =>
    given ?? entered.get(path)?.text ?? JSON.stringify(initialOf(args), null, 2)
  );
  const [runs, setRuns] = useState(() => entered.get(path)?.runs ?? []);
  const [recorded, setRecorded] = useState<LoggedRun | null>();
  const isEntered = useRef(given !== null || typeof entered.get(path)?.text === "string");
  const hasArgs = args !== null && Object.keys(args["properties"] ?? {}).length > 0;
  useEffect(() => {
    if (isEntered.current || kind !== "query" || !hasArgs) return;
    const ending = new AbortController();
    slowestRecorded(path, ending.signal).then((run) => {
      if (isEntered.current) return;
      setRecorded(run);
      if (run) setText(JSON.stringify(JSON.parse(run.args ?? "{}"), null, 2));
    }).catch(() => {
      // The log may be off.
    });
    return () => ending.abort();
  }, [path, kind, hasArgs]);
  return {
    text,
    recorded,
    setText(text) {
      isEntered.current = true;
      setRecorded(undefined);
      remember(path, { text });
      setText(text);
    },
    runs,
    addRun(run) {
      // Its arguments stay beside its result.
      isEntered.current = true;
      const { runs } = entered.get(path) ?? NOTHING;
      const all = [{ ...run, id: nextId++ }, ...runs].slice(0, RUNS_MAX);
      remember(path, { runs: all });
      setRuns(all);
    },
  };
}
