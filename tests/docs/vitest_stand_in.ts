/** The part of Vitest that tests in the documentation use, on Deno's runner. */
import assert from "node:assert/strict";

export function test(name: string, run: () => Promise<void>): void {
  Deno.test(name, run);
}

interface Expectation {
  toEqual(expected: unknown): void;
  toContain(item: unknown): void;
  toMatchObject(expected: object): void;
  readonly rejects: {
    toMatchObject(expected: object): Promise<void>;
    toThrow(message: string): Promise<void>;
  };
}

export function expect(actual: unknown): Expectation {
  return {
    toEqual: (expected) => assert.deepEqual(actual, expected),
    toContain: (item) => assert.ok((actual as readonly unknown[]).includes(item)),
    toMatchObject: (expected) => assert.partialDeepStrictEqual(actual, expected),
    rejects: {
      toMatchObject: (expected) => assert.rejects(actual as Promise<unknown>, expected),
      toThrow: async (message) => {
        await assert.rejects(
          actual as Promise<unknown>,
          (error) => error instanceof Error && error.message.includes(message),
        );
      },
    },
  };
}
