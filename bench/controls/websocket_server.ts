/**
 * The control for WebSocket rows: a bare server. `/echo` returns each message, `/trigger` sends each message to every
 * socket of `/listen`. Ends when its input ends.
 */
const listeners = new Set<WebSocket>();

const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
  const { socket, response } = Deno.upgradeWebSocket(request);
  switch (new URL(request.url).pathname) {
    case "/echo":
      socket.onmessage = ({ data }) => socket.send(data);
      break;
    case "/listen":
      socket.onopen = () => listeners.add(socket);
      socket.onclose = () => listeners.delete(socket);
      break;
    case "/trigger":
      socket.onmessage = ({ data }) => {
        for (const listener of listeners) {
          if (listener.readyState === WebSocket.OPEN) listener.send(data);
        }
      };
      break;
  }
  return response;
});

await Deno.stdout.write(new TextEncoder().encode(`port ${server.addr.port}\n`));
for await (const _ of Deno.stdin.readable);
Deno.exit(0);
