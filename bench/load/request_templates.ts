/** Requests from a template, and checks of their responses. */
import type { RawRequest, RawResponse } from "../../tests/support/processes/raw_http.ts";
import { mulberry32 } from "../../tests/support/processes/random.ts";

/** In each string, `{n}` is replaced with consecutive numbers and `{key}` with a random key. */
export interface RequestTemplate {
  readonly method: RawRequest["method"];
  readonly path: string;
  readonly body?: string;
  readonly keys?: readonly string[];
  /** Substring of the response body. The status must be 200. */
  readonly expected: string;
}

export interface ExpectedRequest extends RawRequest {
  readonly expected: string;
}

/** Returns a function that returns the next request. The seed determines the keys. */
export function requestsOf({ keys = [], ...template }: RequestTemplate, seed: number): () => ExpectedRequest {
  const random = mulberry32(seed);
  let number = 0;
  return () => {
    const n = String(number++);
    const key = keys[Math.floor(random() * keys.length)] ?? "";
    const fill = (text: string) => text.replaceAll("{n}", n).replaceAll("{key}", key);
    const { method, path, body, expected } = template;
    return {
      ...{ method, path: fill(path), expected: fill(expected) },
      ...(body !== undefined && { body: fill(body) }),
    };
  };
}

/** Returns the status and body of an unexpected response, otherwise `null`. */
export function failureOf({ status, body }: RawResponse, { expected }: ExpectedRequest): string | null {
  return status === 200 && body.includes(expected) ? null : `${status} ${body}`;
}
