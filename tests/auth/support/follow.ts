/** A browser without pages: it follows redirects and keeps cookies. */
import assert from "node:assert/strict";

/** Follows redirects as a browser without pages does, up to the app. */
export async function follow(start: string, app: string, steps = 12): Promise<URL> {
  const jars = new Map<string, Map<string, string>>();
  let url = new URL(start);
  for (let step = 0; step < steps; step++) {
    const jar = jars.get(url.host) ?? new Map<string, string>();
    jars.set(url.host, jar);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, { redirect: "manual", headers: { cookie } });
    await response.body?.cancel();
    for (const set of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      jar.set(name, value);
    }
    const location = response.headers.get("location");
    assert.ok(location !== null, `${url.pathname}: status ${response.status}`);
    url = new URL(location, url);
    if (url.href.startsWith(app)) return url;
  }
  throw new Error("too many redirects");
}
