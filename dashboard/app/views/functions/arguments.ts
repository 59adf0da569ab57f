/** Arguments entered in this page, by function: the edited ones, and those of recent runs. In memory only. */
import { useState } from "react";
import type { FunctionFacts } from "../../../../mod/functions/api/system_context.ts";
import { exampleOf } from "../../../../mod/openapi/examples.ts";
import { initialValueOf, type Schema } from "../../server/json_schema.ts";
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

/** Begins with the arguments in the address, or those edited before, so that leaving a function does not lose them. */
export function useArguments({ path, args }: FunctionFacts): Arguments {
  const given = useRoute().search.get("args");
  const [text, setText] = useState(() =>
    given ?? entered.get(path)?.text ?? JSON.stringify(initialOf(args), null, 2)
  );
  const [runs, setRuns] = useState(() => entered.get(path)?.runs ?? []);
  return {
    text,
    setText(text) {
      remember(path, { text });
      setText(text);
    },
    runs,
    addRun(run) {
      const { runs } = entered.get(path) ?? NOTHING;
      const all = [{ ...run, id: nextId++ }, ...runs].slice(0, RUNS_MAX);
      remember(path, { runs: all });
      setRuns(all);
    },
  };
}
