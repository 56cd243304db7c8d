/** The parameter `fields`: a part of a detection, in its order, always with `id` and `version`. */
import { FIELDS, OBJECT_PATHS } from '../detection/fields.ts';
import { isObject } from '../log/format.ts';
import { releaseMemory } from '../release-memory.ts';
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

/**
 * The wanted part of each detection; null: all of it.
 * @param detections JSON texts with commas between them, not to be used afterwards
 */
export function projected(detections: Buffer, projection: Projection | null): Buffer {
  if (projection === null) return detections;
  const whole: JsonObject[] = JSON.parse(`[${detections}]`);
  releaseMemory(detections);
  return Buffer.from(whole.map((one) => JSON.stringify(project(one, projection))).join(','));
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
