/** Requests from a template, and the check of their answers. */
import type { RawRequest, RawResponse } from "../../tests/support/processes/raw_http.ts";
import { mulberry32 } from "../../tests/support/processes/random.ts";

/** In its texts, `{n}` becomes a number that counts the requests, and `{key}` a random one of the keys. */
export interface RequestTemplate {
  readonly method: RawRequest["method"];
  readonly path: string;
  readonly body?: string;
  readonly keys?: readonly string[];
  /** Text that the body of the answer contains. Its status is 200. */
  readonly expected: string;
}

export interface ExpectedRequest extends RawRequest {
  readonly expected: string;
}

/** Returns the next request with each call. The seed determines the keys. */
export function requestsOf({ keys = [], ...template }: RequestTemplate, seed: number): () => ExpectedRequest {
  const random = mulberry32(seed);
  let number = 0;
  return () => {
    const n = String(number++);
    const key = keys[Math.floor(random() * keys.length)] ?? "";
    const filled = (text: string) => text.replaceAll("{n}", n).replaceAll("{key}", key);
    const { method, path, body, expected } = template;
    return {
      ...{ method, path: filled(path), expected: filled(expected) },
      ...(body !== undefined && { body: filled(body) }),
    };
  };
}

/** Returns the answer if it is not the expected one, else `null`. */
export function failureOf({ status, body }: RawResponse, { expected }: ExpectedRequest): string | null {
  return status === 200 && body.includes(expected) ? null : `${status} ${body}`;
}
