/**
 * The control of subscriptions: documents in SQLite, and for each query of a socket a bare read. A change is committed by
 * itself; then each query that it touches is read again, compared with what was sent, and the difference goes out.
 * Arguments: the database's path, the number of documents and the characters of each one's text.
 */
import { DatabaseSync } from "node:sqlite";

const [path, count, chars] = Deno.args;
if (path === undefined || count === undefined) throw new TypeError("A path and a number are needed");

interface Document {
  readonly number: number;
  readonly value: number;
  readonly text: string;
}

/** The documents from `start` on, as they were sent. */
interface Live {
  readonly socket: WebSocket;
  readonly queryId: number;
  readonly start: number;
  readonly count: number;
  texts: readonly string[];
}

const database = new DatabaseSync(path);
database.exec(
  "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;" +
    "CREATE TABLE documents (number INTEGER PRIMARY KEY, doc TEXT NOT NULL); BEGIN",
);
const insert = database.prepare("INSERT INTO documents VALUES (?, ?)");
for (let number = 0; number < Number(count); number++) {
  insert.run(number, JSON.stringify({ number, value: 0, text: "x".repeat(Number(chars)) }));
}
database.exec("COMMIT");
const readOne = database.prepare("SELECT doc FROM documents WHERE number = ?");
const readMany = database.prepare(
  "SELECT doc FROM documents WHERE number >= ? AND number < ? ORDER BY number",
);
const write = database.prepare("UPDATE documents SET doc = ? WHERE number = ?");
/** Queries for one document by its number, and those for more. */
const single = new Map<number, Set<Live>>();
const lists = new Set<Live>();

function read({ start, count }: Live): string[] {
  if (count === 1) return [String(readOne.get(start)?.doc)];
  return readMany.all(start, start + count).map(({ doc }) => String(doc));
}

function subscribe(socket: WebSocket, queries: readonly { queryId: number; args: Record<string, number> }[]) {
  const changes = queries.map(({ queryId, args }) => {
    const live: Live = {
      ...{ socket, queryId, start: args.number ?? args.start ?? 0, count: args.count ?? 1 },
      texts: [],
    };
    live.texts = read(live);
    if (live.count > 1) lists.add(live);
    else single.set(live.start, (single.get(live.start) ?? new Set()).add(live));
    return `{"queryId":${queryId},"value":[${live.texts.join(",")}]}`;
  });
  socket.send(`{"type":"Transition","querySet":1,"changes":[${changes.join(",")}]}`);
}

function change({ number, value }: { readonly number: number; readonly value: number }): void {
  const document: Document = JSON.parse(String(readOne.get(number)?.doc));
  write.run(JSON.stringify({ ...document, value }), number);
  const touched = [...single.get(number) ?? [], ...lists];
  for (const live of touched) {
    if (number < live.start || number >= live.start + live.count) continue;
    const before = live.texts;
    live.texts = read(live);
    const diff: string[] = [];
    for (const [at, text] of live.texts.entries()) if (text !== before[at]) diff.push(`[${at},${text}]`);
    live.socket.send(
      `{"type":"Transition","changes":[{"type":"QueryUpdated","queryId":${live.queryId},"diff":[${diff}]}]}`,
    );
  }
}

const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
  const { socket, response } = Deno.upgradeWebSocket(request);
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.type === "ModifyQuerySet") subscribe(socket, message.modifications);
    if (message.type !== "Mutation") return;
    change(message.args);
    socket.send(`{"type":"MutationResponse","requestId":${message.requestId},"success":true,"result":null}`);
  };
  return response;
});

await Deno.stdout.write(new TextEncoder().encode(`port ${server.addr.port}\n`));
for await (const _ of Deno.stdin.readable);
Deno.exit(0);
