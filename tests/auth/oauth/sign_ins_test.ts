import assert from "node:assert/strict";
import { redirectVectors } from "./hostile_vectors.ts";
import { externalLimits } from "../../../mod/auth/limits.ts";
import { startTestAccounts } from "../support/test_accounts.ts";
import {
  appUrl,
  fragmentOf,
  type ProviderName,
  providerNames,
  SHORT_REQUEST_MS,
  startTestSignIns,
} from "../support/test_sign_ins.ts";

const ann = { id: "4711", email: "ann@example.com", verified: true, name: "Ann" };

Deno.test("OA1 exactly the configured providers are listed, in the order of the file", async () => {
  await using signIns = await startTestSignIns();
  const { body } = await signIns.accounts.get("/providers");
  assert.deepEqual(body.oauth, [...providerNames]);
  assert.equal((await signIns.accounts.get("/oauth/facebook")).status, 404);
});

for (const provider of providerNames) {
  const name = `OA2 OA3 OA10 with ${provider} a person is signed in, and is the same user the next time`;
  Deno.test(name, async () => {
    await using signIns = await startTestSignIns();
    const { accounts } = signIns;
    const started = await signIns.begin(provider);
    const asked = new URL(started.location).searchParams;
    assert.equal(asked.get("redirect_uri"), `https://api.example.com/api/auth/oauth/${provider}/callback`);
    assert.match(started.state, /^[\w-]{43}$/);
    const person = { ...ann, ...(provider === "microsoft" && { verified: false }) };
    if (provider === "microsoft") signIns.at.microsoft.overrides.claims = { xms_edov: true };
    const fragment = await signIns.signIn(provider, person);
    assert.deepEqual([...fragment.keys()], [
      "svc_access_token",
      "svc_refresh_token",
      "svc_expires_in",
      "svc_user_id",
    ]);
    assert.equal(fragment.get("svc_expires_in"), "900");
    const userId = fragment.get("svc_user_id");
    assert.equal((await accounts.identityOf(fragment.get("svc_access_token") ?? "")).userId, userId);
    const refreshed = await accounts.post("/refresh", { refreshToken: fragment.get("svc_refresh_token") });
    assert.equal(refreshed.body.userId, userId);
    const [user] = accounts.port.rows("_users");
    assert.deepEqual([user?.["_id"], user?.["email"], user?.["emailVerified"], user?.["name"]], [
      userId,
      "ann@example.com",
      true,
      "Ann",
    ]);
    assert.equal((await signIns.signIn(provider, person)).get("svc_user_id"), userId);
    assert.equal(accounts.port.rows("_users").length, 1);
    assert.equal(accounts.port.rows("_oauth_flows").length, 1, "the one that was begun and left");
  });
}

interface Cookie {
  readonly name: string;
  readonly origin: string;
  readonly provider: ProviderName;
  readonly attributes: string;
}

const cookies: readonly Cookie[] = [
  {
    name: "OA5 over https",
    origin: "https://api.example.com",
    provider: "github",
    attributes: "HttpOnly; SameSite=Lax; Secure",
  },
  {
    name: "OA5 over http",
    origin: "http://localhost:3210",
    provider: "github",
    attributes: "HttpOnly; SameSite=Lax",
  },
  {
    name: "OA6 for a form over https",
    origin: "https://api.example.com",
    provider: "apple",
    attributes: "HttpOnly; SameSite=None; Secure",
  },
  {
    name: "OA6 for a form over http",
    origin: "http://localhost:3210",
    provider: "apple",
    attributes: "HttpOnly; SameSite=Lax",
  },
];

Deno.test("OA5 OA6 the state is in a cookie with attributes that fit the response mode", async (t) => {
  for (const { name, origin, provider, attributes } of cookies) {
    await t.step(name, async () => {
      await using signIns = await startTestSignIns({ origin });
      const { setCookie, state } = await signIns.begin(provider);
      assert.equal(setCookie, `svc_oauth_state=${state}; Path=/api/auth/oauth; Max-Age=600; ${attributes}`);
    });
  }
});

Deno.test("OA6 a form response is requested only where it is needed, with a nonce", async () => {
  await using signIns = await startTestSignIns();
  const apple = new URL((await signIns.begin("apple")).location).searchParams;
  assert.equal(apple.get("response_mode"), "form_post");
  assert.match(apple.get("nonce") ?? "", /^[\w-]{43}$/);
  assert.equal(apple.get("scope"), "name email");
  for (const provider of providerNames.filter((name) => name !== "apple")) {
    const { location } = await signIns.begin(provider);
    assert.equal(new URL(location).searchParams.get("response_mode"), null, provider);
  }
});

