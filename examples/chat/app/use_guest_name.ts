/** The name of a person without an account: kept in this browser. */
import { useState } from "react";

const KEY = "chat-name";

/** The name in its field, and its setter. */
export function useGuestName(): [name: string, setName: (name: string) => void] {
  const [name, setName] = useState(() => stored() ?? `Guest ${100 + Math.floor(Math.random() * 900)}`);
  const change = (next: string) => {
    setName(next);
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // Without storage the name lasts as long as the page.
    }
  };
  return [name, change];
}

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}
