/** Control for file storage: pipes request bodies to a file and the file to responses. `/small` returns a constant. */
import { Buffer } from "node:buffer";
import { serve } from "./serve.ts";

const [path = ""] = Deno.args;
const small = Buffer.alloc(1024, "x");

await serve(async (request) => {
  const { pathname } = new URL(request.url);
  if (pathname === "/small") return new Response(small);
  if (request.method === "POST") {
    const file = await Deno.open(path, { write: true, create: true, truncate: true });
    await request.body?.pipeTo(file.writable);
    return new Response("stored");
  }
  const file = await Deno.open(path);
  return new Response(file.readable);
});
