/**
 * The schema of a detection, made from the field table (contract: Detection).
 *
 * A detection differs by content type, and its members by what was asked for: with `fields` only `id` and
 * `version` are certain. The document says that; the tests ask for every member where `fields` was not given.
 */
import { type TProperties, type TSchema, Type } from '@sinclair/typebox';
import { BANDS } from '../detection/band.ts';
import { type ContentType, MATCH_TYPES } from '../detection/content-type.ts';
import { FIELDS, type Field } from '../detection/fields.ts';
import { DETECTION_ID_PATTERN } from '../detection/id.ts';
import { closed, described, nullable, numberedId, timestamp, uri, words } from './vocabulary.ts';

export interface DetectionShape {
  readonly content_type: ContentType;
  /** Which members must be there. */
  readonly required: 'id and version' | 'every field';
  /** Whether `event` is a member: on the change stream alone. */
  readonly event: boolean;
}

/** What the field table does not say of a field: its form and its range, by path, or by content type and path. */
const FORMS: Readonly<Record<string, () => TSchema>> = {
  'text id': () => Type.String({ pattern: DETECTION_ID_PATTERN.replace('[ti]', 't') }),
  'image id': () => Type.String({ pattern: DETECTION_ID_PATTERN.replace('[ti]', 'i') }),
  version: () => Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  event: () => words(['created', 'updated']),
  'text content_type': () => words(['text']),
  'image content_type': () => words(['image']),
  'text match_type': () => words([MATCH_TYPES.text]),
  'image match_type': () => words([MATCH_TYPES.image]),
  subscription_id: () => numberedId(),
  'source.internal_id': () => numberedId(),
  'source.image_url': uri,
  'source.origin_url': uri,
  'text strength.score': () => Type.Number({ minimum: 0, maximum: 100 }),
  'image strength.score': () => Type.Number({ minimum: 0, maximum: 99 }),
  'text strength.band': () => words(BANDS),
  'image strength.band': () => words(BANDS.slice(1, -1)),
  'article.id': () => numberedId(),
  'article.url': uri,
  'article.publisher.id': () => numberedId(),
  'article.image_url': uri,
  classification: () => words(['licensed', 'potentially_unlicensed', 'unknown']),
};

/** Objects that can be null as a whole; the field table lists what is within them. */
const NULLABLE_OBJECTS = new Set(['article.publisher']);
const ALWAYS = new Set(['id', 'version']);

export function detectionSchema(shape: DetectionShape): TSchema {
  const fields = FIELDS.filter(
    ({ path, content_types }) =>
      content_types.includes(shape.content_type) && (path !== 'event' || shape.event),
  );
  return objectOf(fields, '', shape);
}

/** @param prefix path of the object with a dot behind it; empty for the detection itself */
function objectOf(fields: readonly Field[], prefix: string, shape: DetectionShape): TSchema {
  const members: TProperties = {};
  for (const { path } of fields) {
    const [name = ''] = path.slice(prefix.length).split('.');
    if (Object.hasOwn(members, name)) continue;
    const memberPath = `${prefix}${name}`;
    const schema = memberOf(fields, memberPath, shape);
    const isRequired = shape.required === 'every field' || ALWAYS.has(memberPath);
    members[name] = isRequired ? schema : Type.Optional(schema);
  }
  return closed(members);
}

function memberOf(fields: readonly Field[], path: string, shape: DetectionShape): TSchema {
  const field = fields.find((one) => one.path === path);
  if (field !== undefined) {
    const form = formOf(field, shape.content_type);
    return field.nullable ? nullable(form, field.description) : described(form, field.description);
  }
  const within = fields.filter((one) => one.path.startsWith(`${path}.`));
  const object = objectOf(within, `${path}.`, shape);
  return NULLABLE_OBJECTS.has(path) ? nullable(object) : object;
}

function formOf({ path, type }: Field, contentType: ContentType): TSchema {
  const form = FORMS[`${contentType} ${path}`] ?? FORMS[path];
  if (form !== undefined) return form();
  switch (type) {
    case 'string':
      return Type.String();
    case 'integer':
      return Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
    case 'number':
      return Type.Number();
    case 'boolean':
      return Type.Boolean();
    case 'timestamp':
      return timestamp();
  }
}
