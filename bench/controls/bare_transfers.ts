/** The operations of the transfer benchmark directly on SQLite, for the controls of durable writes. */
import { DatabaseSync } from "node:sqlite";

export interface Transfer {
  readonly from_id: number;
  readonly to_id: number;
  readonly amount: number;
}

export interface Post {
  readonly room: number;
  readonly member: number;
  readonly text: string;
}

/** Each write is a transaction. */
export interface BareTransfers {
  readonly transfer: (transfer: Transfer) => void;
  readonly balanceOf: (account: number) => number;
  /** Inserts a message if its author is a member of the room. Returns its id. */
  readonly post: (message: Post) => number;
}

const ROOMS = 1_000;
const MEMBERS_PER_ROOM = 10;

/** Creates a database with accounts and rooms. */
export function openBareTransfers(path: string, accounts: number): BareTransfers {
  const database = new DatabaseSync(path);
  database.exec(
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;" +
      "CREATE TABLE accounts (number INTEGER PRIMARY KEY, balance REAL NOT NULL);" +
      "CREATE TABLE members (room INTEGER, member INTEGER, PRIMARY KEY (room, member)) WITHOUT ROWID;" +
      "CREATE TABLE messages (id INTEGER PRIMARY KEY, room INTEGER, member INTEGER, text TEXT);" +
      "CREATE INDEX by_room ON messages (room)",
  );
  const insertAccount = database.prepare("INSERT INTO accounts VALUES (?, 1e9)");
  const insertMember = database.prepare("INSERT INTO members VALUES (?, ?)");
  database.exec("BEGIN");
  for (let number = 0; number < accounts; number++) insertAccount.run(number);
  for (let room = 0; room < ROOMS; room++) {
    for (let member = 0; member < MEMBERS_PER_ROOM; member++) insertMember.run(room, member);
  }
  database.exec("COMMIT");
  const read = database.prepare("SELECT balance FROM accounts WHERE number = ?");
  const write = database.prepare("UPDATE accounts SET balance = ? WHERE number = ?");
  const isMember = database.prepare("SELECT 1 FROM members WHERE room = ? AND member = ?");
  const insertMessage = database.prepare("INSERT INTO messages VALUES (NULL, ?, ?, ?)");
  const begin = database.prepare("BEGIN IMMEDIATE");
  const commit = database.prepare("COMMIT");
  return {
    transfer({ from_id: from, to_id: to, amount }) {
      begin.run();
      const source = Number(read.get(from)?.balance);
      const target = Number(read.get(to)?.balance);
      if (!(source >= amount)) throw new Error("The balance is too low");
      write.run(source - amount, from);
      write.run(target + amount, to);
      commit.run();
    },
    balanceOf: (account) => Number(read.get(account)?.balance),
    post({ room, member, text }) {
      begin.run();
      if (isMember.get(room, member) === undefined) throw new Error(`${member} is not a member of ${room}`);
      const { lastInsertRowid } = insertMessage.run(room, member, text);
      commit.run();
      return Number(lastInsertRowid);
    },
  };
}
