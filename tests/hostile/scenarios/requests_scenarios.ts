/** Requests that parts of the server may interpret differently, and guesses. */
import assert from "node:assert/strict";
import type { Scenario } from "../support/scenario.ts";
import { SMALL_WITH_PAGES } from "./flags.ts";

const SHORT_MS = 1_000;

const GUESSERS = 13;
const GUESSES = 10;
const PASSWORD = "correct horse battery";

/** Spellings of paths of the service that a static folder must not answer. */
const PATHS = ["/./api/x", "/%2e/_/x", "/api/../api/x", "//api/x", "/x/../api/x", "/.%2e/api/x"];

interface SignIn {
  readonly port: number;
  readonly from: string;
  readonly email: string;
  readonly password: string;
}

async function sign(at: "signup" | "signin", { port, from, ...body }: SignIn): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/api/auth/${at}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Forwarded-For": from },
    body: JSON.stringify(body),
  });
  await response.body?.cancel();
  return response.status;
}

/** Sends a request without normalizing its path. Returns the answer. */
async function got(port: number, path: string): Promise<string> {
  using conn = await Deno.connect({ hostname: "127.0.0.1", port });
  const request = `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
  await conn.write(new TextEncoder().encode(request));
  return await new Response(conn.readable).text();
}

export const requestScenarios: readonly Scenario[] = [
  {
    rule: "AE16",
    name: `${GUESSERS * GUESSES} wrong passwords from ${GUESSERS} addresses`,
    before: "the owner was locked out",
    // Each guess costs 0.1 s of processor time by design.
    limits: { queryMs: 3 * SHORT_MS, mutationMs: 3 * SHORT_MS },
    flags: ["--trusted-proxy", "127.0.0.1"],
    long: true,
    attack: async ({ server: { port } }) => {
      const owner = { port, email: `owner-${crypto.randomUUID()}@example.com`, password: PASSWORD };
      assert.equal(await sign("signup", { ...owner, from: "198.51.100.1" }), 200);
      const answers = await Promise.all(Array.from({ length: GUESSERS }, async (_, n) => {
        const statuses: number[] = [];
        for (let tries = 0; tries < GUESSES; tries++) {
          statuses.push(
            await sign("signin", { ...owner, password: "wrong guess", from: `203.0.113.${n + 1}` }),
          );
        }
        return statuses;
      }));
      assert(answers.flat().every((status) => status === 401 || status === 429));
      const stranger = await sign("signin", { ...owner, from: "203.0.113.99" });
      assert.equal(stranger, 429, "strangers are held back together");
      const startedAt = performance.now();
      assert.equal(await sign("signin", { ...owner, from: "198.51.100.1" }), 200);
      return `the owner signs in, in ${(performance.now() - startedAt).toFixed(0)} ms`;
    },
  },
  {
    rule: "SF3",
    name: "other spellings of the service's paths",
    before: "the static folder answered them",
    limits: { queryMs: SHORT_MS, mutationMs: SHORT_MS },
    flags: SMALL_WITH_PAGES,
    attack: async ({ server: { port } }) => {
      for (const path of PATHS) {
        const answer = await got(port, path);
        assert.match(answer, /^HTTP\/1\.1 404 /, path);
        assert.doesNotMatch(answer, /<html/i, path);
      }
      return `${PATHS.length} spellings are 404`;
    },
  },
  {
    rule: "AE17",
    name: "sign-in by mail without a mail server",
    before: "offered, and nothing was sent or printed",
    limits: { queryMs: SHORT_MS, mutationMs: SHORT_MS },
    attack: async ({ server: { port }, logged }) => {
      const response = await fetch(`http://127.0.0.1:${port}/api/auth/providers`);
      assert.equal((await response.json()).magicLink, false);
      const asked = await fetch(`http://127.0.0.1:${port}/api/auth/reset/request`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ email: "somebody@example.com" }),
      });
      await asked.body?.cancel();
      await logged(/Mail requested but not sent/);
      return "not offered, and the log says so";
    },
  },
];
