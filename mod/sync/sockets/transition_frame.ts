/** Builds frames by concatenating existing JSON. Results are never parsed or serialized again. */
import type { MutationAnswer } from "../../functions/host_port.ts";
import { type CallError, errorIdOf, type Outcome, publicError } from "../../functions/outcome.ts";
import { listDiff, ListText } from "../../protocol/list_diff.ts";
import { resultDiff } from "../../protocol/result_diff.ts";
import { sameVersion, type StateVersion } from "../../protocol/state_version.ts";
import { sharedQueryLimits } from "../limits.ts";
import { PairMemo } from "../queries/shared_query.ts";

type Success = Extract<Outcome, { readonly ok: true }>;

/** Caches diffs between outcomes. Each is computed once for all sockets with the same previous result. */
export class DiffCache {
  /** `null` if the diff is not worth sending. */
  readonly #diffs = new PairMemo<string | null>();
  /** Compared results, with the positions of their elements. */
  readonly #lists = new WeakMap<Outcome, ListText>();

  /** Returns the diff as JSON, or `null` if the whole value has to be sent. */
  diff(before: Outcome | null, after: Outcome): string | null {
    if (before === null || !before.ok || !after.ok) return null;
    return this.#diffs.get(after, before, () => worthwhileDiff(this.#list(before), this.#list(after)));
  }

  #list(outcome: Success): ListText {
    let list = this.#lists.get(outcome);
    if (list === undefined) this.#lists.set(outcome, list = new ListText(outcome.value));
    return list;
  }
}

/** Only arrays and objects can be diffed. */
const HAS_PARTS = /^[[{]/;

function worthwhileDiff(beforeList: ListText, afterList: ListText): string | null {
  const { diffedCharsMax, diffShareMax } = sharedQueryLimits;
  const [before, after] = [beforeList.text, afterList.text];
  if (!HAS_PARTS.test(after) || before.charCodeAt(0) !== after.charCodeAt(0)) return null;
  const ofList = listDiff(beforeList, { after: afterList, charsMax: diffedCharsMax });
  if (ofList === undefined && (before.length > diffedCharsMax || after.length > diffedCharsMax)) return null;
  const diff = ofList === undefined ? resultDiff(JSON.parse(before), JSON.parse(after)) : ofList;
  // Results that differ only in key order have no diff.
  return diff !== null && diff.length <= diffShareMax * after.length ? diff : null;
}

interface FrameOptions {
  readonly dev: boolean;
  /** Whether the client accepts error ids (WS17). */
  readonly errorIds: boolean;
}

/** Builds `QueryUpdated` or `QueryFailed`. `diff` is JSON that replaces the value. */
function resultItem(
  queryId: number,
  { outcome, diff, dev, errorIds }: FrameOptions & {
    readonly outcome: Outcome;
    readonly diff: string | null;
  },
): string {
  const logLines = logLinesText(outcome.logLines, dev);
  if (!outcome.ok) {
    return `{"type":"QueryFailed","queryId":${queryId},${
      errorText(outcome.error, { dev, errorIds })
    },"logLines":${logLines}}`;
  }
  const content = diff === null ? `"value":${outcome.value}` : `"diff":${diff}`;
  return `{"type":"QueryUpdated","queryId":${queryId},${content},"logLines":${logLines}}`;
}

export function removedItem(queryId: number): string {
  return `{"type":"QueryRemoved","queryId":${queryId}}`;
}

export function transitionFrame(
  start: StateVersion,
  { end, items }: { readonly end: StateVersion; readonly items: readonly string[] },
): string {
  return `{"type":"Transition","startVersion":${versionText(start)},"endVersion":${
    versionText(end)
  },"modifications":[${items.join(",")}]}`;
}

export function mutationResponseFrame(
  requestId: number,
  { answer, ...options }: FrameOptions & { readonly answer: MutationAnswer },
): string {
  const { outcome, ts } = answer;
  return responseFrame("MutationResponse", { requestId, outcome, ...options, rest: `,"ts":${ts}` });
}

export function actionResponseFrame(
  requestId: number,
  { outcome, ...options }: FrameOptions & { readonly outcome: Outcome },
): string {
  return responseFrame("ActionResponse", { requestId, outcome, ...options, rest: "" });
}

/** `rest` is appended after the result of a success. */
function responseFrame(
  type: string,
  { requestId, outcome, dev, errorIds, rest }: FrameOptions & {
    readonly requestId: number;
    readonly outcome: Outcome;
    readonly rest: string;
  },
): string {
  const head = `{"type":"${type}","requestId":${requestId},"success":`;
  const tail = `,"logLines":${logLinesText(outcome.logLines, dev)}}`;
  if (outcome.ok) return `${head}true,"result":${outcome.value}${rest}${tail}`;
  return `${head}false,${errorText(outcome.error, { dev, errorIds })}${tail}`;
}

/** The error's fields as JSON. */
function errorText(error: CallError, { dev, errorIds }: FrameOptions): string {
  const { errorMessage, errorData } = publicError(error, { dev });
  const errorId = errorIds ? errorIdOf(error) : null;
  const id = errorId === null ? "" : `,"errorId":${JSON.stringify(errorId)}`;
  return `"errorMessage":${JSON.stringify(errorMessage)},"errorData":${JSON.stringify(errorData)}${id}`;
}

/** Log lines are sent in development only (SG10). */
export function logLinesText(logLines: readonly string[], dev: boolean): string {
  return dev ? JSON.stringify(logLines) : "[]";
}

function versionText({ querySet, identity, ts }: StateVersion): string {
  return `{"querySet":${querySet},"identity":${identity},"ts":${ts}}`;
}

export interface SingleUpdate {
  readonly start: StateVersion;
  readonly end: StateVersion;
  readonly queryId: number;
  /** The client's previous result, if it accepts diffs. */
  readonly base: Outcome | null;
  readonly outcome: Outcome;
  readonly errorIds: boolean;
}

/** Caches the last Transition with a single changed result: most sockets that share a query get an identical frame. */
export class FrameMemo {
  readonly #diffs: DiffCache;
  readonly #dev: boolean;
  #last: (SingleUpdate & { readonly frame: string }) | null = null;

  constructor(diffs: DiffCache, options: { readonly dev: boolean }) {
    this.#diffs = diffs;
    this.#dev = options.dev;
  }

  item(
    queryId: number,
    { base, outcome, errorIds }: Pick<SingleUpdate, "base" | "outcome" | "errorIds">,
  ): string {
    const diff = this.#diffs.diff(base, outcome);
    return resultItem(queryId, { outcome, diff, dev: this.#dev, errorIds });
  }

  frame(update: SingleUpdate): string {
    const last = this.#last;
    if (
      last !== null && last.outcome === update.outcome && last.base === update.base &&
      last.queryId === update.queryId && last.errorIds === update.errorIds &&
      sameVersion(last.start, update.start) &&
      sameVersion(last.end, update.end)
    ) return last.frame;
    const { start, end } = update;
    const frame = transitionFrame(start, { end, items: [this.item(update.queryId, update)] });
    this.#last = { ...update, frame };
    return frame;
  }

  clear(): void {
    this.#last = null;
  }
}
