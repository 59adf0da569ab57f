/**
 * A program for plain Node, which from version 22 on has a `WebSocket` of its own and before gets that of the package
 * `ws`. Text, because the package is not there where this project is checked.
 */
export const nodeScript = `// @ts-check
import { argv, exit } from "node:process";
import { FunctionError, SynclineClient, SynclineHttpClient } from "syncline";
import { WebSocket } from "ws";

const url = argv[2] ?? "";
const client = new SynclineClient(url, { webSocket: WebSocket });
const http = new SynclineHttpClient(url);
const live = new Promise((resolve) => {
  client.subscribe("notes:list", {}, (notes) => {
    if (Array.isArray(notes) && notes.length === 2) resolve(notes.map(({ text }) => text));
  });
});
await client.mutation("notes:add", { text: "over the socket" });
await http.mutation("notes:add", { text: "over HTTP" });
const texts = await live;
const refused = await client.mutation("notes:add", { text: 5 }).catch((error) => error);
const { transport } = client.connectionState();
client.close();
console.log(JSON.stringify({ texts, transport, refused: refused instanceof FunctionError }));
// Nothing may keep the program from ending by itself.
setTimeout(() => exit(3), 5000).unref();
`;
