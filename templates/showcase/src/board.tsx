/** Three columns of cards, searched live. */
import { useState } from "react";
import { useQuery } from "syncline/react";
import { api } from "../functions/_generated.ts";
import { Card } from "./card.tsx";
import { Composer } from "./composer.tsx";

const COLUMNS = { good: "Went well", bad: "To improve", next: "Next steps" } as const;
export type Column = keyof typeof COLUMNS;

export function Board() {
  const [search, setSearch] = useState("");
  const cards = useQuery(api.cards.list, { search });
  return (
    <>
      <input
        type="search"
        aria-label="Search cards"
        placeholder="Search"
        value={search}
        onChange={(event) => setSearch(event.target.value)}
      />
      <div className="columns">
        {(Object.keys(COLUMNS) as Column[]).map((column) => {
          const shown = cards?.filter((card) => card.column === column)
            .sort((a, b) => b.voters.length - a.voters.length);
          return (
            <section key={column} className={column} aria-labelledby={column}>
              <h2 id={column}>{COLUMNS[column]} {shown && <small>{shown.length}</small>}</h2>
              <Composer column={column} />
              {shown === undefined && <div className="loading" aria-label="Loading" />}
              {shown?.length === 0 && (
                <p className="empty">{search === "" ? "No cards yet" : "Nothing found"}</p>
              )}
              {shown?.map((card) => <Card key={card._id} card={card} />)}
            </section>
          );
        })}
      </div>
    </>
  );
}
