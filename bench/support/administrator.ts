/** The first administrator of a server: made through the link that its start prints. */
import { until } from "../../tests/support/waiting.ts";

export class Administrator {
  #setup = "";

  /** To be called with each line that the server prints. */
  readonly onLine = (line: string): void => {
    this.#setup ||= /\/\S*#\w+=(\S+)/.exec(line)?.[1] ?? "";
  };

  /** Returns a token. */
  async signUp(port: number): Promise<string> {
    await until(() => this.#setup !== "", { what: "the link for the first administrator is printed" });
    const response = await fetch(`http://127.0.0.1:${port}/api/auth/admin/setup`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        ...{ token: this.#setup, email: "root@example.com", password: "correct horse battery" },
      }),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(JSON.stringify(answer));
    return answer.accessToken;
  }
}
