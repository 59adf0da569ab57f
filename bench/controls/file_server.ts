/** The control of file storage: pipes bodies to and from one file, and answers a constant. Prints its port. */
import { Buffer } from "node:buffer";

const [path = ""] = Deno.args;
const small = Buffer.alloc(1024, "x");

const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
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
Deno.stdout.writeSync(new TextEncoder().encode(`port ${server.addr.port}\n`));
