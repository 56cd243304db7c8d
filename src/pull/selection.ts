/**
 * Which of the key's streams a copy is of. A request of the change stream reads at most 20 (contract:
 * GET /v1/detections/changes, rule 6), so a key with more takes one copy for each group of them.
 */
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { Refused } from '../refused.ts';
import type { Me } from './answers.ts';
import type { Copy } from './copy.ts';

/** Contract: Limits. */
export const STREAMS_MAX = 20;
export const SUBSCRIPTIONS_MAX = 4;

/** Null: all that the key reads. */
const Selection = Type.Object({
  subscriptions: Type.Union([Type.Array(Type.Integer()), Type.Null()]),
  content_type: Type.Union([Type.Literal('text'), Type.Literal('image'), Type.Null()]),
});

export type Selection = Static<typeof Selection>;

const ALL: Selection = { subscriptions: null, content_type: null };

/** What a copy was begun with; null when it is new. */
export function selectionOfCopy(copy: Copy): Selection | null {
  return copy.cursor() === null && copy.walk() === null ? null : readSelection(copy.selection());
}

/**
 * What this run reads: what the copy was begun with, or what is asked for where it is new.
 *
 * @param noted null for a copy that is new
 * @throws Refused `usage` when something else is asked for than the copy was begun with: its cursor stands behind
 *   rows, of other streams, that it never had
 */
export function settleSelection(noted: Selection | null, into: string, asked: Selection): Selection {
  if (noted === null) return asked;
  const settled = {
    subscriptions: asked.subscriptions ?? noted.subscriptions,
    content_type: asked.content_type ?? noted.content_type,
  };
  if (optionsOf(settled) === optionsOf(noted)) return noted;
  throw new Refused(
    'usage',
    `${into} was begun ${optionsOf(noted)}. Leave --subscription and --content-type out to go on, ` +
      'or name another file with --into for other streams.',
  );
}

/** Notes the selection for the runs that follow; it counts from the first page on that is stored. */
export function noteSelection(copy: Copy, selection: Selection): void {
  copy.select(JSON.stringify(selection));
}

/** @throws Refused `failed` when the service would refuse the selection: before anything is read */
export function checkSelection({ subscriptions }: Me, selection: Selection): void {
  for (const id of selection.subscriptions ?? []) {
    if (!subscriptions.some((one) => one.id === id)) {
      throw new Refused(
        'failed',
        `--subscription ${id}: the key does not read it. GET /v1/me names those it reads.`,
      );
    }
  }
  const streams = subscriptions.flatMap(({ id, content_types }) =>
    content_types.filter((type) => isSelected(selection, id, type)),
  ).length;
  if (streams === 0 && selection.content_type !== null) {
    throw new Refused(
      'failed',
      `--content-type ${selection.content_type}: the key reads no such stream. GET /v1/me names those it reads.`,
    );
  }
  if (streams <= STREAMS_MAX) return;
  throw new Refused(
    'failed',
    `this copy would be of ${streams} streams, one for each subscription and content type, and at most ` +
      `${STREAMS_MAX} are possible. Make one copy for each group of them, each in a file of its own (--into): name ` +
      `the group with --subscription, at most ${SUBSCRIPTIONS_MAX}, or --content-type, or both. ` +
      'GET /v1/me names the subscriptions.',
  );
}

export function isSelected(selection: Selection, subscriptionId: number, contentType: string): boolean {
  return (
    (selection.subscriptions?.includes(subscriptionId) ?? true) &&
    (selection.content_type ?? contentType) === contentType
  );
}

/** The parameters of a request for all that is selected. */
export function parametersOf({ subscriptions, content_type }: Selection) {
  return { subscription_id: subscriptions?.join(','), content_type: content_type ?? undefined };
}

/**
 * @param note of a copy; null where an earlier version made it: it is of all streams
 * @throws Refused `failed` when it is none
 */
export function readSelection(note: string | null): Selection {
  if (note === null) return ALL;
  const selection: unknown = JSON.parse(note);
  if (Value.Check(Selection, selection)) return selection;
  throw new Refused(
    'failed',
    'the copy does not say which streams it is of. Name another file with --into to begin anew.',
  );
}

/** As the command line has it; equal for equal selections. */
function optionsOf({ subscriptions, content_type }: Selection): string {
  const options = [
    subscriptions === null ? '' : ` --subscription ${[...subscriptions].sort((a, b) => a - b).join(',')}`,
    content_type === null ? '' : ` --content-type ${content_type}`,
  ].join('');
  return options === '' ? 'without --subscription and --content-type' : `with${options}`;
}
