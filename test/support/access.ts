/** Opens access.db for tests, and reads segments of its log. */
import { readFileSync } from 'node:fs';
import { type OpenAccessOptions, openAccess as open } from '../../src/auth/open-access.ts';
import { decodeLines, framesOf } from '../../src/log/frame.ts';
import type { Database } from '../../src/store/database.ts';

export function openAccess(root: string, options: Partial<OpenAccessOptions> = {}): Database {
  return open(root, { operation: { kind: 'test' }, ...options });
}

/** All lines of a segment of a log. */
export function textOfSegment(path: string): string {
  return [...framesOf(readFileSync(path), path)].flatMap(decodeLines).join('\n');
}
