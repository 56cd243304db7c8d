/** A place of a copy in memory, in which each call can be watched or made to fail. */
import type { Place } from '../../src/copy/place.ts';

export interface MemoryPlace extends Place {
  readonly objects: Map<string, Buffer>;
  /** Called before each operation: throws to make it fail. */
  before: (operation: 'create' | 'list' | 'read' | 'delete', name: string) => void | Promise<void>;
}

export function memoryPlace(objects = new Map<string, Buffer>()): MemoryPlace {
  const place: MemoryPlace = {
    text: 'memory',
    objects,
    before() {},
    async create(name, content) {
      await place.before('create', name);
      if (objects.has(name)) return false;
      objects.set(name, Buffer.from(content));
      return true;
    },
    async list(prefix, after) {
      await place.before('list', prefix);
      return [...objects.keys()].filter((name) => name.startsWith(prefix) && name > after).sort();
    },
    async read(name) {
      await place.before('read', name);
      return objects.get(name) ?? null;
    },
    async delete(name) {
      await place.before('delete', name);
      objects.delete(name);
    },
  };
  return place;
}
