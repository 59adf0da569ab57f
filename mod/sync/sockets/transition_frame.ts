/** Builds frames by concatenating existing JSON. Results are never parsed or serialized again. */
import type { MutationAnswer } from "../../functions/host_port.ts";
import { type CallError, errorIdOf, type Outcome, publicError } from "../../functions/outcome.ts";
import type { StateVersion } from "../../protocol/state_version.ts";

interface FrameOptions {
  readonly dev: boolean;
  /** Whether the client accepts error ids (WS17). */
  readonly errorIds: boolean;
}

/** Builds `QueryUpdated` or `QueryFailed`. `diff` is JSON that replaces the value. */
export function resultItem(
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
