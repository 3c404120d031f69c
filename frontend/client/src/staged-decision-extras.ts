/** The parts of a decision that the AI SDK cannot send with its approval response. */
export interface StagedDecision {
  /** Arguments for the call, in place of those that the model chose (A7). */
  readonly edit?: Readonly<Record<string, unknown>>;
  /** What the tool gets in place of the payload of the request, in its shape (A7). */
  readonly payload?: unknown;
  /** Grant later calls of the same tool in this chat (A8). */
  readonly remember?: Remember;
}

/**
 * The later calls that a decision approves too: with `"chat"` those with any arguments.
 *
 * `where` names arguments of the call that must have the values with which it runs; `ttl` is the
 * seconds from the decision on, at most the `grantTtl` of the descriptor.
 */
export type Remember = "chat" | { readonly where?: readonly string[]; readonly ttl?: number };

/** The properties of a request body that hold the staged decisions, by approval id. */
export interface StagedBody {
  readonly edits?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly payload?: Readonly<Record<string, unknown>>;
  readonly remember?: Readonly<Record<string, Remember>>;
}

/**
 * Edits and grants that are sent with the next request.
 *
 * The AI SDK sends several approval responses in one request, whose body is not known when the first
 * of them is added. Decisions are therefore staged here; the transport calls `body` for each
 * request, and a decision is cleared once the server has accepted a request with its approval
 * response (A8).
 */
export class StagedDecisions {
  readonly #decisions = new Map<string, StagedDecision>();

  /** Stage a decision for an approval; it replaces an earlier one. */
  stage(approvalId: string, { edit, payload, remember }: StagedDecision): void {
    this.#decisions.delete(approvalId);
    if (edit === undefined && payload === undefined && remember === undefined) return;
    this.#decisions.set(approvalId, {
      ...(edit !== undefined && { edit }),
      ...(payload !== undefined && { payload }),
      ...(remember !== undefined && { remember }),
    });
  }

  /** Clear the decisions for approvals whose response was accepted, or that are closed. */
  clear(approvalIds: Iterable<string>): void {
    for (const id of approvalIds) this.#decisions.delete(id);
  }

  /** All staged decisions as properties of a request body; an empty object if there are none. */
  readonly body = (): StagedBody => {
    const edits: Record<string, Readonly<Record<string, unknown>>> = {};
    const payload: Record<string, unknown> = {};
    const remember: Record<string, Remember> = {};
    for (const [id, decision] of this.#decisions) {
      if (decision.edit !== undefined) edits[id] = decision.edit;
      if (decision.payload !== undefined) payload[id] = decision.payload;
      if (decision.remember !== undefined) remember[id] = decision.remember;
    }
    return {
      ...(Object.keys(edits).length > 0 && { edits }),
      ...(Object.keys(payload).length > 0 && { payload }),
      ...(Object.keys(remember).length > 0 && { remember }),
    };
  };

  /** The approvals with a staged decision. */
  get approvalIds(): string[] {
    return [...this.#decisions.keys()];
  }
}
