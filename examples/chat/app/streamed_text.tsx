/** The text of a message that is being written. */
import { useStreamText } from "syncline/react/streams";

export function StreamedText({ stream }: { readonly stream: string }) {
  const { text, error } = useStreamText(stream);
  return <span aria-busy={error === null}>{text}…</span>;
}
