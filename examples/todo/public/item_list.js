/** The rows of a list: changes only what differs, so that focus and half-typed text stay where they are. */
import { ItemFiles } from "./item_files.js";

const dueFormat = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short" });

/** A paper clip. */
const CLIP =
  `<svg viewBox="0 0 24 24" width="18" height="18" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d="M20 11.5l-8.3 8.3a5.2 5.2 0 0 1-7.4-7.4l8.6-8.6a3.5 3.5 0 0 1 5 5l-8.5 8.5a1.8 1.8 0 0 1-2.5-2.5l7.7-7.7"/></svg>`;

export class ItemList {
  #list;
  #on;
  /** Rows by item id. */
  #rows = new Map();

  /**
   * `on.toggle(item, done)`, `on.edit(item, text)` and `on.remove(item)` are called when the user asks for it, and
   * `on.upload(item, file, options)` for each file to attach; it resolves when that is done. `on.files` is for
   * {@link ItemFiles}.
   */
  constructor(list, on) {
    this.#list = list;
    this.#on = on;
  }

  clear() {
    this.#rows.clear();
    this.#list.replaceChildren();
  }

  show(items) {
    const before = this.#rows;
    this.#rows = new Map();
    let place = this.#list.firstElementChild;
    const gone = new Set(before.values());
    for (const item of items) {
      const row = before.get(item._id) ?? this.#create();
      gone.delete(row);
      this.#update(row, item);
      this.#rows.set(item._id, row);
      if (row === place) place = place.nextElementSibling;
      else this.#list.insertBefore(row, place);
    }
    for (const row of gone) row.remove();
  }

  #create() {
    const row = document.createElement("li");
    const box = Object.assign(document.createElement("input"), { type: "checkbox" });
    const text = Object.assign(document.createElement("input"), { className: "text", maxLength: 500 });
    text.setAttribute("aria-label", "Text");
    const due = document.createElement("time");
    const chosen = Object.assign(document.createElement("input"), {
      type: "file",
      multiple: true,
      hidden: true,
    });
    const attach = Object.assign(document.createElement("button"), { type: "button", className: "attach" });
    attach.innerHTML = CLIP;
    const remove = Object.assign(document.createElement("button"), { type: "button", textContent: "×" });
    const files = new ItemFiles(this.#on.files);
    box.addEventListener("change", () => this.#on.toggle(row.item, box.checked));
    text.addEventListener("keydown", (event) => {
      if (event.key === "Escape") text.value = row.item.text;
      if (event.key === "Escape" || (event.key === "Enter" && !event.isComposing)) text.blur();
    });
    text.addEventListener("blur", () => {
      const changed = text.value.trim();
      if (changed === "" || changed === row.item.text) text.value = row.item.text;
      else this.#on.edit(row.item, changed);
    });
    const upload = (list) => {
      const { item } = row;
      for (const file of list) files.upload(file, (options) => this.#on.upload(item, file, options));
    };
    attach.addEventListener("click", () => chosen.click());
    chosen.addEventListener("change", () => {
      upload([...chosen.files]);
      chosen.value = "";
    });
    row.addEventListener("dragover", (event) => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      row.classList.add("target");
    });
    row.addEventListener("dragleave", () => row.classList.remove("target"));
    row.addEventListener("drop", (event) => {
      event.preventDefault();
      row.classList.remove("target");
      upload([...event.dataTransfer.files]);
    });
    remove.addEventListener("click", () => this.#on.remove(row.item));
    const line = Object.assign(document.createElement("div"), { className: "line" });
    line.append(box, text, due, chosen, attach, remove);
    row.append(line, files.element);
    row.parts = { box, text, due, chosen, attach, remove, files };
    return row;
  }

  #update(row, item) {
    if (row.item === item) return;
    row.item = item;
    const { box, text, due, chosen, attach, remove, files } = row.parts;
    const done = item.status.kind === "done";
    row.className = done ? "item done" : "item";
    box.checked = done;
    box.setAttribute("aria-label", `Done: ${item.text}`);
    chosen.setAttribute("aria-label", `Files for: ${item.text}`);
    attach.setAttribute("aria-label", `Attach files to: ${item.text}`);
    attach.title = "Attach files";
    remove.setAttribute("aria-label", `Delete: ${item.text}`);
    files.element.setAttribute("aria-label", `Files of: ${item.text}`);
    files.show(item.files);
    if (document.activeElement !== text) text.value = item.text;
    due.hidden = item.due === undefined;
    if (item.due === undefined) return;
    due.dateTime = item.due;
    due.textContent = dueFormat.format(new Date(`${item.due}T12:00`));
    due.classList.toggle("late", !done && item.due < new Date().toLocaleDateString("sv"));
  }
}
