/**
 * The streams of the key that a copy contains. A request to the change stream reads at most 20 (contract:
 * GET /v1/detections/changes, rule 6), so a key with more streams needs several copies.
 */
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { Refused } from '../refused.ts';
import type { Me } from './answers.ts';
import type { Copy } from './copy.ts';

/** Contract: Limits. */
export const STREAMS_MAX = 20;
export const SUBSCRIPTIONS_MAX = 4;

/** Null: everything that the key reads. */
const Selection = Type.Object({
  subscriptions: Type.Union([Type.Array(Type.Integer()), Type.Null()]),
  content_type: Type.Union([Type.Literal('text'), Type.Literal('image'), Type.Null()]),
});

export type Selection = Static<typeof Selection>;

const ALL: Selection = { subscriptions: null, content_type: null };

/** The selection that a copy was started with; null if it is new. */
export function selectionOfCopy(copy: Copy): Selection | null {
  return copy.cursor() === null && copy.walk() === null ? null : readSelection(copy.selection());
}

/**
 * The selection of this run: that of the copy, or the given one if the copy is new.
 *
 * @param noted null for a new copy
 * @throws Refused `usage` if the given selection is not that of the copy: its cursor is past rows of other streams that
 *   it never had
 */
export function chooseSelection(noted: Selection | null, into: string, asked: Selection): Selection {
  if (noted === null) return asked;
  const chosen = {
    subscriptions: asked.subscriptions ?? noted.subscriptions,
    content_type: asked.content_type ?? noted.content_type,
  };
  if (optionsOf(chosen) === optionsOf(noted)) return noted;
  throw new Refused(
    'usage',
    `${into} was started ${optionsOf(noted)}. Leave out --subscription and --content-type to continue it, ` +
      'or name another file with --into for other streams.',
  );
}

/** Stores the selection for later runs; it is valid once the first page is stored. */
export function noteSelection(copy: Copy, selection: Selection): void {
  copy.select(JSON.stringify(selection));
}

/** @throws Refused `failed` if the service would refuse the selection, before anything is read */
export function checkSelection({ subscriptions }: Me, selection: Selection): void {
  for (const id of selection.subscriptions ?? []) {
    if (!subscriptions.some((one) => one.id === id)) {
      throw new Refused(
        'failed',
        `--subscription ${id}: the key cannot read this subscription. GET /v1/me lists those it can read.`,
      );
    }
  }
  const streams = subscriptions.flatMap(({ id, content_types }) =>
    content_types.filter((type) => isSelected(selection, id, type)),
  ).length;
  if (streams === 0 && selection.content_type !== null) {
    throw new Refused(
      'failed',
      `--content-type ${selection.content_type}: the key cannot read this content type. GET /v1/me lists those it can read.`,
    );
  }
  if (streams <= STREAMS_MAX) return;
  throw new Refused(
    'failed',
    `this copy would contain ${streams} streams (one for each subscription and content type), but at most ` +
      `${STREAMS_MAX} are possible. Make several copies, each into a file of its own (--into): choose the streams of ` +
      `each with --subscription (at most ${SUBSCRIPTIONS_MAX}), --content-type, or both. ` +
      'GET /v1/me lists the subscriptions.',
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
 * @param note of a copy; null for one of an earlier version, which contains all streams
 * @throws Refused `failed` if it is damaged
 */
export function readSelection(note: string | null): Selection {
  if (note === null) return ALL;
  const selection: unknown = JSON.parse(note);
  if (Value.Check(Selection, selection)) return selection;
  throw new Refused(
    'failed',
    'the copy does not name its streams. Name another file with --into to start a new copy.',
  );
}

/** In the form of the command line; equal for equal selections. */
function optionsOf({ subscriptions, content_type }: Selection): string {
  const options = [
    subscriptions === null ? '' : ` --subscription ${[...subscriptions].sort((a, b) => a - b).join(',')}`,
    content_type === null ? '' : ` --content-type ${content_type}`,
  ].join('');
  return options === '' ? 'without --subscription and --content-type' : `with${options}`;
}
