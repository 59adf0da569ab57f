import assert from "node:assert/strict";
import { type Mail, type Mailer, MailError } from "../../../mod/auth/mail/mailer.ts";
import { Outbox } from "../../../mod/auth/mail/outbox.ts";
import { authLimits } from "../../../mod/auth/limits.ts";

const mail = (to: string): Mail => ({ to, subject: "s", text: "t", html: "h" });

/** An outbox whose clock, timers and mail server are controlled by the test. */
function setUp(answer: (mail: Mail) => Promise<void>) {
  const clock = { now: 0 };
  const timers = new Set<{ callback: () => void; at: number }>();
  const sent: string[] = [];
  const logged: string[] = [];
  const mailer: Mailer = {
    send(mail) {
      sent.push(mail.to);
      return answer(mail);
    },
    [Symbol.dispose]: () => {},
  };
  const outbox = new Outbox({
    mailer,
    log: (level, message) => logged.push(`${level} ${message}`),
    now: () => clock.now,
    schedule(callback, delayMs) {
      const timer = { callback, at: clock.now + delayMs };
      timers.add(timer);
      return () => timers.delete(timer);
    },
  });
  async function advance(ms: number): Promise<void> {
    clock.now += ms;
    for (const timer of [...timers].filter((timer) => timer.at <= clock.now)) {
      timers.delete(timer);
      timer.callback();
    }
    await outbox.settled();
  }
  return { outbox, sent, logged, timers, advance };
}

Deno.test("a failed email is retried with growing delays until it is sent", async () => {
  let failures = 3;
  const { outbox, sent, logged, advance } = setUp(() =>
    failures-- > 0 ? Promise.reject(new Error("down")) : Promise.resolve()
  );
  outbox.post(mail("a"), { usefulUntil: 60_000 });
  await outbox.settled();
  for (const [pauseMs, tries] of [[1_999, 1], [1, 2], [3_999, 2], [1, 3], [8_000, 4], [60_000, 4]] as const) {
    await advance(pauseMs);
    assert.equal(sent.length, tries);
  }
  assert.equal(outbox.size, 0);
  assert.deepEqual(logged, Array(3).fill("warn Mail failed, will be retried"));
  await outbox[Symbol.asyncDispose]();
});

Deno.test("an email is dropped when its code has expired or it was refused permanently", async () => {
  const down = setUp(() => Promise.reject(new Error("down")));
  down.outbox.post(mail("a"), { usefulUntil: 5_000 });
  await down.outbox.settled();
  await down.advance(2_000);
  await down.advance(4_000);
  assert.equal(down.sent.length, 2);
  assert.equal(down.outbox.size, 0);
  assert.equal(down.logged.at(-1), "error Mail failed permanently");
  const refusing = setUp(() => Promise.reject(new MailError("no such user", { permanent: true })));
  refusing.outbox.post(mail("a"), { usefulUntil: 60_000 });
  await refusing.outbox.settled();
  assert.deepEqual(refusing.logged, ["error Mail failed permanently"]);
  assert.equal(refusing.timers.size, 0);
});

Deno.test("a hanging mail server delays no caller, and the queue stays bounded", async () => {
  const hung = Promise.withResolvers<void>();
  const { outbox, sent, logged } = setUp(() => hung.promise);
  const taken = Array.from(
    { length: authLimits.mailsQueuedMax + 5 },
    (_, i) => outbox.post(mail(`${i}`), { usefulUntil: 1_000_000 }),
  );
  assert.equal(taken.filter(Boolean).length, authLimits.mailsQueuedMax);
  assert.equal(sent.length, authLimits.mailsAtOnceMax);
  assert.equal(logged.length, 5);
  hung.resolve();
  await outbox.settled();
  assert.equal(sent.length, authLimits.mailsQueuedMax);
});

Deno.test("at shutdown queued emails are dropped with a log line, and no timer remains", async () => {
  const { outbox, logged, timers } = setUp(() => Promise.reject(new Error("down")));
  outbox.post(mail("a"), { usefulUntil: 1_000_000 });
  await outbox.settled();
  assert.equal(timers.size, 1);
  await outbox[Symbol.asyncDispose]();
  assert.equal(timers.size, 0);
  assert.equal(logged.at(-1), "warn Mail not sent before shutdown");
  assert.equal(outbox.post(mail("b"), { usefulUntil: 1_000_000 }), false);
});
