/** A filter that finds a user by email address. */
import { useEffect, useId, useState } from "react";
import { useQuery } from "syncline/react";
import { api } from "../../server/api.ts";

const OFFERED = 8;
/** Minimum length of a search, which runs on the server. */
const SEARCHED_FROM = 2;

/** Filters by a user, found by email address, name or ID. */
export function UserFilter({ onChoose }: { readonly onChoose: (caller: string) => void }) {
  const id = useId();
  const [text, setText] = useState("");
  const search = text.trim();
  const answer = useQuery(
    api.users.list,
    search.length < SEARCHED_FROM ? "skip" : { search, paginationOpts: { numItems: OFFERED, cursor: null } },
  );
  const found = answer?.page ?? [];
  /** Whether the text is complete: Enter was pressed, or a suggestion chosen. */
  const [done, setDone] = useState(false);
  const wanted = search.toLowerCase();
  // The search also finds users by a part of the text.
  const matches = found.filter(({ email, name, userId }) =>
    [email, name, userId].some((known) => known?.toLowerCase().includes(wanted))
  );
  const user = done &&
    (matches.find(({ email, userId }) => email === wanted || userId === wanted) ??
      (matches.length === 1 ? matches[0] : undefined));
  const caller = user ? `user:${user.userId}` : null;
  useEffect(() => {
    if (caller === null) return;
    setText("");
    setDone(false);
    onChoose(caller);
  }, [caller]);
  return (
    <>
      <input
        className="input narrow"
        type="search"
        aria-label="User"
        placeholder="User email"
        list={id}
        value={text}
        onChange={({ target, nativeEvent }) => {
          setText(target.value);
          setDone((nativeEvent as InputEvent).inputType === "insertReplacementText");
        }}
        onKeyDown={(event) => event.key === "Enter" && setDone(true)}
      />
      <datalist id={id}>
        {found.map(({ userId, email, name }) => (
          <option key={userId} value={email ?? userId}>{name ?? userId}</option>
        ))}
      </datalist>
      {done && answer !== undefined && !user && (
        <span className="quiet" role="status">
          {matches.length === 0 ? "User not found" : `${matches.length} users match`}
        </span>
      )}
    </>
  );
}
