/** A client whose sockets can be blocked, over HTTP in memory. */
import assert from "node:assert/strict";
import { settle } from "./fake_clock.ts";
import { HttpCalls } from "./http_calls.ts";
import { makeTestClient, type TestClient } from "./test_client.ts";
import { nextTick } from "../../support/waiting.ts";

export interface PollingTest extends TestClient {
  readonly http: HttpCalls;
  /** Lets attempts fail until the client polls. */
  block(): Promise<void>;
}

export function makePollingTest(): PollingTest {
  const http = new HttpCalls();
  const test = makeTestClient({ fetch: http.fetch });
  const untilAttempt = () => {
    const at = test.client.connectionState().reconnectsAt;
    return test.clock.advance(at === null ? 0 : at - test.clock.now());
  };
  const block = async () => {
    for (let attempt = 0; attempt < 5; attempt++) {
      await untilAttempt();
      test.sockets.last.closeWith(1006);
      await turns();
      if (test.client.connectionState().transport === "polling") return;
    }
    assert.fail("the client does not poll");
  };
  const open = async () => {
    await untilAttempt();
    return await test.open();
  };
  return { ...test, http, block, open, [Symbol.dispose]: () => test.client.close() };
}

/** Lets the bodies of requests and responses be read. */
export async function turns(): Promise<void> {
  for (let i = 0; i < 3; i++) {
    await nextTick();
    await settle();
  }
}
