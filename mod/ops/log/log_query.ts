/** Parses the URL parameters of log requests. Unknown or invalid parameters are rejected by name. */
import { ServiceError } from "../../errors.ts";
import { logLimits } from "../limits.ts";
import type { PageQuestion } from "./worker/messages.ts";
import type { RunFilter } from "./run_filter.ts";
import { lineLevels, parseRequestId, runKinds, runOutcomes } from "./run_record.ts";

const DURATION_MS_MAX = 999_999;

type Setters<Target> = Readonly<Record<string, (text: string) => Partial<Target>>>;

const filterParameters: Setters<RunFilter> = {
  function: (text) => ({ functions: names(text) }),
  kind: (text) => ({ kinds: positions("kind", text, runKinds) }),
  outcome: (text) => ({ outcomes: positions("outcome", text, runOutcomes) }),
  level: (text) => ({ level: (positions("level", text.toUpperCase(), lineLevels)[0] ?? 0) + 1 }),
  text: (text) => text.trim() === "" ? {} : { text: bounded("text", text, logLimits.textCharsMax) },
  from: (text) => ({ from: instant("from", text) }),
  to: (text) => ({ to: instant("to", text) }),
  caller: (text) => ({ caller: text === "anonymous" ? null : principal(text) }),
  request: (text) => ({ request: request(text) }),
  minMs: (text) => ({ minMs: count("minMs", text, DURATION_MS_MAX) }),
  version: (text) => ({ version: version(text) }),
  system: (text) => ({ system: yesOrNo("system", text) }),
};

interface PageParameters {
  readonly before: number;
  readonly limit: number;
  readonly bars: number;
}

const pageParameters: Setters<PageParameters> = {
  cursor: (text) => ({ before: runId("cursor", text) }),
  limit: (text) => ({ limit: count("limit", text, logLimits.pageRunsMax) }),
  histogram: (text) => ({ bars: count("histogram", text, logLimits.histogramBarsMax) }),
};

/** Window of a histogram without a start. */
const WINDOW_MS = 3_600_000;

export function parseLogQuery(parameters: URLSearchParams, now: number): PageQuestion {
  const { before, limit = logLimits.pageRunsDefault, bars, ...filter } = read<RunFilter & PageParameters>(
    parameters,
    { ...filterParameters, ...pageParameters },
  );
  const to = filter.to ?? now;
  const from = filter.from ?? to - WINDOW_MS;
  if (from >= to && bars !== undefined) throw bad("from", "must be before `to`");
  return {
    filter,
    limit,
    ...(before !== undefined && { before }),
    ...(bars !== undefined && { histogram: { from, to, bars } }),
  };
}

/** Parses the filter of a stream, and the run it resumes after. */
export function parseStreamQuery(
  parameters: URLSearchParams,
  lastEventId: string | null,
): { readonly filter: RunFilter; readonly after: number | null } {
  const filter = read<RunFilter>(parameters, filterParameters);

  return {
    filter,
    after: lastEventId === null || lastEventId === "" ? null : runId("Last-Event-ID", lastEventId),
  };
}

type Writable<Target> = { -readonly [Key in keyof Target]?: Target[Key] };

function read<Target>(parameters: URLSearchParams, setters: Setters<Target>): Writable<Target> {
  const found: Writable<Target> = {};
  for (const [name, text] of parameters) {
    const setter = Object.hasOwn(setters, name) ? setters[name] : undefined;
    if (setter === undefined) throw bad(name, `is not one of ${Object.keys(setters).join(", ")}`);
    Object.assign(found, setter(text));
  }
  return found;
}

function names(text: string): readonly string[] {
  const found = text.split(",").map((name) => name.trim()).filter((name) => name !== "");
  if (found.length === 0 || found.length > logLimits.filterFunctionsMax) {
    throw bad("function", `takes 1 to ${logLimits.filterFunctionsMax} names, separated by commas`);
  }
  return found.map((name) => bounded("function", name, logLimits.pathCharsMax));
}

function positions(name: string, text: string, choices: readonly string[]): readonly number[] {
  return text.split(",").map((choice) => {
    const position = choices.indexOf(choice.trim());
    if (position < 0) throw bad(name, `must be among ${choices.join(", ")}`);
    return position;
  });
}

function bounded(name: string, text: string, charsMax: number): string {
  if (text.length > charsMax) throw bad(name, `has more than ${charsMax} characters`);
  return text;
}

function instant(name: string, text: string): number {
  const at = /^\d{1,15}$/.test(text) ? Number(text) : Date.parse(text);
  if (!Number.isFinite(at)) throw bad(name, "must be an ISO 8601 time or milliseconds since the epoch");
  return at;
}

function principal(text: string): string {
  if (!/^(user|admin):\S{1,100}$/.test(text)) {
    throw bad("caller", 'must be "user:<id>", "admin:<id>" or "anonymous"');
  }
  return text;
}

function request(text: string): number {
  const number = parseRequestId(text);
  if (number === null) throw bad("request", "is not a request ID");
  return number;
}

function version(text: string): string {
  if (!/^[0-9a-f]{4,64}$/.test(text)) {
    throw bad("version", "must be the hash of a version, or its first 4 or more characters");
  }
  return text;
}

function yesOrNo(name: string, text: string): boolean {
  if (text !== "true" && text !== "false") throw bad(name, "must be true or false");
  return text === "true";
}

function runId(name: string, text: string): number {
  const id = /^\d{1,16}$/.test(text) ? Number(text) : NaN;
  if (!Number.isSafeInteger(id)) throw bad(name, "is not an ID from this server");
  return id;
}

function count(name: string, text: string, max: number): number {
  const number = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (number < 1 || number > max) throw bad(name, `must be a number from 1 to ${max}`);
  return number;
}

function bad(name: string, what: string): ServiceError {
  return new ServiceError("bad_request", `${name}: ${what}`);
}
