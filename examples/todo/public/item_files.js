/** The files of one item: thumbnails of pictures, names of all others, and uploads in progress. */

const PICTURES = new Set(["image/png", "image/jpeg", "image/webp", "image/gif"]);
const units = ["byte", "kilobyte", "megabyte", "gigabyte"];

export class ItemFiles {
  /** To be put into the item's row. */
  element = make("ul", { className: "files" });
  #on;
  /** Entries by attachment id. */
  #entries = new Map();

  /**
   * `on.link(attachment)` resolves to an address of the contents that works for some minutes; `on.open(file)` and
   * `on.remove(file)` are called when the user asks for it.
   */
  constructor(on) {
    this.#on = on;
    this.element.hidden = true;
  }

  show(files) {
    const before = this.#entries;
    this.#entries = new Map(files.map((file) => [file._id, before.get(file._id) ?? this.#entry(file)]));
    for (const [id, entry] of before) if (!this.#entries.has(id)) entry.remove();
    // Uploads stay at the end.
    const firstUpload = this.element.querySelector(".uploading");
    for (const entry of this.#entries.values()) {
      if (!entry.isConnected || entry.parentNode !== this.element) {
        this.element.insertBefore(entry, firstUpload);
      }
    }
    this.#hideIfEmpty();
  }

  /** Shows an upload until it is over: `run` gets `onProgress(bytes)` and a signal, and rejects when it fails. */
  async upload(file, run) {
    const controller = new AbortController();
    const bar = make("progress", { max: Math.max(file.size, 1), value: 0 });
    bar.setAttribute("aria-label", `Uploading ${file.name}`);
    const stop = make("button", { type: "button", textContent: "×", onclick: () => controller.abort() });
    stop.setAttribute("aria-label", `Stop uploading ${file.name}`);
    const facts = make("span", { className: "facts" });
    facts.append(make("span", { className: "name", textContent: file.name }), bar);
    const entry = make("li", { className: "file uploading" });
    entry.append(facts, stop);
    this.element.append(entry);
    this.#hideIfEmpty();
    try {
      await run({ onProgress: (bytes) => bar.value = bytes, signal: controller.signal });
    } catch (error) {
      if (!controller.signal.aborted) {
        bar.replaceWith(make("span", { className: "problem", textContent: error.message }));
        await new Promise((resolve) => stop.onclick = resolve);
      }
    }
    entry.remove();
    this.#hideIfEmpty();
  }

  #entry(file) {
    const entry = make("li", { className: "file" });
    const open = make("button", { type: "button", className: "open", onclick: () => this.#on.open(file) });
    open.setAttribute("aria-label", `Open ${file.name}`);
    const remove = make("button", { type: "button", textContent: "×", onclick: () => this.#on.remove(file) });
    remove.setAttribute("aria-label", `Delete ${file.name}`);
    if (isPicture(file)) this.#showPicture(open, file);
    else showFacts(open, file);
    entry.append(open, remove);
    return entry;
  }

  async #showPicture(open, file) {
    const picture = make("img", { alt: file.name, width: 72, height: 72, title: file.name });
    open.classList.add("picture");
    open.append(picture);
    // A file may say that it is a picture and be none.
    picture.onerror = () => {
      open.classList.remove("picture");
      picture.remove();
      showFacts(open, file);
    };
    const address = await this.#on.link(file).catch(() => null);
    if (address === null) picture.onerror();
    else picture.src = `${address}&thumb=144x144&fit=cover`;
  }

  #hideIfEmpty() {
    this.element.hidden = this.element.children.length === 0;
  }
}

/** Whether a browser shows a file as a picture, and the server makes thumbnails of it. */
export function isPicture({ contentType }) {
  return PICTURES.has(contentType);
}

function showFacts(button, { name, size }) {
  const facts = make("span", { className: "facts" });
  facts.append(
    make("span", { className: "name", textContent: name }),
    make("span", { className: "size", textContent: sizeText(size) }),
  );
  button.append(facts);
}

function sizeText(bytes) {
  const step = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(bytes, 1)) / 3));
  const format = {
    style: "unit",
    unit: units[step],
    unitDisplay: "short",
    maximumFractionDigits: step > 1 ? 1 : 0,
  };
  return new Intl.NumberFormat(undefined, format).format(bytes / 1_000 ** step);
}

function make(tag, properties) {
  return Object.assign(document.createElement(tag), properties);
}
