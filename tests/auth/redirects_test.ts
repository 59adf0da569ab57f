import assert from "node:assert/strict";
import { ServiceError } from "../../mod/errors.ts";
import { Redirects, withFragment } from "../../mod/auth/redirects.ts";

const allowed = ["https://app.example.com/auth", "https://other.example.com", "myapp://callback"];
const live = new Redirects({ allowed, dev: false, fallback: () => "https://self.example.com/" });
const dev = new Redirects({ allowed, dev: true, fallback: () => "https://self.example.com/" });

function resolved(redirects: Redirects, url: string): string | null {
  try {
    return redirects.resolve(url);
  } catch (error) {
    assert.ok(error instanceof ServiceError && error.code === "invalid_redirect");
    return null;
  }
}

for (
  const [url, result] of [
    ["https://app.example.com/auth", "https://app.example.com/auth"],
    ["https://app.example.com/auth/", "https://app.example.com/auth/"],
    ["https://app.example.com/auth/done?x=1", "https://app.example.com/auth/done?x=1"],
    ["https://app.example.com/auth#svc_verify_token=planted", "https://app.example.com/auth"],
    ["https://APP.example.com:443/auth", "https://app.example.com/auth"],
    ["https://other.example.com", "https://other.example.com/"],
    ["https://other.example.com/any/where", "https://other.example.com/any/where"],
    ["myapp://callback", "myapp://callback"],
    ["myapp://callback/a", "myapp://callback/a"],
  ] as const
) {
  Deno.test(`RD1 redirect ${url} is allowed`, () => assert.equal(resolved(live, url), result));
}

for (
  const url of [
    "",
    "/auth",
    "//app.example.com/auth",
    "https://evil.example.com/auth",
    "http://app.example.com/auth",
    "https://app.example.com:8443/auth",
    "https://app.example.com/",
    "https://app.example.com/AUTH",
    "https://app.example.com/authentic",
    "https://app.example.com/auth-evil",
    "https://app.example.com/auth/../evil",
    "https://app.example.com/auth/%2e%2e/evil",
    "https://app.example.com/auth/.%2E/evil",
    "https://app.example.com/auth%2f..%2fevil",
    "https://app.example.com/auth/%5c..%5cevil",
    "https://app.example.com/auth/%00",
    "https://app.example.com/%61uth",
    "https://app.example.com\\auth",
    "https:\\\\app.example.com/auth",
    "https://app.example.com@evil.example.com/auth",
    "https://user:password@app.example.com/auth",
    "https://evil.example.com\\@app.example.com/auth",
    "https://evil.example.com#@app.example.com/auth",
    "https://app.example.com.evil.example.com/auth",
    "https://app.example.com./auth",
    "https://app%2eexample.com/auth",
    "https:/app.example.com/auth",
    "https:///app.example.com/auth",
    "https:app.example.com/auth",
    " https://app.example.com/auth",
    "https://app.example.com/auth\n",
    "ht\ntps://app.example.com/auth",
    "https://app.example.com/auth\u0000",
    "javascript:alert(1)",
    "JavaScript://app.example.com/%0aalert(1)",
    "data://app.example.com/auth",
    "file:///etc/passwd",
    "myapp://other",
    "myapp://callback.evil",
    "http://localhost:5173/",
    "http://127.0.0.1/",
    `https://other.example.com/${"a".repeat(3_000)}`,
  ]
) {
  Deno.test(`RD2 redirect ${JSON.stringify(url.slice(0, 70))} is refused`, () =>
    assert.equal(resolved(live, url), null));
}

Deno.test("RD3 development also allows http on loopback, and nothing else", () => {
  for (
    const url of [
      "http://localhost:5173/",
      "http://127.0.0.1:8080/a",
      "http://127.9.9.9/",
      "http://[::1]:3000/",
    ]
  ) {
    assert.equal(resolved(dev, url), url);
  }
  for (
    const url of [
      "https://localhost.evil.example.com/",
      "http://localhost.evil.example.com/",
      "http://localhost@evil.example.com/",
      "http://127.0.0.1.evil.example.com/",
      "ftp://localhost/",
      "https://evil.example.com/",
    ]
  ) assert.equal(resolved(dev, url), null);
});

Deno.test("RD4 without redirectTo the first entry is used, without entries the fallback", () => {
  assert.equal(live.resolve(undefined), "https://app.example.com/auth");
  const none = new Redirects({ allowed: [], dev: false, fallback: () => "https://self.example.com/" });
  assert.equal(none.resolve(undefined), "https://self.example.com/");
  assert.equal(resolved(none, "https://self.example.com/"), null);
});

Deno.test("an entry that cannot be one stops the start", () => {
  for (
    const entry of [
      "app.example.com",
      "javascript:alert(1)",
      "https://a@b.example.com",
      "https://*.example.com/..",
    ]
  ) {
    assert.throws(() => new Redirects({ allowed: [entry], dev: false, fallback: () => "" }), TypeError);
  }
});

Deno.test("tokens replace the fragment of the URL", () => {
  assert.equal(
    withFragment("https://app.example.com/a?b=c#d", { svc_reset_token: "x_-1" }),
    "https://app.example.com/a?b=c#svc_reset_token=x_-1",
  );
});