Deno.test("OA4 a redirect that is not on the list is refused at the start, and is never replaced", async (t) => {
  await using signIns = await startTestSignIns();
  const { accounts } = signIns;
  for (const redirectTo of redirectVectors) {
    await t.step(`OA4 ${JSON.stringify(redirectTo)}`, async () => {
      const answer = await accounts.get(`/oauth/github?redirect_to=${encodeURIComponent(redirectTo)}`);
      assert.deepEqual([answer.status, answer.body.errorData.code], [400, "invalid_redirect"]);
      assert.equal(answer.headers.get("set-cookie"), null);
    });
  }
  assert.deepEqual(accounts.port.rows("_oauth_flows"), []);
  const without = await accounts.get("/oauth/github");
  assert.equal(without.status, 302);
  assert.equal(accounts.port.rows("_oauth_flows")[0]?.["redirectTo"], "https://app.example.com/auth");
});

Deno.test("OA10 other parameters of the app's URL are kept, and its fragment is replaced", async () => {
  await using signIns = await startTestSignIns();
  const started = await signIns.begin("github", `${appUrl}?next=/room&x=1#here`);
  const answer = await signIns.back("github", signIns.at.github.agree(started.location, ann), started);
  assert.match(
    answer.headers.get("location") ?? "",
    /^https:\/\/app\.example\.com\/auth\/done\?next=\/room&x=1#svc_access_token=/,
  );
  assert.equal(answer.headers.get("referrer-policy"), "no-referrer");
  assert.match(
    answer.headers.get("set-cookie") ?? "",
    /^svc_oauth_state=; Path=\/api\/auth\/oauth; Max-Age=0; HttpOnly; SameSite=Lax; Secure$/,
  );
});

Deno.test("OA8 OA9 a sign-in is completed once, even if two callbacks arrive at the same time", async () => {
  await using signIns = await startTestSignIns();
  const started = await signIns.begin("github");
  const parameters = signIns.at.github.agree(started.location, ann);
  const answers = await Promise.all([1, 2, 3].map(() => signIns.back("github", parameters, started)));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [302, 400, 400]);
  const again = await signIns.back("github", parameters, started);
  assert.equal(again.status, 400);
  assert.equal(again.headers.get("content-type")?.split(";")[0]?.toLowerCase(), "text/plain");
  assert.equal(signIns.accounts.port.rows("_sessions").length, 1);
});

Deno.test("OA8 a sign-in expires after exactly ten minutes, and expired rows are deleted", async () => {
  await using signIns = await startTestSignIns();
  const { accounts } = signIns;
  const [inTime, late] = [await signIns.begin("github"), await signIns.begin("github")];
  accounts.clock.now += externalLimits.flowMs - 1;
  const first = await signIns.back("github", signIns.at.github.agree(inTime.location, ann), inTime);
  assert.equal(first.status, 302);
  accounts.clock.now += 1;
  const second = await signIns.back("github", signIns.at.github.agree(late.location, ann), late);
  assert.equal(second.status, 400);
  await accounts.service.sweep();
  assert.deepEqual(accounts.port.rows("_oauth_flows"), []);
  await signIns.begin("github");
  accounts.clock.now += externalLimits.flowMs;
  await signIns.begin("github");
  assert.equal(accounts.port.rows("_oauth_flows").length, 1, "a new one takes the expired away");
});

Deno.test("OA8 the stored data of a sign-in do not suffice to complete it", async () => {
  await using signIns = await startTestSignIns();
  const { state, location } = await signIns.begin("apple");
  const asked = new URL(location).searchParams;
  const stored = JSON.stringify(signIns.accounts.port.rows("_oauth_flows"));
  for (const secret of [state, asked.get("nonce"), asked.get("code_challenge")]) {
    assert.ok(!stored.includes(secret ?? "?"));
  }
});

Deno.test("OA12 only the preset with form responses accepts a form", async () => {
  await using signIns = await startTestSignIns();
  for (const provider of providerNames.filter((name) => name !== "apple")) {
    const started = await signIns.begin(provider);
    const parameters = signIns.at[provider].agree(started.location, ann);
    const answer = await signIns.back(provider, parameters, { ...started, form: true });
    assert.equal(answer.status, 405, provider);
    assert.equal(
      (await signIns.back(provider, parameters, started)).status,
      302,
      "it can still be finished",
    );
  }
  const started = await signIns.begin("apple");
  const byGet = await signIns.back("apple", signIns.at.apple.agree(started.location, ann), {
    ...started,
    form: false,
  });
  assert.equal(byGet.status, 302);
});

