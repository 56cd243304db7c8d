/** The parts of the answers that a client needs, checked on arrival, so that nothing else is ever stored. */
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { Refused } from '../refused.ts';

const Nullable = <Schema extends ReturnType<typeof Type.String>>(schema: Schema) =>
  Type.Union([schema, Type.Null()]);

/** Fields that a client does not know are kept: clients ignore what is new. */
const Detection = Type.Object({ id: Type.String(), version: Type.Integer({ minimum: 1 }) });

export const ChangesPage = Type.Object({
  data: Type.Array(Detection),
  next_cursor: Type.String(),
  has_more: Type.Boolean(),
});

export const RangePage = Type.Object({
  data: Type.Array(Detection),
  next_cursor: Nullable(Type.String()),
  has_more: Type.Boolean(),
  as_of: Nullable(Type.String()),
});

const DataStart = Type.Optional(Nullable(Type.String()));

export const Me = Type.Object({
  subscriptions: Type.Array(
    Type.Object({
      id: Type.Integer(),
      content_types: Type.Array(Type.String()),
      data_starts: Type.Object({ text: DataStart, image: DataStart }),
    }),
  ),
});

export const Schema = Type.Object({
  fields: Type.Array(Type.Object({ path: Type.String(), column: Type.String() }), { minItems: 1 }),
});

/** With the members that its rules here do not name. */
export type Detection = Static<typeof Detection> & { readonly [member: string]: unknown };
export type ChangesPage = Static<typeof ChangesPage>;
export type RangePage = Static<typeof RangePage>;
export type Me = Static<typeof Me>;
export type Schema = Static<typeof Schema>;

/**
 * Reads a detection that a copy stores as text.
 *
 * @param place its place in the copy, for the message
 * @throws Refused `failed` if it is not a detection
 */
export function readDetection(text: string, place = 'the copy'): Detection {
  let row: unknown;
  try {
    row = JSON.parse(text);
  } catch {
    row = null;
  }
  if (Value.Check(Detection, row)) return row;
  throw new Refused(
    'failed',
    `${place}: expected a detection as the service returns it, with id and version`,
  );
}

/** @throws Refused `failed` when the answer is not what the contract says */
export function readChangesPage(body: unknown): ChangesPage {
  if (Value.Check(ChangesPage, body)) return body;
  throw unexpected('/v1/detections/changes');
}

/** @throws Refused `failed`, likewise */
export function readRangePage(body: unknown): RangePage {
  if (Value.Check(RangePage, body)) return body;
  throw unexpected('/v1/detections');
}

/** @throws Refused `failed`, likewise */
export function readMe(body: unknown): Me {
  if (Value.Check(Me, body)) return body;
  throw unexpected('/v1/me');
}

/** @throws Refused `failed`, likewise */
export function readSchema(body: unknown): Schema {
  if (Value.Check(Schema, body)) return body;
  throw unexpected('/v1/schema/detection');
}

function unexpected(path: string): Refused {
  return new Refused(
    'failed',
    `the answer of ${path} is not that of a Detection Reporting API. Check --base-url.`,
  );
}
