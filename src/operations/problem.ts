/** What an operation answers over HTTP: its outcome, or why it was refused. */
import { STATUS_CODES } from 'node:http';
import { type Static, Type } from '@sinclair/typebox';
import { PROBLEMS } from '../problem-titles.ts';
import { Refused, type RefusedCode } from '../refused.ts';

export interface Outcome<Value = unknown> {
  readonly value: Value;
  readonly done?: string | null;
  readonly next?: readonly (string | false | null)[];
  /** What its user must know besides, whatever is printed. */
  readonly warning?: string | null;
  /** Whether it did not do all that was asked: exit code 1. */
  readonly failed?: boolean;
}

/** Also of what only an operation is refused for. */
const REFUSALS: Readonly<Record<RefusedCode, { readonly status: number }>> = {
  ...PROBLEMS,
  usage: { status: 400 },
  failed: { status: 409 },
  configuration: { status: 409 },
};

/** JSON, with absent members filled in. */
export type OutcomeDocument = ReturnType<typeof outcomeDocument>;

export function outcomeDocument({ value, done = null, next = [], warning = null, failed = false }: Outcome) {
  return { value, done, next: next.filter((text) => typeof text === 'string'), warning, failed };
}

/** RFC 9457, without a type; `code` is Refused's. */
export const PROBLEM = Type.Object({
  title: Type.String(),
  status: Type.Integer(),
  detail: Type.String({ description: 'What is wrong, what was expected, and what to do.' }),
  code: Type.String(),
});
export type ProblemDocument = Readonly<Static<typeof PROBLEM>>;

export function problemDocument(status: number, detail: string, code: string): ProblemDocument {
  return { title: STATUS_CODES[status] ?? '', status, detail, code };
}

/** What a problem document says, as it was thrown. */
export const errorOf = ({ code, detail }: ProblemDocument): Refused =>
  new Refused(code as RefusedCode, detail);

export const statusOf = ({ code }: Refused): number => REFUSALS[code].status;
