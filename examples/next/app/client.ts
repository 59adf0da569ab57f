/** The client. On the server it is only imported, and opens no connection. */
import { SynclineClient } from "syncline/client";
import { tokenCookie } from "syncline/token-cookie";

export const url = process.env.NEXT_PUBLIC_SYNCLINE_URL ?? "http://127.0.0.1:3210";

export const client = new SynclineClient(url, { accounts: { storage: tokenCookie() } });
