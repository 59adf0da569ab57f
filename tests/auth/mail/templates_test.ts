import assert from "node:assert/strict";
import { join } from "node:path";
import { loadTemplates, renderMail, TemplateError } from "../../../mod/auth/mail/templates.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import type { MailKind } from "../../../mod/auth/mail/built_in_templates.ts";

const values = {
  app: "My <App>",
  email: "a@example.com",
  link: "https://app.example.com/?a=1&b=2#svc_magic_token=x",
  code: "012345",
  validFor: "15 minutes",
};

async function withFiles(
  files: Record<string, string>,
  run: (folder: string) => Promise<void>,
): Promise<void> {
  await using tempFolder = new TempFolder();
  const folder = tempFolder.path;
  for (const [name, text] of Object.entries(files)) await Deno.writeTextFile(join(folder, name), text);
  await run(folder);
}

for (const kind of ["verify", "reset", "magic", "change"] satisfies MailKind[]) {
  Deno.test(`the built-in email "${kind}" contains link and code in text and HTML and no placeholder`, async () => {
    const mail = renderMail((await loadTemplates(null))[kind], values);
    assert.equal(mail.to, values.email);
    assert.ok(mail.text.includes(values.link) && mail.text.includes(values.code));
    assert.ok(mail.html.includes('href="https://app.example.com/?a=1&amp;b=2#svc_magic_token=x"'));
    assert.ok(mail.html.includes(values.code) && !mail.html.includes("<App>"));
    assert.ok(![mail.subject, mail.text, mail.html].join("").includes("{{"));
  });
}

Deno.test('ND4 the built-in email "device" names device and time, and its template may use no code', async () => {
  const device = { app: "My <App>", email: "a@example.com", device: "Firefox on <x>", time: "Sat, 28 Nov" };
  const mail = renderMail((await loadTemplates(null)).device, device);
  assert.equal(mail.subject, "New sign-in to My <App>");
  assert.ok(mail.text.includes("Firefox on <x>, Sat, 28 Nov"));
  assert.ok(mail.html.includes("Firefox on &lt;x&gt;, Sat, 28 Nov") && !mail.html.includes("<App>"));
  assert.ok(![mail.text, mail.html].join("").includes("{{"));
  const own = await loadTemplates(null, { device: "Subject: {{app}}\n\n{{device}} at {{time}}" });
  assert.equal(renderMail(own.device, device).text, "Firefox on <x> at Sat, 28 Nov");
  await assert.rejects(
    loadTemplates(null, { device: "Subject: x\n\n{{code}}" }),
    /unknown placeholder \{\{code\}\} in the text, expected app, email, device, time/,
  );
});

Deno.test("a file replaces the text or the HTML of an email and keeps the other", () =>
  withFiles(
    { "reset.txt": "Subject: New password for {{app}}\n\nHi {{ email }}: {{link}}\n" },
    async (folder) => {
      const templates = await loadTemplates(folder);
      const mail = renderMail(templates.reset, values);
      assert.equal(mail.subject, "New password for My <App>");
      assert.equal(mail.text, `Hi a@example.com: ${values.link}\n`);
      assert.ok(mail.html.startsWith("<!doctype html>"));
      assert.deepEqual(templates.verify, (await loadTemplates(null)).verify);
    },
  ));

Deno.test("a value cannot add a line to the subject or a placeholder to the text", async () => {
  const { magic } = await loadTemplates(null);
  const mail = renderMail({ ...magic, subject: "{{app}}" }, {
    ...values,
    app: "A\r\nBcc: b@example.com {{code}}",
  });
  assert.equal(mail.subject, "A Bcc: b@example.com {{code}}");
});

for (
  const [name, files] of [
    ["a text without subject", { "verify.txt": "Hello {{link}}" }],
    ["an unknown placeholder", { "verify.txt": "Subject: x\n\n{{link}} {{user}}" }],
    ["neither link nor code", { "magic.html": "<p>Hello</p>" }],
  ] as const
) {
  Deno.test(`email templates with ${name} prevent the start`, () =>
    withFiles(files, async (folder) => {
      await assert.rejects(loadTemplates(folder), TemplateError);
    }));
}
