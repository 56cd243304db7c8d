/** The parameter `fields`: a part of a detection, in its order, always with `id` and `version`. */
import { FIELDS, OBJECT_PATHS } from '../detection/fields.ts';
import { isObject } from '../is-object.ts';
import { releaseMemory } from '../release-memory.ts';
import { invalid, shown } from './parameters.ts';

/** Dotted paths. `whole`: the requested fields, and objects that are returned complete; `parts`: objects that hold some. */
export type Projection = Readonly<Record<'whole' | 'parts', ReadonlySet<string>>>;

type JsonObject = Record<string, unknown>;

export const KNOWN_PATHS = new Set<string>([...FIELDS.map((field) => field.path), ...OBJECT_PATHS]);

/** @throws Refused `invalid_request` for a path that a detection does not have */
export function parseFields(text: string): Projection {
  const whole = new Set(['id', 'version']);
  const parts = new Set<string>();
  for (const path of text.split(',')) {
    if (path === '') throw invalid('fields: must not contain an empty value');
    if (!KNOWN_PATHS.has(path))
      throw invalid(`fields: unknown path ${shown(path)}; GET /v1/schema/detection lists the fields`);
    whole.add(path);
    for (let dot = path.indexOf('.'); dot >= 0; dot = path.indexOf('.', dot + 1))
      parts.add(path.slice(0, dot));
  }
  return { whole, parts };
}

/**
 * The wanted part of each detection; null: all of it.
 * @param detections JSON texts with commas between them, not to be used afterwards
 */
export function projected(detections: Buffer, projection: Projection | null): Buffer {
  if (projection === null) return detections;
  const complete: JsonObject[] = JSON.parse(`[${detections}]`);
  releaseMemory(detections);
  return Buffer.from(complete.map((one) => JSON.stringify(project(one, projection, ''))).join(','));
}

/** @param prefix path of the object with a trailing dot; empty for the detection itself */
function project(object: JsonObject, projection: Projection, prefix: string): JsonObject {
  const part: JsonObject = {};
  // The order of the detection, not of the request.
  for (const [name, value] of Object.entries(object)) {
    const path = prefix + name;
    const isPart = projection.parts.has(path);
    if (projection.whole.has(path) || (isPart && !isObject(value))) part[name] = value;
    else if (isPart && isObject(value)) {
      const inner = project(value, projection, `${path}.`);
      if (Object.keys(inner).length > 0) part[name] = inner;
    }
  }
  return part;
}
