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
  /** Inserts a message of a member of a room, in a transaction of its own. */
  readonly post: (message: Post) => number;
}

export interface Post {
  readonly room: number;
  readonly member: number;
  readonly text: string;
}

/** Rooms, and members of each. */
const ROOMS = 1_000;
const MEMBERS = 10;

/** Makes the accounts in a new database. */
export function bareTransfers(path: string, accounts: number): BareTransfers {
  const database = new DatabaseSync(path);
  database.exec(
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;" +
      "CREATE TABLE accounts (number INTEGER PRIMARY KEY, balance REAL NOT NULL);" +
      "CREATE TABLE members (room INTEGER, member INTEGER, PRIMARY KEY (room, member)) WITHOUT ROWID;" +
      "CREATE TABLE messages (id INTEGER PRIMARY KEY, room INTEGER, member INTEGER, text TEXT);" +
      "CREATE INDEX by_room ON messages (room)",
  );
  const insert = database.prepare("INSERT INTO accounts VALUES (?, 1e9)");
  database.exec("BEGIN");
  for (let number = 0; number < accounts; number++) insert.run(number);
  const join = database.prepare("INSERT INTO members VALUES (?, ?)");
  for (let place = 0; place < ROOMS * MEMBERS; place++) {
    join.run(Math.floor(place / MEMBERS), place % MEMBERS);
  }
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
  const isMember = database.prepare("SELECT 1 FROM members WHERE room = ? AND member = ?");
  const add = database.prepare("INSERT INTO messages VALUES (NULL, ?, ?, ?)");
  const post = ({ room, member, text }: Post) => {
    begin.run();
    if (isMember.get(room, member) === undefined) throw new Error(`${member} is no member of ${room}`);
    const { lastInsertRowid } = add.run(room, member, text);
    commit.run();
    return Number(lastInsertRowid);
  };
  return { transfer, balanceOf: (account) => Number(read.get(account)?.balance), post };
}
