/** Sharing a list: the link that lets others in, joining by it, and ending it. */

const JOIN = "#join=";

/** The invitation in the address of the page; `null` without one. */
export function invitation() {
  return location.hash.startsWith(JOIN) ? decodeURIComponent(location.hash.slice(JOIN.length)) : null;
}

/** Shows the link to a list in a dialog. `attempt` runs calls and shows what goes wrong. */
export async function shareList(dialog, { client, list, attempt }) {
  const invite = await attempt(client.mutation("sharing:invite", { list }));
  if (invite === undefined) return;
  const link = dialog.querySelector("input");
  link.value = `${location.origin}${location.pathname}${JOIN}${encodeURIComponent(invite)}`;
  const copy = dialog.querySelector("[data-act=copy]");
  copy.textContent = "Copy link";
  copy.onclick = async () => {
    link.select();
    // Pages that were not loaded over TLS have no clipboard; the link is selected then.
    await navigator.clipboard?.writeText(link.value).then(() => copy.textContent = "Copied", () => {});
  };
  dialog.querySelector("[data-act=stop]").onclick = async () => {
    await attempt(client.mutation("sharing:stop", { list }));
    dialog.close();
  };
  dialog.querySelector("[data-act=close]").onclick = () => dialog.close();
  dialog.showModal();
  link.select();
}
