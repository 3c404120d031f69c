/** What a person adds to a yes. */
export interface Staged {
  /** Arguments to run the call with, in place of those the model has chosen (A7). */
  readonly edit?: Readonly<Record<string, unknown>>;
  /** Approve later calls of the same tool in this chat without asking (A8). */
  readonly remember?: "chat";
}

/** The body properties in which staged entries travel. */
export interface StagedBody {
  readonly edits?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly remember?: Readonly<Record<string, "chat">>;
}

/**
 * Edits and grants that wait for their answers to be sent.
 *
 * The AI SDK sends several answers with one request, whose body cannot be known when the first of
 * them is given. So entries are staged here, `body` is asked by the transport for each request, and
 * an entry goes when a request that answers its approval was taken (A8).
 */
export class StagedDecisions {
  readonly #entries = new Map<string, Staged>();

  /** Keep what goes with the answer to an approval, in place of what was kept before. */
  stage(approvalId: string, { edit, remember }: Staged): void {
    this.#entries.delete(approvalId);
    if (edit === undefined && remember === undefined) return;
    this.#entries.set(approvalId, {
      ...(edit !== undefined && { edit }),
      ...(remember !== undefined && { remember }),
    });
  }

  /** Forget the entries of approvals that were answered, or that nobody can answer any more. */
  clear(approvalIds: Iterable<string>): void {
    for (const id of approvalIds) this.#entries.delete(id);
  }

  /** All entries, as properties of a request's body; none if nothing is staged. */
  readonly body = (): StagedBody => {
    const edits: Record<string, Readonly<Record<string, unknown>>> = {};
    const remember: Record<string, "chat"> = {};
    for (const [id, entry] of this.#entries) {
      if (entry.edit !== undefined) edits[id] = entry.edit;
      if (entry.remember !== undefined) remember[id] = entry.remember;
    }
    return {
      ...(Object.keys(edits).length > 0 && { edits }),
      ...(Object.keys(remember).length > 0 && { remember }),
    };
  };

  get ids(): string[] {
    return [...this.#entries.keys()];
  }
}
