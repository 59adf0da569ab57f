/** Sending messages: shown at once, before the server has them; offline they wait and are sent later, exactly once. */
import { useCallback, useState } from "react";
import type { OptimisticStore } from "syncline/client";
import { useSyncline } from "syncline/react";
import { api, type Message, type Person } from "./api.ts";

interface Sender {
  readonly channel: string;
  readonly guestName: string;
  readonly person: Person;
}

let localMessages = 0;

/** Sends to a channel; `sent` counts the messages, so that the list can go to its end. */
export function useSend({ channel, guestName, person }: Sender): {
  readonly send: (body: string) => Promise<void>;
  readonly sent: number;
} {
  const client = useSyncline();
  const [sent, setSent] = useState(0);
  const send = useCallback(async (body: string) => {
    setSent((count) => count + 1);
    const local = {
      _id: `local-${++localMessages}`,
      _creationTime: Date.now(),
      channel,
      body,
      ...person,
      pending: true,
    } as Message;
    await client.mutation(api.messages.send, { channel, name: guestName, body }, {
      optimisticUpdate: (store) => showFirst(store, local),
    });
  }, [client, channel, guestName, person.name, person.author]);
  return { send, sent };
}

/** Puts a message in front of the newest page of its channel. */
function showFirst(store: OptimisticStore, message: Message): void {
  for (const { args, value } of store.getAllQueries(api.messages.page)) {
    if (args.channel !== message.channel || args.paginationOpts.cursor !== null) continue;
    store.setQuery(api.messages.page, args, { ...value, page: [message, ...value.page] });
  }
}
