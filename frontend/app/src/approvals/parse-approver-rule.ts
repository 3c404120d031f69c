import { isRecord } from "../is-record.ts";

/** The people who decide a call in place of the user of the chat. */
export interface ApproverRule {
  readonly users: readonly string[];
  readonly roles: readonly string[];
  readonly quorum: number;
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

/** Parse the rule of a descriptor; undefined if the user of the chat decides. */
export function parseApproverRule(descriptor: unknown): ApproverRule | undefined {
  const rule = isRecord(descriptor) ? descriptor.approvers : undefined;
  if (!isRecord(rule)) return undefined;
  const quorum = typeof rule.quorum === "number" ? rule.quorum : 1;
  return { users: texts(rule.users), roles: texts(rule.roles), quorum };
}
