/** Shows a file in full: pictures over the page, all others as a download. */
import { isPicture } from "./item_files.js";

/** `link(file)` resolves to an address of the contents. */
export async function openFile(dialog, file, link) {
  const address = await link(file);
  if (address === null) return;
  if (!isPicture(file)) {
    Object.assign(document.createElement("a"), { href: `${address}&download=1`, download: file.name })
      .click();
    return;
  }
  const [picture, caption] = [dialog.querySelector("img"), dialog.querySelector("figcaption")];
  picture.src = address;
  picture.alt = file.name;
  caption.textContent = file.name;
  dialog.showModal();
  dialog.onclick = () => dialog.close();
  dialog.onclose = () => picture.removeAttribute("src");
}
