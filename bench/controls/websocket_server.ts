/** Control for WebSocket rows: `/echo` returns each message, `/trigger` sends each message to every socket of `/listen`. */
import { serve } from "./serve.ts";

const listeners = new Set<WebSocket>();

await serve((request) => {
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
