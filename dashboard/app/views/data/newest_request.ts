/**
 * Asks for what is looked at: one request is under way at most, and one waits, which is the newest. When an answer came too
 * late, because what is looked at has moved on, the next request is made when that has stayed for a moment: what is only
 * passed costs the server nothing.
 */

/** Longer than a frame, shorter than a person notices. */
const STAY_MS = 40;

export class NewestRequest<Wanted> {
  /** Gives whether the answer was of use. */
  readonly #run: (wanted: Wanted) => Promise<boolean>;
  #underWay = false;
  #waiting: { readonly wanted: Wanted } | null = null;
  #late = false;
  #stay: ReturnType<typeof setTimeout> | undefined;

  constructor(run: (wanted: Wanted) => Promise<boolean>) {
    this.#run = run;
  }

  /** Takes the place of what waits. */
  ask(wanted: Wanted): void {
    this.drop();
    this.#waiting = { wanted };
    if (this.#underWay) return;
    if (this.#late) this.#stay = setTimeout(() => void this.#next(), STAY_MS);
    else void this.#next();
  }

  /** What waits is not wanted any more. */
  drop(): void {
    clearTimeout(this.#stay);
    this.#waiting = null;
  }

  async #next(): Promise<void> {
    const next = this.#waiting;
    if (next === null) return;
    this.#waiting = null;
    this.#underWay = true;
    // What fails is asked for again when something else is looked at.
    const used = await this.#run(next.wanted).catch(() => false);
    this.#underWay = false;
    this.#late = !used;
    const newer = this.#waiting as typeof next | null;
    if (newer !== null) this.ask(newer.wanted);
  }
}
