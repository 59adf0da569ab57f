/** The list of messages: changes only what differs, keeps the reader's place, groups what one person says in a row. */

/** Messages of one person closer than this stand under one name, in milliseconds. */
const GROUP_MS = 5 * 60 * 1000;
/** The reader follows new messages when this close to the end, in pixels. */
const FOLLOW_PX = 80;

const timeFormat = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const dateFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "short" });

export class MessageList {
  /** Name of the person at this page: their own messages are marked. */
  owner = "";
  #list;
  #scroller;
  #empty;
  #newer;
  /** List items by message id. */
  #items = new Map();
  #following = true;
  #fresh = true;

  constructor({ list, scroller, empty, newer }) {
    this.#list = list;
    this.#scroller = scroller;
    this.#empty = empty;
    this.#newer = newer;
    scroller.addEventListener("scroll", () => {
      const below = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
      this.#following = below < FOLLOW_PX;
      if (this.#following) newer.hidden = true;
    }, { passive: true });
    new ResizeObserver(() => this.#following && this.#toEnd()).observe(scroller);
    newer.addEventListener("click", () => this.follow());
  }

  /** Empties the list for another channel. */
  clear() {
    this.#items.clear();
    this.#list.replaceChildren();
    this.#empty.hidden = true;
    this.#newer.hidden = true;
    this.#following = true;
    this.#fresh = true;
  }

  /** Goes to the newest message and stays with the newest. */
  follow() {
    this.#following = true;
    this.#newer.hidden = true;
    this.#toEnd();
  }

  /** Shows messages, oldest first. */
  show(messages) {
    const before = this.#items;
    const leaving = new Map(before);
    for (const { _id } of messages) leaving.delete(_id);
    this.#items = new Map();
    let added = false;
    let previous = null;
    let place = this.#list.firstElementChild;
    for (const message of messages) {
      let item = before.get(message._id) ?? adopt(leaving, message);
      if (item === undefined) {
        item = this.#create(message);
        added = true;
      }
      this.#update(item, { message, previous });
      this.#items.set(message._id, item);
      if (item === place) place = place.nextElementSibling;
      else this.#list.insertBefore(item, place);
      previous = message;
    }
    for (const item of leaving.values()) item.remove();
    this.#empty.hidden = messages.length > 0;
    if (this.#following) this.#toEnd();
    else if (added) this.#newer.hidden = false;
    this.#fresh = false;
  }

  #create(message) {
    const item = document.createElement("li");
    item.className = this.#fresh ? "message" : "message arriving";
    const avatar = element("span", "avatar");
    avatar.setAttribute("aria-hidden", "true");
    paintAvatar(avatar, message.name);
    const time = element("time", "time");
    const sent = new Date(message._creationTime);
    time.dateTime = sent.toISOString();
    time.title = dateFormat.format(sent);
    time.textContent = timeFormat.format(sent);
    const head = element("p", "message-head");
    head.append(
      element("strong", "name", message.name),
      " ",
      time,
      " ",
      element("span", "sending", "sending…"),
    );
    item.append(avatar, head, element("p", "message-body", message.body));
    return item;
  }

  #update(item, { message, previous }) {
    const continued = previous !== null && previous.name === message.name &&
      message._creationTime - previous._creationTime < GROUP_MS;
    item.classList.toggle("continued", continued);
    item.classList.toggle("pending", message.pending === true);
    item.classList.toggle("mine", message.name === this.owner);
    item.message = message;
  }

  #toEnd() {
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }
}

/** Draws a person's letter on a colour of their own. */
export function paintAvatar(avatar, name) {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + letter.codePointAt(0)) % 360;
  avatar.style.setProperty("--hue", hash);
  avatar.textContent = [...name][0]?.toUpperCase() ?? "?";
}

/** The item of a pending message that `message` is the real form of: it stays where it is instead of coming anew. */
function adopt(leaving, message) {
  for (const [id, item] of leaving) {
    const { pending, name, body } = item.message;
    if (!pending || name !== message.name || body !== message.body) continue;
    leaving.delete(id);
    return item;
  }
  return undefined;
}

function element(tag, className, text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}
