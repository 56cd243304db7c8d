/**
 * The named schemas of the document: all response bodies. That of a detection is made from the field table, as it is
 * without `fields`: if one allowed both, generated clients would have to expect that any member is missing.
 */
import { type TProperties, type TSchema, Type } from '@sinclair/typebox';
import { BANDS, bandsOf } from '../detection/band.ts';
import { CONTENT_TYPES, type ContentType, TYPE_RULES } from '../detection/content-type.ts';
import { FIELDS, type Field, NULLABLE_OBJECTS, OBJECT_PATHS } from '../detection/fields.ts';
import { detectionIdPattern } from '../detection/id.ts';
import {
  closed,
  componentId,
  described,
  nullable,
  pascalCase,
  ref,
  TIMESTAMP,
  URI,
  words,
} from '../http/description.ts';
import { ENDPOINTS } from '../http/endpoints/all.ts';
import { ERROR_SCHEMAS } from '../http/problem.ts';

/** What the column of a field does not say, by path. */
const FORMS: Readonly<Record<string, (contentType: ContentType) => TSchema>> = {
  id: (type) => Type.String({ pattern: detectionIdPattern(TYPE_RULES[type].id_letter) }),
  version: () => Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  event: () => ref('ChangeEvent'),
  content_type: (type) => words([type]),
  match_type: (type) => words([TYPE_RULES[type].match_type]),
  'strength.band': (type) => ref(bandName(type)),
  classification: () => ref('Classification'),
};

/** Objects and enumerations of a detection as named schemas: generators of clients make named types of them. */
function detectionParts(): Record<string, TSchema> {
  const parts: Record<string, TSchema> = {
    Band: words(BANDS),
    ...Object.fromEntries(
      CONTENT_TYPES.filter((type) => bandName(type) !== 'Band').map((type) => [
        bandName(type),
        described(words(bandsOf(type)), `The bands of an ${type}.`),
      ]),
    ),
    Classification: words(['licensed', 'potentially_unlicensed', 'unknown']),
    ChangeEvent: words(['created', 'updated']),
  };
  for (const contentType of CONTENT_TYPES)
    for (const path of OBJECT_PATHS) {
      const within = fieldsOf(contentType).filter((field) => field.path.startsWith(`${path}.`));
      parts[partName(path, contentType)] ??= objectOf(within, `${path}.`, contentType);
    }
  return parts;
}

/** `Band` has all of them; a content type that has fewer has a type of its own. */
const bandName = (contentType: ContentType): string =>
  bandsOf(contentType).length === BANDS.length ? 'Band' : `${pascalCase(contentType)}Band`;

/** `TextSource`, `ImageSource`; `Publisher`, which has the same members for both content types. */
function partName(path: string, contentType: ContentType): string {
  const name = pascalCase(path.split('.').at(-1) ?? '');
  return path === 'article.publisher' ? name : `${pascalCase(contentType)}${name}`;
}

const fieldsOf = (contentType: ContentType): Field[] =>
  FIELDS.filter((field) => field.content_types.includes(contentType));

/** @param prefix path of the object and a dot; empty for the detection itself */
function objectOf(fields: readonly Field[], prefix: string, contentType: ContentType): TSchema {
  const members: TProperties = {};
  for (const { path } of fields) {
    const [name = ''] = path.slice(prefix.length).split('.');
    if (!Object.hasOwn(members, name)) members[name] = memberOf(fields, `${prefix}${name}`, contentType);
  }
  return closed(members);
}

function memberOf(fields: readonly Field[], path: string, contentType: ContentType): TSchema {
  const field = fields.find((candidate) => candidate.path === path);
  if (field !== undefined) {
    const form = formOf(field, contentType);
    return field.nullable ? nullable(form, field.description) : described(form, field.description);
  }
  const object = ref(partName(path, contentType));
  return (NULLABLE_OBJECTS as readonly string[]).includes(path) ? nullable(object) : object;
}

function formOf({ path, type, column }: Field, contentType: ContentType): TSchema {
  const form = FORMS[path];
  if (form !== undefined) return form(contentType);
  const kind = column?.kind;
  if (kind?.type === 'integer') return Type.Integer({ minimum: kind.least, maximum: kind.most });
  if (kind?.type === 'score') return Type.Number({ minimum: 0, maximum: TYPE_RULES[contentType].score_max });
  if (kind?.type === 'address') return URI;
  if (type === 'timestamp') return TIMESTAMP;
  return type === 'boolean' ? Type.Boolean() : Type.String();
}

const CURSOR_PATTERN = '^[A-Za-z0-9_-]+$';

const DETECTIONS = ofEachType('Detection', false);
const CHANGES = ofEachType('Change', true);

/** By name; the `$id` of each is its address in the document. */
export const SCHEMAS: Readonly<Record<string, TSchema>> = named({
  StreamCursor: Type.String({
    pattern: CURSOR_PATTERN,
    description: 'Opaque. Valid with any filter, never expires, and survives a key rotation.',
  }),
  QueryCursor: Type.String({
    pattern: CURSOR_PATTERN,
    description:
      'Opaque. Tied to the period, time zone, sort, subscriptions and filters of the request; rejected when they change.',
  }),
  ...detectionParts(),
  ...DETECTIONS,
  Detection: Type.Union(Object.keys(DETECTIONS).map(ref), {
    description:
      'One item found in one article, for one subscription. When a match is scored again with no other change, `last_scored_at` and `exported_at` are updated in place, without a new `version`: ignore both when you compare copies. This is a detection as it is without `fields`, with every member. With `fields`, only those are present, and always `id` and `version`.',
  }),
  ...CHANGES,
  Change: Type.Union(Object.keys(CHANGES).map(ref), {
    description:
      'One version of a detection in the change stream, with its `event`. With `fields`, as for a detection, members can be missing.',
  }),
  ...Object.assign({}, ...ENDPOINTS.map(({ schemas }) => schemas)),
  ...ERROR_SCHEMAS,
});

/** `TextDetection`, `ImageDetection`. @param event whether `event` is a member: only on the change stream */
function ofEachType(suffix: string, event: boolean): Record<string, TSchema> {
  const schemas = CONTENT_TYPES.map((type) => {
    const fields = fieldsOf(type).filter(({ path }) => path !== 'event' || event);
    return [`${pascalCase(type)}${suffix}`, objectOf(fields, '', type)];
  });
  return Object.fromEntries(schemas);
}

function named(schemas: TProperties): TProperties {
  const own = Object.entries(schemas).map(([name, schema]) => [name, { ...schema, $id: componentId(name) }]);
  return Object.fromEntries(own);
}
