/** Decides when sockets advance: all changes of one task advance a socket once, after that task. */
import type { ProgressingSocket, SocketProgress } from "./socket_progress.ts";

export interface AdvancingSocket extends ProgressingSocket {
  readonly mutationsInFlight: number;
  /** Sends the Transitions that are ready. */
  advance(): void;
}

export interface AdvanceScheduleOptions {
  /** Runs a function in a later task. */
  readonly later: (run: () => void) => void;
  /** Called after sockets were advanced. */
  readonly onAdvanced: () => void;
  readonly progress: SocketProgress;
}

/** Sockets without mutations in flight advance in a microtask. Others advance in a later task, behind their responses. */
export class AdvanceSchedule {
  readonly #options: AdvanceScheduleOptions;
  readonly #due = new Set<AdvancingSocket>();
  #scheduled = false;
  #lateScheduled = false;

  constructor(options: AdvanceScheduleOptions) {
    this.#options = options;
  }

  get busy(): boolean {
    return this.#scheduled || this.#due.size > 0;
  }

  add(socket: AdvancingSocket): void {
    this.#due.add(socket);
    this.schedule();
  }

  remove(socket: AdvancingSocket): void {
    this.#due.delete(socket);
    this.#options.progress.remove(socket);
  }

  /** Schedules one flush for all changes of this task. */
  schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => this.#flush());
  }

  /** Clients expect a MutationResponse before the Transition with its writes. */
  #flush(): void {
    this.#scheduled = false;
    this.#advance(({ mutationsInFlight }) => mutationsInFlight === 0);
    if (this.#due.size === 0 || this.#lateScheduled) return;
    this.#lateScheduled = true;
    this.#options.later(() => {
      this.#lateScheduled = false;
      this.#advance(() => true);
    });
  }

  #advance(isDue: (socket: AdvancingSocket) => boolean): void {
    const { progress, onAdvanced } = this.#options;
    for (const socket of this.#due) {
      if (!isDue(socket)) continue;
      this.#due.delete(socket);
      socket.advance();
      progress.update(socket);
    }
    onAdvanced();
  }
}
