/**
 * Control for subscriptions: documents in SQLite, and a plain read for each query. Each change is a transaction. The server
 * then reads each affected query again and sends the documents that differ from the last result.
 * Arguments: path of the database, number of documents, characters of text in each.
 */
import { DatabaseSync } from "node:sqlite";
import { serve } from "./serve.ts";

const [path = "", count = "0", chars = "0"] = Deno.args;

/** A subscription to the documents `start` to `start + count - 1`. */
interface Live {
  readonly socket: WebSocket;
  readonly queryId: number;
  readonly start: number;
  readonly count: number;
  /** The documents as sent last. */
  documents: readonly string[];
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
/** Subscriptions to one document, by its number. */
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
      documents: [],
    };
    live.documents = read(live);
    if (live.count > 1) lists.add(live);
    else single.set(live.start, (single.get(live.start) ?? new Set()).add(live));
    return `{"queryId":${queryId},"value":[${live.documents.join(",")}]}`;
  });
  socket.send(`{"type":"Transition","querySet":1,"changes":[${changes.join(",")}]}`);
}

function change({ number, value }: { readonly number: number; readonly value: number }): void {
  const document = JSON.parse(String(readOne.get(number)?.doc));
  write.run(JSON.stringify({ ...document, value }), number);
  for (const live of [...single.get(number) ?? [], ...lists]) {
    if (number < live.start || number >= live.start + live.count) continue;
    const before = live.documents;
    live.documents = read(live);
    const diff: string[] = [];
    for (const [index, document] of live.documents.entries()) {
      if (document !== before[index]) diff.push(`[${index},${document}]`);
    }
    live.socket.send(
      `{"type":"Transition","changes":[{"type":"QueryUpdated","queryId":${live.queryId},"diff":[${diff}]}]}`,
    );
  }
}

await serve((request) => {
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
