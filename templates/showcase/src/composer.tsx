/** The form for a new card, with a picture if the user chooses one. */
import { useActionState } from "react";
import { useMutation, useSyncline } from "syncline/react";
import { api } from "../functions/_generated.ts";
import type { Column } from "./board.tsx";

export function Composer({ column }: { column: Column }) {
  const client = useSyncline();
  const add = useMutation(api.cards.add);
  const uploadUrl = useMutation(api.cards.uploadUrl);
  const [{ text, problem }, submit, isPending] = useActionState(async (_: unknown, fields: FormData) => {
    const text = String(fields.get("text"));
    const picture = fields.get("picture") as File;
    try {
      const photo = picture.size === 0 ? undefined : await client.upload(await uploadUrl(), picture);
      await add({ column, text, ...photo && { photo } });
      return { text: "", problem: "" };
    } catch (error) {
      return { text, problem: error instanceof Error ? error.message : String(error) };
    }
  }, { text: "", problem: "" });
  return (
    <form action={submit}>
      <div className="row">
        <input
          name="text"
          aria-label="New card"
          placeholder="Write a card"
          defaultValue={text}
          autoComplete="off"
          maxLength={300}
          required
        />
        <button type="submit" className="main" disabled={isPending}>Add</button>
      </div>
      <label className="quiet">
        Picture <input name="picture" type="file" accept="image/*" />
      </label>
      <p role="alert">{problem}</p>
    </form>
  );
}
