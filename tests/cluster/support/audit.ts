/** Checks that each server shows every acknowledged write exactly once, and that the sum of all balances is unchanged. */
import assert from "node:assert/strict";
import { found, HANG_MS, until } from "../../support/waiting.ts";
import { ACCOUNTS, BALANCE, LEDGER_ROWS } from "./bank_app.ts";
import { ask, type Clients } from "./clients.ts";
import type { ClusterProcess } from "./server_processes.ts";

export class Audit {
  readonly #clients: Clients;
  /** Number of transfers read from each ledger, by server and client. */
  readonly #read = new Map<string, number>();

  constructor(clients: Clients) {
    this.#clients = clients;
  }

  /** Checks transfers since the last call, or with `all` from the first one. Throws an `AssertionError`. */
  async check(servers: readonly ClusterProcess[], { all = false } = {}): Promise<void> {
    if (all) this.#read.clear();
    for (const server of servers) {
      const { total } = await query(server, "bank:look") as { readonly total: number };
      assert.equal(total, ACCOUNTS * BALANCE, `${server.name} shows another total`);
      for (const [client, count] of [...this.#clients.acknowledged]) {
        await this.#checkLedger(server, { client, count });
      }
    }
  }

  /** Transfers of a client have consecutive numbers: a missing one was lost, and a repeated one was executed twice. */
  async #checkLedger(
    server: ClusterProcess,
    { client, count }: { readonly client: string; readonly count: number },
  ): Promise<void> {
    const key = `${server.name} ${client}`;
    let from = this.#read.get(key) ?? 0;
    await until(async () => {
      for (;;) {
        const rows = await query(server, "bank:ledger", { client, from }) as number[];
        for (const n of rows) {
          assert.equal(n, from, `${server.name} has transfer ${n} of ${client} where ${from} is due`);
          from++;
        }
        this.#read.set(key, from);
        if (rows.length < LEDGER_ROWS) return from >= count;
      }
    }, { what: () => `${server.name} shows ${from} of ${count} of ${client}` });
  }
}

async function query(server: ClusterProcess, path: string, args: object = {}): Promise<unknown> {
  const answer = await found(async () => {
    const answer = await ask(server.directUrl, { path, args, query: true, answerMs: HANG_MS });
    // A server that changes its role ends queries in progress.
    return answer.errorData?.code === "unavailable" ? null : answer;
  }, { what: `${server.name} answers` });
  assert.equal(answer.status, "success", `${server.name} answers ${JSON.stringify(answer)}`);
  return answer.value;
}
