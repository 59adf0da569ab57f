/** The part of Vitest that tests in the documentation use, on Deno's runner. */
import assert from "node:assert/strict";

export function test(name: string, run: () => Promise<void>): void {
  Deno.test(name, run);
}

interface Expectation {
  toEqual(expected: unknown): void;
  toMatchObject(expected: object): void;
  readonly rejects: { toThrow(message: string): Promise<void> };
}

export function expect(actual: unknown): Expectation {
  return {
    toEqual: (expected) => assert.deepEqual(actual, expected),
    toMatchObject: (expected) => assert.partialDeepStrictEqual(actual, expected),
    rejects: {
      toThrow: async (message) => {
        await assert.rejects(
          actual as Promise<unknown>,
          (error) => error instanceof Error && error.message.includes(message),
        );
      },
    },
  };
}
