/** Rung whenever something that a wait may look at has changed. */
export class Bell {
  readonly #listeners = new Set<() => void>();

  readonly ring = (): void => {
    for (const listener of this.#listeners) listener();
  };

  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

export interface Wait {
  readonly bell: Bell;
  /** The state as it should stand in the error. */
  readonly describe: () => string;
  readonly timeout?: number;
}

/**
 * Wait until a condition holds; the only waiting there is besides `staysQuiet`.
 *
 * The condition is looked at after the microtasks that follow a change, so a request that a change
 * sets off has begun before the condition can hold.
 */
export function waitFor(condition: () => boolean, what: string, wait: Wait): Promise<void> {
  return new Promise((resolve, reject) => {
    let asked = false;
    const end = (): void => {
      silence();
      clearTimeout(timer);
    };
    const look = (): void => {
      asked = false;
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
    const ask = (): void => {
      if (asked) return;
      asked = true;
      setImmediate(look);
    };
    const silence = wait.bell.listen(ask);
    const milliseconds = wait.timeout ?? 40_000;
    const timer = setTimeout(() => {
      end();
      reject(new Error(`${milliseconds} ms have passed without ${what}\n${wait.describe()}`));
    }, milliseconds);
    ask();
  });
}

/** Wait to see that nothing happens: what `probe` tells must be the same afterwards. */
export async function staysQuiet(milliseconds: number, probe: () => string): Promise<void> {
  const before = probe();
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
  const after = probe();
  if (after !== before) {
    throw new Error(`something happened while idle\nbefore: ${before}\nafter:  ${after}`);
  }
}
