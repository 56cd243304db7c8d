/**
 * The streams of the key that a copy contains. A request to the change stream reads at most 20 (contract:
 * GET /v1/detections/changes, rule 6), so a key with more streams needs several copies.
 */
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { CONTENT_TYPES } from '../detection/content-type.ts';
import { Refused } from '../refused.ts';
import { type Me, parseJson } from './api.ts';
import type { Notes } from './copy.ts';

/** Contract: Limits. */
export const STREAMS_MAX = 20;
export const SUBSCRIPTIONS_MAX = 4;

/** Null: everything that the key reads. */
const Selection = Type.Object({
  subscriptions: Type.Union([Type.Array(Type.Integer()), Type.Null()]),
  content_type: Type.Union([...CONTENT_TYPES.map((type) => Type.Literal(type)), Type.Null()]),
});
export type Selection = Static<typeof Selection>;

const ALL: Selection = { subscriptions: null, content_type: null };

/**
 * The selection of this run: that of the copy, or the given one if the copy is new. One that an earlier version began
 * contains all streams.
 *
 * @throws Refused `usage` if the given selection is not that of the copy: its cursor is past rows of other streams that
 *   it never had; `failed` if the note of the copy is damaged
 */
export function chooseSelection(
  { cursor, walk, selection }: Notes,
  into: string,
  asked: Selection,
): Selection {
  if (cursor === null && walk === null) return asked;
  const noted = selection === null ? ALL : parseJson(selection);
  if (!Value.Check(Selection, noted)) {
    const told = 'the copy does not name its streams.';
    throw new Refused('failed', `${told} Name another file with --into to start a new copy.`);
  }
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

/** @throws Refused `failed` if the service would refuse the selection, before anything is read */
export function checkSelection({ subscriptions }: Me, selection: Selection): void {
  const { content_type } = selection;
  const unread = selection.subscriptions?.find((id) => !subscriptions.some((one) => one.id === id));
  const streams = subscriptions.flatMap(({ id, content_types }) =>
    content_types.filter((type) => isSelected(selection, id, type)),
  ).length;
  if (unread !== undefined) throw notRead(`--subscription ${unread}`, 'subscription');
  if (streams === 0 && content_type !== null) throw notRead(`--content-type ${content_type}`, 'content type');
  if (streams <= STREAMS_MAX) return;
  throw new Refused(
    'failed',
    `this copy would contain ${streams} streams (one for each subscription and content type), but at most ` +
      `${STREAMS_MAX} are possible. Make several copies, each into a file of its own (--into): choose the streams of ` +
      `each with --subscription (at most ${SUBSCRIPTIONS_MAX}), --content-type, or both. ` +
      'GET /v1/me lists the subscriptions.',
  );
}

function notRead(option: string, what: string): Refused {
  return new Refused(
    'failed',
    `${option}: the key cannot read this ${what}. GET /v1/me lists those it can read.`,
  );
}

export function isSelected(selection: Selection, subscriptionId: number, contentType: string): boolean {
  const { subscriptions, content_type } = selection;
  return (subscriptions?.includes(subscriptionId) ?? true) && (content_type ?? contentType) === contentType;
}

/** The parameters of a request for all that is selected. */
export function parametersOf({ subscriptions, content_type }: Selection) {
  return { subscription_id: subscriptions?.join(','), content_type };
}

/** In the form of the command line; equal for equal selections. */
function optionsOf({ subscriptions, content_type }: Selection): string {
  const numbers = subscriptions?.toSorted((a, b) => a - b).join(',');
  const options = `${numbers === undefined ? '' : ` --subscription ${numbers}`}${content_type === null ? '' : ` --content-type ${content_type}`}`;
  return options === '' ? 'without --subscription and --content-type' : `with${options}`;
}
