/**
 * The control for durable writes: the same transfer straight on SQLite, one transaction each. `POST /api/mutation` runs one
 * transfer, `POST /commits` with `{count}` measures that many in the process itself. Ends when its input ends.
 * Arguments: the database's path and the number of accounts.
 */
import { DatabaseSync } from "node:sqlite";

const [path, accounts] = Deno.args;
if (path === undefined || accounts === undefined) throw new TypeError("A path and a number are needed");

const database = new DatabaseSync(path);
database.exec(
  "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;" +
    "CREATE TABLE accounts (number INTEGER PRIMARY KEY, balance REAL NOT NULL)",
);
const insert = database.prepare("INSERT INTO accounts VALUES (?, 1e9)");
database.exec("BEGIN");
for (let number = 0; number < Number(accounts); number++) insert.run(number);
database.exec("COMMIT");

const read = database.prepare("SELECT balance FROM accounts WHERE number = ?");
const write = database.prepare("UPDATE accounts SET balance = ? WHERE number = ?");
const begin = database.prepare("BEGIN IMMEDIATE");
const commit = database.prepare("COMMIT");

interface Transfer {
  readonly from_id: number;
  readonly to_id: number;
  readonly amount: number;
}

function transfer({ from_id: from, to_id: to, amount }: Transfer): void {
  begin.run();
  const source = Number(read.get(from)?.balance);
  const target = Number(read.get(to)?.balance);
  if (!(source >= amount)) throw new Error("The balance is too low");
  write.run(source - amount, from);
  write.run(target + amount, to);
  commit.run();
}

/** Milliseconds of each of `count` transfers. */
function measure(count: number): number[] {
  const durations: number[] = [];
  for (let i = 0; i < count; i++) {
    const from = Math.floor(Math.random() * Number(accounts));
    const startedAt = performance.now();
    transfer({ from_id: from, to_id: (from + 1) % Number(accounts), amount: 1 });
    durations.push(performance.now() - startedAt);
  }
  return durations;
}

const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
  const body = await request.json();
  if (new URL(request.url).pathname === "/commits") return Response.json(measure(body.count));
  transfer(body.args);
  return Response.json({ status: "success", value: null, logLines: [] });
});

await Deno.stdout.write(new TextEncoder().encode(`port ${server.addr.port}\n`));
for await (const _ of Deno.stdin.readable);
Deno.exit(0);
