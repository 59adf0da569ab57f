/** The rows of a list: changes only what differs, so that focus and half-typed text stay where they are. */

const dueFormat = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short" });

export class ItemList {
  #list;
  #on;
  /** Rows by item id. */
  #rows = new Map();

  /** `on.toggle(item, done)`, `on.edit(item, text)` and `on.remove(item)` are called when the user asks for it. */
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
    const remove = Object.assign(document.createElement("button"), { type: "button", textContent: "×" });
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
    remove.addEventListener("click", () => this.#on.remove(row.item));
    row.append(box, text, due, remove);
    return row;
  }

  #update(row, item) {
    if (row.item === item) return;
    row.item = item;
    const [box, text, due, remove] = row.children;
    const done = item.status.kind === "done";
    row.className = done ? "item done" : "item";
    box.checked = done;
    box.setAttribute("aria-label", `Done: ${item.text}`);
    remove.setAttribute("aria-label", `Delete: ${item.text}`);
    if (document.activeElement !== text) text.value = item.text;
    due.hidden = item.due === undefined;
    if (item.due === undefined) return;
    due.dateTime = item.due;
    due.textContent = dueFormat.format(new Date(`${item.due}T12:00`));
    due.classList.toggle("late", !done && item.due < new Date().toLocaleDateString("sv"));
  }
}