Deno.test("OA9 OA12 a provider that is not set up is called back like one that is", async () => {
  await using accounts = await startTestAccounts({ origin: "https://api.example.com" });
  const text = `state=${"x".repeat(43)}&code=c`;
  const headers = { "Content-Type": "application/x-www-form-urlencoded" };
  for (const provider of ["github", "apple", "nobody"]) {
    const path = `/oauth/${provider}/callback`;
    const answer = await accounts.get(`${path}?${text}`);
    assert.equal(answer.status, 400, provider);
    assert.match(answer.headers.get("content-type") ?? "", /^text\/plain/i);
    const byForm = await accounts.post(path, undefined, { text, headers });
    assert.equal(byForm.status, provider === "apple" ? 400 : 405, provider);
  }
});

Deno.test("OA12 asking for the start of a response neither starts nor completes a sign-in", async () => {
  await using signIns = await startTestSignIns();
  const started = await signIns.begin("github");
  const parameters = signIns.at.github.agree(started.location, ann);
  for (const path of ["/oauth/github", `/oauth/github/callback?${parameters}`]) {
    assert.equal(await signIns.accounts.head(path, { headers: { Cookie: started.cookie } }), 405);
  }
  assert.equal(signIns.accounts.port.rows("_oauth_flows").length, 1);
});

Deno.test("OA13 the name in the form is kept, even if later forms have none", async () => {
  await using signIns = await startTestSignIns();
  const signIn = async (user?: string) => {
    const started = await signIns.begin("apple");
    const parameters = signIns.at.apple.agree(started.location, {
      id: "a.1",
      email: "ann@example.com",
      verified: "true",
    });
    if (user !== undefined) parameters.set("user", user);
    assert.equal((await signIns.back("apple", parameters, started)).status, 303);
    return signIns.accounts.port.rows("_users")[0];
  };
  const user = JSON.stringify({ name: { firstName: " Ann ", lastName: "Lee" }, email: "evil@example.com" });
  const first = await signIn(user);
  assert.deepEqual([first?.["name"], first?.["email"]], ["Ann Lee", "ann@example.com"]);
  assert.equal((await signIn())?.["name"], "Ann Lee");
  for (const odd of ["{", "[]", '{"name":7}', JSON.stringify({ name: { firstName: "x".repeat(10_000) } })]) {
    assert.equal((await signIn(odd))?.["name"], "Ann Lee");
  }
});

Deno.test("OA15 the server signs the client secret, caches it, and renews it before it expires", async () => {
  await using signIns = await startTestSignIns();
  const signIn = () => signIns.signIn("apple", ann);
  await signIn();
  await signIn();
  signIns.accounts.clock.now += externalLimits.clientSecretMs / 2 - 1_000;
  await signIn();
  signIns.accounts.clock.now += 1_000;
  await signIn();
  const [first, second, third, fourth] = signIns.at.apple.secrets;
  assert.equal(first, second);
  assert.equal(first, third);
  assert.notEqual(first, fourth);
});

Deno.test("OA16 the chat platform receives requests for identity and address, and an unverified address is ignored", async () => {
  await using signIns = await startTestSignIns();
  const { location } = await signIns.begin("discord");
  assert.equal(new URL(location).searchParams.get("scope"), "identify email");
  for (const verified of [false, undefined]) {
    await signIns.signIn("discord", {
      id: `d-${verified}`,
      email: "ann@example.com",
      ...(verified === false && { verified }),
    });
  }
  const users = signIns.accounts.port.rows("_users");
  assert.deepEqual(users.map((user) => [user["email"], user["emailVerified"]]), [[undefined, false], [
    undefined,
    false,
  ]]);
});

