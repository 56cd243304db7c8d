/** The parameter `fields`: a part of a detection, in its order, always with `id` and `version`. */
import { FIELDS, OBJECT_PATHS } from '../detection/fields.ts';
import { isObject } from '../log/format.ts';
import { DatabaseDamage } from '../store/database-errors.ts';
import { invalid, shown } from './parameters.ts';

/** The requested members: complete, or some members of an object. */
export type Projection = ReadonlyMap<string, Projection | 'whole'>;

type JsonObject = Record<string, unknown>;
type Draft = Map<string, Draft | 'whole'>;

const ALWAYS = ['id', 'version'];
const KNOWN_PATHS = new Set<string>([...FIELDS.map((field) => field.path), ...OBJECT_PATHS]);

/** @throws Refused `invalid_request` for a path that a detection does not have */
export function parseFields(text: string): Projection {
  const projection: Draft = new Map();
  for (const path of [...ALWAYS, ...new Set(text.split(','))]) {
    if (path === '') throw invalid('fields: must not contain an empty value');
    if (!KNOWN_PATHS.has(path))
      throw invalid(`fields: unknown path ${shown(path)}; GET /v1/schema/detection lists the fields`);
    add(projection, path.split('.'));
  }
  return projection;
}

/** @param detection text of a JSON object; @returns the wanted part of it as JSON text */
export function renderProjected(detection: string, projection: Projection): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(detection);
  } catch (error) {
    throw new DatabaseDamage('a stored detection is not valid JSON', { cause: error });
  }
  if (!isObject(parsed)) throw new DatabaseDamage('a stored detection is not a JSON object');
  return JSON.stringify(project(parsed, projection));
}

function project(object: JsonObject, projection: Projection): JsonObject {
  const part: JsonObject = {};
  // The order of the detection, not of the request.
  for (const name of Object.keys(object)) {
    const wanted = projection.get(name);
    if (wanted === undefined) continue;
    const value = object[name];
    if (wanted === 'whole' || !isObject(value)) {
      part[name] = value;
      continue;
    }
    const inner = project(value, wanted);
    if (Object.keys(inner).length > 0) part[name] = inner;
  }
  return part;
}

function add(projection: Draft, path: readonly string[]): void {
  const [name = '', ...rest] = path;
  const known = projection.get(name);
  if (known === 'whole') return;
  if (rest.length === 0) {
    projection.set(name, 'whole');
    return;
  }
  const inner: Draft = known ?? new Map();
  projection.set(name, inner);
  add(inner, rest);
}
