/** The text of a message that is being written. */
import { useStreamText } from "syncline/react/streams";

export function StreamedText({ stream }: { readonly stream: string }) {
  const { text, isDone, error } = useStreamText(stream);
  // An answer whose action has failed keeps its stream, which then expires.
  if (error !== null) {
    return (
      <span>
        {text} <em>(The answer is incomplete.)</em>
      </span>
    );
  }
  return <span aria-busy={!isDone}>{isDone ? text : `${text}…`}</span>;
}
