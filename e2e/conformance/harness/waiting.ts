/** Notifies its listeners when a state that a wait depends on may have changed. */
export class ChangeNotifier {
  readonly #listeners = new Set<() => void>();

  readonly notify = (): void => {
    for (const listener of this.#listeners) listener();
  };

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

export interface Wait {
  readonly changes: ChangeNotifier;
  /** Describes the state for the error message. */
  readonly describe: () => string;
  readonly timeout?: number;
}

/**
 * Wait until a condition holds; besides `expectUnchanged` the only function that waits.
 *
 * The condition is evaluated after the microtasks that follow a change, so that a request which the
 * change triggers has started by then.
 */
export function waitFor(condition: () => boolean, name: string, wait: Wait): Promise<void> {
  return new Promise((resolve, reject) => {
    let isScheduled = false;
    const end = (): void => {
      unsubscribe();
      clearTimeout(timer);
    };
    const check = (): void => {
      isScheduled = false;
      try {
        if (!condition()) return;
      } catch (fault) {
        end();
        reject(fault);
        return;
      }
      end();
      resolve();
    };
    const schedule = (): void => {
      if (isScheduled) return;
      isScheduled = true;
      setImmediate(check);
    };
    const unsubscribe = wait.changes.subscribe(schedule);
    // Only a defect reaches it, not a busy machine; a story ends later.
    const milliseconds = wait.timeout ?? 240_000;
    const timer = setTimeout(() => {
      end();
      reject(new Error(`${milliseconds} ms have passed without ${name}\n${wait.describe()}`));
    }, milliseconds);
    schedule();
  });
}

/** Wait and check that nothing happens: the result of `probe` must not change. */
export async function expectUnchanged(milliseconds: number, probe: () => string): Promise<void> {
  const before = probe();
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
  const after = probe();
  if (after !== before) {
    throw new Error(`the state changed while idle\nbefore: ${before}\nafter:  ${after}`);
  }
}
