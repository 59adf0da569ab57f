/** The transfer of the benchmark straight on SQLite: what the controls for durable writes have in common. */
import { DatabaseSync } from "node:sqlite";

export interface Transfer {
  readonly from_id: number;
  readonly to_id: number;
  readonly amount: number;
}

export interface BareTransfers {
  /** Runs one in a transaction of its own. */
  readonly transfer: (transfer: Transfer) => void;
  readonly balanceOf: (account: number) => number;
}

/** Makes the accounts in a new database. */
export function bareTransfers(path: string, accounts: number): BareTransfers {
  const database = new DatabaseSync(path);
  database.exec(
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;" +
      "CREATE TABLE accounts (number INTEGER PRIMARY KEY, balance REAL NOT NULL)",
  );
  const insert = database.prepare("INSERT INTO accounts VALUES (?, 1e9)");
  database.exec("BEGIN");
  for (let number = 0; number < accounts; number++) insert.run(number);
  database.exec("COMMIT");
  const read = database.prepare("SELECT balance FROM accounts WHERE number = ?");
  const write = database.prepare("UPDATE accounts SET balance = ? WHERE number = ?");
  const begin = database.prepare("BEGIN IMMEDIATE");
  const commit = database.prepare("COMMIT");
  const transfer = ({ from_id: from, to_id: to, amount }: Transfer) => {
    begin.run();
    const source = Number(read.get(from)?.balance);
    const target = Number(read.get(to)?.balance);
    if (!(source >= amount)) throw new Error("The balance is too low");
    write.run(source - amount, from);
    write.run(target + amount, to);
    commit.run();
  };
  return { transfer, balanceOf: (account) => Number(read.get(account)?.balance) };
}