Deno.test("OA11 an error of the provider reaches the app with a code and a description", async (t) => {
  const cases: readonly [string, string, (signIns: Awaited<ReturnType<typeof startTestSignIns>>) => void][] =
    [
      [
        "a profile that is none",
        "provider_error",
        ({ at }) => at.github.overrides.profile = () => Response.json([]),
      ],
      [
        "a profile that is not given",
        "provider_error",
        ({ at }) => at.github.overrides.profile = () => new Response("no", { status: 403 }),
      ],
      ["a code that is refused", "provider_error", ({ at }) => at.github.codes.clear()],
      [
        "an error with status 200",
        "provider_error",
        ({ at }) => at.github.overrides.response = () => Response.json({ error: "bad_verification_code" }),
      ],
      [
        "a token endpoint that is down",
        "provider_unavailable",
        ({ at }) => at.github.overrides.response = () => Promise.reject(new TypeError("no")),
      ],
      [
        "a token endpoint that never answers",
        "provider_unavailable",
        ({ at }) => at.github.overrides.response = () => new Promise(() => {}),
      ],
      [
        "an endless answer",
        "provider_unavailable",
        ({ at }) =>
          at.github.overrides.response = () =>
            new Response(new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(65_536)) }), {
              headers: { "content-type": "application/json" },
            }),
      ],
      [
        "a redirect",
        "provider_unavailable",
        ({ at }) => at.github.overrides.response = () => Response.redirect("http://127.0.0.1/", 302),
      ],
    ];
  for (const [what, code, alter] of cases) {
    await t.step(what, async () => {
      const requestMs = what.includes("never answers") ? SHORT_REQUEST_MS : undefined;
      await using signIns = await startTestSignIns({ requestMs });
      const started = await signIns.begin("github");
      const parameters = signIns.at.github.agree(started.location, ann);
      alter(signIns);
      const fragment = fragmentOf(await signIns.back("github", parameters, started));
      assert.equal(fragment.get("svc_error"), code);
      assert.deepEqual([...fragment.keys()], ["svc_error", "svc_error_description"]);
      assert.ok((fragment.get("svc_error_description") ?? "").length > 10);
      assert.deepEqual(signIns.accounts.port.rows("_users"), []);
      assert.deepEqual(signIns.accounts.port.rows("_oauth_flows"), []);
    });
  }
});

Deno.test("OA11 a refusal at the provider returns access_denied, without the provider's text", async () => {
  await using signIns = await startTestSignIns();
  const { state, cookie } = await signIns.begin("work");
  const parameters = new URLSearchParams({
    state,
    error: "access_denied",
    error_description: "<b>call 555-1234</b>",
  });
  const fragment = fragmentOf(await signIns.back("work", parameters, { cookie }));
  assert.equal(fragment.get("svc_error"), "access_denied");
  assert.ok(!fragment.toString().includes("555"));
  assert.deepEqual(signIns.asked.filter((url) => url.endsWith("/token")), []);
});

Deno.test("OA11 saying no in the words of the preset that answers with a form is the same refusal", async () => {
  await using signIns = await startTestSignIns();
  const { state, cookie } = await signIns.begin("apple");
  const parameters = new URLSearchParams({ state, error: "user_cancelled_authorize" });
  const fragment = fragmentOf(await signIns.back("apple", parameters, { cookie }));
  assert.equal(fragment.get("svc_error"), "access_denied");
});

Deno.test("OA11 an unreachable provider is reported to the app, and no cookie is set", async () => {
  await using signIns = await startTestSignIns();
  Object.defineProperty(signIns.at.work, "issuer", { value: "https://evil.test" });
  const answer = await signIns.accounts.get(`/oauth/work?redirect_to=${encodeURIComponent(appUrl)}`);
  assert.equal(answer.status, 302);
  assert.equal(fragmentOf(answer).get("svc_error"), "provider_unavailable");
  assert.equal(answer.headers.get("set-cookie"), null);
  assert.deepEqual(signIns.accounts.port.rows("_oauth_flows"), []);
});

Deno.test("OA10 with sign-ups disabled only known users can sign in", async () => {
  await using signIns = await startTestSignIns({ signups: false });
  assert.equal((await signIns.signIn("github", ann)).get("svc_error"), "signups_disabled");
  assert.deepEqual(signIns.accounts.port.rows("_users"), []);
  assert.deepEqual(signIns.accounts.port.rows("_identities"), []);
});

Deno.test("OA3 the number of sign-ins that one client can start is limited", async () => {
  await using signIns = await startTestSignIns();
  let limited = null;
  for (let at = 0; at < 200 && limited === null; at++) {
    const answer = await signIns.accounts.get("/oauth/github");
    if (answer.status === 429) limited = answer;
  }
  assert.equal(limited?.body.errorData.code, "rate_limited");
  assert.ok(Number(limited?.headers.get("retry-after")) >= 1);
  assert.equal((await signIns.accounts.get("/oauth/github", { from: "198.51.100.7" })).status, 302);
});

