/** The built-in mail templates. */
import type { CodeKind } from "../tokens/codes.ts";

/** Kinds of mail. `change` goes to the new address when a user changes it, `device` to an account after a sign-in. */
export type MailKind = CodeKind | "change" | "device";

/** The template strings of one kind of mail, with `{{name}}` placeholders. */
export interface Template {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

interface Wording {
  readonly subject: string;
  readonly reason: string;
  readonly button: string;
  /** Advice if the recipient did not request the mail. */
  readonly unasked: string;
}

export const builtInTemplates: Record<MailKind, Template> = {
  verify: template({
    subject: "Confirm your email address",
    reason: "Confirm that {{email}} is your email address to finish setting up your account with {{app}}.",
    button: "Confirm address",
    unasked: "If you did not create an account, ignore this mail.",
  }),
  reset: template({
    subject: "Reset your password",
    reason: "We received a request to reset the password of your {{app}} account.",
    button: "Set a new password",
    unasked: "If you did not request this, ignore this mail. Your password stays the same.",
  }),
  magic: template({
    subject: "Sign in to {{app}}",
    reason: "Use the button or the code below to sign in to {{app}}.",
    button: "Sign in",
    unasked: "If you did not request this, ignore this mail and do not share the code.",
  }),
  change: template({
    subject: "Confirm your new email address",
    reason: "Confirm {{email}} as the new email address of your {{app}} account.",
    button: "Confirm new address",
    unasked: "If you did not request this, ignore this mail. Nothing changes.",
  }),
  device: deviceTemplate(),
};

function deviceTemplate(): Template {
  const subject = "New sign-in to {{app}}";
  const paragraphs = [
    "Someone signed in to your {{app}} account from a device that you have not used before:",
    "{{device}}, {{time}}",
    "If it was you, ignore this mail. If not, change your password and sign out this device in the settings of " +
    "your account.",
  ];
  return {
    subject,
    text: `${paragraphs.join("\n\n")}\n`,
    html: page(subject, paragraphs.map((text) => `<p>${text}</p>`)),
  };
}

function template({ subject, reason, button, unasked }: Wording): Template {
  const text = `${reason}

${button}: {{link}}

Or enter this code: {{code}}

Both work once and for {{validFor}}. ${unasked}
`;
  const html = page(subject, [
    `<p style="margin:0 0 24px">${reason}</p>`,
    `<p style="margin:0 0 24px"><a href="{{link}}"
style="display:inline-block;padding:12px 20px;border-radius:8px;background:#18181b;color:#fff;text-decoration:none"
>${button}</a></p>`,
    '<p style="margin:0 0 8px">Or enter this code:</p>',
    '<p style="margin:0 0 24px;font:600 28px/1.2 ui-monospace,monospace;letter-spacing:4px">{{code}}</p>',
    `<p style="margin:0;color:#52525b;font-size:14px">Both work once and for {{validFor}}. ${unasked}</p>`,
  ]);
  return { subject, text, html };
}

/** The HTML of a mail. */
function page(subject: string, paragraphs: readonly string[]): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${subject}</title></head>
<body style="margin:0;padding:32px 16px;background:#f4f4f5;color:#18181b;font:16px/1.5 system-ui,sans-serif">
<div style="max-width:480px;margin:0 auto;padding:32px;background:#fff;border-radius:12px">
${paragraphs.join("\n")}
</div>
</body>
</html>
`;
}
