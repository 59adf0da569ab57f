/** A card with its votes. A vote appears at once, and is taken back if the server refuses it. */
import { useState } from "react";
import type { ResultOf } from "syncline/client";
import { useAuth, useMutation, useSyncline } from "syncline/react";
import type { Id } from "syncline/server";
import { api } from "../functions/_generated.ts";

export function Card({ card }: { card: ResultOf<typeof api.cards.list>[number] }) {
  const me = useAuth().userId as Id<"_users">;
  const client = useSyncline();
  const [problem, setProblem] = useState("");
  const remove = useMutation(api.cards.remove);
  const vote = useMutation(api.cards.vote).withOptimisticUpdate((store, { card, on }) => {
    for (const { args, value } of store.getAllQueries(api.cards.list)) {
      const changed = value.map((one) => {
        if (one._id !== card) return one;
        const others = one.voters.filter((voter) => voter !== me);
        return { ...one, voters: on ? [...others, me] : others };
      });
      store.setQuery(api.cards.list, args, changed);
    }
  });
  const { _id, text, picture, author, by, voters } = card;
  const isVoter = voters.includes(me);
  const attempt = (call: Promise<unknown>) => void call.catch((error: Error) => setProblem(error.message));

  return (
    <article className="card">
      {picture !== null && (
        <a href={picture}>
          <img src={client.fileUrl(picture, { thumb: "480x320", fit: "cover" })} alt="Picture of this card" />
        </a>
      )}
      <p>{text}</p>
      <footer>
        <span>{author}</span>
        {by === me && (
          <button type="button" className="quiet" onClick={() => attempt(remove({ card: _id }))}>
            Remove<span className="hidden">{text}</span>
          </button>
        )}
        <button
          type="button"
          aria-pressed={isVoter}
          aria-label={`Vote for ${text}`}
          onClick={() => attempt(vote({ card: _id, on: !isVoter }))}
        >
          ▲ {voters.length}
        </button>
      </footer>
      <p role="alert">{problem}</p>
    </article>
  );
}