Deno.test("ME9 every return from a provider is counted once, by how it ended", async () => {
  const counted: [string, number][] = [];
  await using signIns = await startTestSignIns({
    onAnswer: (operation, status) => void counted.push([operation, status]),
  });
  const person = { id: "4711", email: "ann@example.com", verified: true };
  await signIns.signIn("github", person);
  const started = await signIns.begin("work");
  const refused = new URLSearchParams({ state: started.state, error: "access_denied" });
  await signIns.back("work", refused, started);
  await signIns.back("work", refused, started);
  const altered = await signIns.begin("work");
  signIns.at.work.overrides = { claims: { nonce: "another" } };
  await signIns.back("work", signIns.at.work.agree(altered.location, person), altered);
  signIns.at.work.overrides = {};
  await signIns.signIn("home", person);
  await signIns.back("nobody", refused, started);
  assert.deepEqual(counted, [
    ["provider_sign_in", 200],
    ["provider_sign_in", 403],
    // The sign-in has ended.
    ["provider_sign_in", 400],
    ["provider_sign_in", 502],
    // The address belongs to another user there.
    ["provider_sign_in", 400],
    // An unknown provider.
    ["provider_sign_in", 400],
  ]);
});

Deno.test("OA17 the client's state value is returned with the result or the refusal", async () => {
  await using signIns = await startTestSignIns();
  const { accounts, at } = signIns;
  const begin = (query: string) =>
    accounts.get(`/oauth/github?redirect_to=${encodeURIComponent(appUrl)}&${query}`);
  for (const agreed of [true, false]) {
    const begun = await begin("app_state=a_-1");
    const location = begun.headers.get("location") ?? "";
    const cookie = begun.headers.get("set-cookie")?.split(";")[0] ?? "";
    const parameters = at.github.agree(location, ann);
    if (!agreed) {
      parameters.delete("code");
      parameters.set("error", "access_denied");
    }
    const fragment = fragmentOf(await signIns.back("github", parameters, { cookie }));
    assert.equal(fragment.get("svc_error"), agreed ? null : "access_denied");
    assert.equal(fragment.has("svc_sign_in_token"), agreed);
    assert.equal(fragment.has("svc_access_token"), false);
    assert.equal(fragment.get("svc_state"), "a_-1");
  }
  for (const state of ["", "a b", "a%26svc_access_token%3Dx", "x".repeat(129)]) {
    const { status, body } = await begin(`app_state=${state}`);
    assert.deepEqual([status, body.errorData.code], [400, "bad_request"], state);
  }
});

Deno.test("OA18 a sign-in with app_state is finished with its token, once and within five minutes", async () => {
  const counted: number[] = [];
  await using signIns = await startTestSignIns({ onAnswer: (_, status) => void counted.push(status) });
  const { accounts, at } = signIns;
  const tokenOf = async () => {
    const path = `/oauth/github?redirect_to=${encodeURIComponent(appUrl)}&app_state=mine`;
    const { headers } = await accounts.get(path);
    const cookie = headers.get("set-cookie")?.split(";")[0] ?? "";
    const fragment = fragmentOf(
      await signIns.back("github", at.github.agree(headers.get("location") ?? "", ann), { cookie }),
    );
    return fragment.get("svc_sign_in_token");
  };
  const verify = (token: string | null) => accounts.post("/oauth/verify", { token });
  const [token, late] = [await tokenOf(), await tokenOf()];
  assert.deepEqual(accounts.port.rows("_users"), [], "no one signs up before");
  const answers = await Promise.all([verify(token), verify(token)]);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400]);
  const { body } = answers.find(({ status }) => status === 200) ?? assert.fail();
  assert.equal((await accounts.identityOf(body.accessToken)).userId, body.userId);
  accounts.clock.now += externalLimits.linkMs;
  for (const old of [token, late, "x"]) {
    const { status, body: refused } = await verify(old);
    assert.deepEqual([status, refused.errorData.code], [400, "invalid_code"]);
  }
  assert.equal((await verify("x".repeat(101))).status, 400);
  // Not the callbacks, whose sign-ins were not finished yet.
  assert.deepEqual(counted.sort(), [200, 400, 400, 400, 400, 400]);
});

Deno.test("OA18 a refused sign-in with app_state is refused when its token is used", async () => {
  await using signIns = await startTestSignIns({ signups: false });
  const { accounts, at } = signIns;
  const { headers } = await accounts.get(
    `/oauth/work?redirect_to=${encodeURIComponent(appUrl)}&app_state=mine`,
  );
  const cookie = headers.get("set-cookie")?.split(";")[0] ?? "";
  const back = await signIns.back("work", at.work.agree(headers.get("location") ?? "", ann), { cookie });
  const token = fragmentOf(back).get("svc_sign_in_token");
  const { status, body } = await accounts.post("/oauth/verify", { token });
  assert.deepEqual([status, body.errorData.code], [403, "signups_disabled"]);
});
