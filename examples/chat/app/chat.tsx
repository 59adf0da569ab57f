/** The whole page: channels and the person on one side, the open channel on the other. */
import { useRef, useState } from "react";
import { Unauthenticated, useMutation, useQuery } from "syncline/react";
import { api } from "./api.ts";
import { Composer } from "./composer.tsx";
import { Connection } from "./connection.tsx";
import { Me } from "./me.tsx";
import { MessageList } from "./message_list.tsx";
import { TypingLine, useRoom } from "./room.tsx";
import { useSend } from "./send.ts";
import { SignIn } from "./sign_in.tsx";
import { Sidebar } from "./sidebar.tsx";
import { useChannel } from "./use_channel.ts";
import { useGuestName } from "./use_guest_name.ts";

export function Chat() {
  const [channel, openChannel] = useChannel();
  const [guestName, setGuestName] = useGuestName();
  const [problem, setProblem] = useState("");
  const person = useQuery(api.people.me) ?? { name: guestName.trim() };
  const channels = useQuery(api.channels.list);
  const createChannel = useMutation(api.channels.create);
  const signIn = useRef<HTMLDialogElement>(null);
  const room = useRoom(channel, guestName);
  const { send, sent } = useSend({ channel, guestName, person });

  const create = async (name: string) => {
    try {
      openChannel(await createChannel({ name }));
      setProblem("");
      return true;
    } catch (error) {
      setProblem(messageOf(error));
      return false;
    }
  };
  const post = async (body: string) => {
    room.stop();
    try {
      await send(body);
      setProblem("");
      return true;
    } catch (error) {
      setProblem(messageOf(error));
      return false;
    }
  };

  return (
    <>
      <Sidebar channels={channels ?? []} open={channel} onCreate={create}>
        <Me
          person={person}
          guestName={guestName}
          onGuestName={setGuestName}
          onSignIn={() => signIn.current?.showModal()}
        />
      </Sidebar>
      <main>
        <header>
          <h1>
            <span aria-hidden="true">#</span>
            <span>{channel}</span>
          </h1>
          {room.present.length > 1 && (
            <p className="present" title={room.present.join(", ")}>{room.present.length} people here</p>
          )}
          <Connection />
        </header>
        <MessageList key={channel} channel={channel} me={person} sent={sent} />
        <TypingLine names={room.typing} />
        <Composer channel={channel} problem={problem} onInput={room.touch} onSend={post} />
      </main>
      <Unauthenticated>
        <SignIn dialog={signIn} guestName={guestName} />
      </Unauthenticated>
    </>
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
